"""Validates batches before the leader appends them.

    every batch        `admit`: header and checksum; sixteen KiB take two microseconds
    if the topic       `prepare`: keys (compacted), bounds of timestamps, another codec
    requires it
    if the header      `prepare`: whether the records match the header, and its largest
    is in doubt        timestamp (see `records.plausibility`)
    a coordinator's    `admit_own`: the size; `admit_marker`: the checksum and the type

The errors are the same as Kafka's, because clients react to specific error codes. This module
cannot tell whether a transactional batch is part of an open transaction; if `is_transactional`
returns True, the caller must check that.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from struct import Struct
from typing import NamedTuple

from barnabas.config import LogConfig
from barnabas.counted import counted
from barnabas.errors import (
    CorruptData,
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    KafkaError,
    MessageTooLarge,
    RecordListTooLarge,
    UnsupportedCompressionType,
)
from barnabas.records.batch import (
    CHECKED_FROM,
    CODEC_MASK,
    CONTROL,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    TRANSACTIONAL,
    BatchHeader,
    read_header,
    verify_crc,
)
from barnabas.records.compression import CODEC_NAMES, GZIP, LZ4, NONE, SNAPPY, ZSTD
from barnabas.records.control_records import Marker, read_marker
from barnabas.records.crc32c import crc32c
from barnabas.records.plausibility import (
    AHEAD_MS,
    MAX_PLAIN_BYTES,
    are_ends_plausible,
    is_one_record,
    is_plausible,
)
from barnabas.records.rewrite import Rules, Walk, correct_max_timestamp, plain_section, rewrite

_REFUSED = LOG_APPEND_TIME | CONTROL
_CODECS = len(CODEC_NAMES)
ATTRIBUTES_LOW_AT = 22
"""The position of the low byte of the attributes in a batch header. This byte contains the codec
and the flags.
"""
_INT32 = Struct(">i")
_LENGTH_AT, _MAGIC_AT = 8, 16
_MIN_LENGTH = 14  # the minimum length of a message of magic 0
_NEWEST_MAGIC = 2
_UNBOUNDED_MS = 9223372036854775807
_PRODUCERS_CODEC = -1

# the number of records to check in one step, which takes about two milliseconds
_WALKED_AT_ONCE = 4096
# Up to this size, compression runs on the event loop, because two thread switches cost more.
_INLINE_BYTES = 64 * 1024
# The corresponding limit for decompression, which is ten times faster.
_INLINE_PLAIN_BYTES = 1024 * 1024

Steps = Generator[Callable[[], bytes] | None, bytes | None, memoryview]
"""The type of a generator that does its work in steps.

If it yields None, other tasks may run. If it yields a callable, which releases the GIL, the caller
must send back the result. The return value is the batch to append.
"""


class Limits(NamedTuple):
    """The part of a log's configuration that is checked against each batch."""

    max_message_bytes: int
    segment_bytes: int
    index_interval_bytes: int
    is_log_append_time: bool
    needs_key: bool
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    codec: int
    """The codec in which the topic stores its batches; -1 keeps the producer's codec."""
    level: int | None

    @property
    def needs_preparation(self) -> bool:
        """True if `prepare` must check the records before the batch is appended."""
        return self.codec != _PRODUCERS_CODEC or self.needs_walk

    @property
    def needs_walk(self) -> bool:
        """True if every record must be checked, regardless of the codec of the batch."""
        return (
            self.needs_key
            or self.timestamp_before_max_ms != _UNBOUNDED_MS
            or self.timestamp_after_max_ms != _UNBOUNDED_MS
        )

    @property
    def plain_bytes(self) -> int:
        """The maximum decompressed size of a batch whose records have to be read."""
        return max(MAX_PLAIN_BYTES, 2 * self.max_message_bytes)

    def rules(self, now_ms: int) -> Rules:
        """Return the rules for records that arrive at `now_ms`."""
        before_ms, after_ms = self.timestamp_before_max_ms, self.timestamp_after_max_ms
        return Rules(
            self.needs_key,
            None if before_ms == _UNBOUNDED_MS else now_ms - before_ms,
            None if after_ms == _UNBOUNDED_MS else now_ms + after_ms,
        )

    @classmethod
    def of(cls, config: LogConfig) -> Limits:
        is_log_append_time = config.message_timestamp_type == "LogAppendTime"
        codec, level = _target(config)
        return cls(
            config.max_message_bytes,
            config.segment_bytes,
            config.index_interval_bytes,
            is_log_append_time,
            config.is_compacted,
            _UNBOUNDED_MS if is_log_append_time else config.message_timestamp_before_max_ms,
            _UNBOUNDED_MS if is_log_append_time else config.message_timestamp_after_max_ms,
            codec,
            level,
        )


def _target(config: LogConfig) -> tuple[int, int | None]:
    """Return the codec and the compression level that the topic is configured to use."""
    name = config.compression_type
    if name == "producer":
        return _PRODUCERS_CODEC, None
    codec = NONE if name == "uncompressed" else CODEC_NAMES.index(name)
    levels = {
        GZIP: config.compression_gzip_level,
        LZ4: config.compression_lz4_level,
        ZSTD: config.compression_zstd_level,
    }
    return codec, levels.get(codec)


def is_transactional(records: memoryview) -> bool:
    """Return whether a batch has the transaction flag, without checking the rest of the batch."""
    return len(records) > ATTRIBUTES_LOW_AT and bool(records[ATTRIBUTES_LOW_AT] & TRANSACTIONAL)


def codec_of(records: memoryview) -> int:
    """Return the codec from the batch's attributes, or NONE if the batch is too short to have
    attributes.
    """
    return records[ATTRIBUTES_LOW_AT] & CODEC_MASK if len(records) > ATTRIBUTES_LOW_AT else NONE


class Doubt(Exception):
    """Raised if the records may not match the header, so `prepare` must read all of them first."""


def admit(records: memoryview, limits: Limits, unseen_at_ms: int | None = None) -> BatchHeader:
    """Check the only batch in `records` and return its header. Raises the error to send to the
    producer.

    If `unseen_at_ms` is given, raises Doubt if the batch is implausible at that time.
    """
    try:
        header = read_header(records)
    except CorruptData as cause:
        # The error code matters, because a client sends a batch again if it was damaged in transit,
        # but gives up if it is invalid.
        row = InvalidRecord if _is_cut(records) else CorruptMessage
        raise row(str(cause)) from cause
    # Unpacking all fields in one call takes half as long as reading ten attributes.
    (
        base_offset, length, _, magic, crc, attributes, delta,
        base_timestamp, max_timestamp, producer_id, _, sequence, count,
    ) = header  # fmt: skip
    size = length + LOG_OVERHEAD_BYTES
    if (
        magic != 2
        or base_offset != 0
        or count != delta + 1
        or count < 1
        or attributes & _REFUSED
        or attributes & CODEC_MASK >= _CODECS
        or (producer_id >= 0 and sequence < 0)
        or size != len(records)
    ):
        _refuse(records, header)
    if size > limits.max_message_bytes:
        raise MessageTooLarge(
            f"the batch has {size} bytes, but max.message.bytes allows only "
            f"{limits.max_message_bytes}"
        )
    if size > limits.segment_bytes:
        raise RecordListTooLarge(
            f"the batch has {size} bytes, but a segment of this topic has at most "
            f"{limits.segment_bytes}"
        )
    # The checksum comes after the header checks because it has to read the whole batch.
    if crc32c(records[CHECKED_FROM:]) != crc:
        raise CorruptMessage("the record batch fails its checksum")
    if unseen_at_ms is not None:  # checked after the checksum, which reads the whole batch
        span_ms = max_timestamp - base_timestamp
        if attributes & CODEC_MASK:
            matches_header = is_plausible(records, unseen_at_ms)
        # The length of a single record is known.
        elif count == 1:
            matches_header = span_ms == 0 and is_one_record(records)
        else:
            is_any_time = max_timestamp <= unseen_at_ms + AHEAD_MS
            matches_header = are_ends_plausible(records, count, span_ms, is_any_time)
        if not matches_header:
            raise Doubt
    return header


def _refuse(records: memoryview, header: BatchHeader) -> None:
    """Raise the error that describes what is wrong with an invalid batch."""
    # Check in the same order as Kafka, so that a batch with several faults gets the same error from
    # both.
    if header.magic != 2:
        raise InvalidRecord(f"a batch has magic {header.magic}; only 2 may be produced")
    if header.size_bytes > len(records):
        raise InvalidRecord(
            f"a batch should have {header.size_bytes} bytes, but {len(records)} were received"
        )
    if not verify_crc(records, 0, header):
        raise CorruptMessage("the record batch fails its checksum")
    if header.size_bytes < len(records):
        raise InvalidRecord("a produce request must have exactly one batch per partition")
    if header.codec >= len(CODEC_NAMES):
        raise UnsupportedCompressionType(f"unknown compression codec {header.codec}")
    if header.is_control:
        raise InvalidRecord("clients may not write control records")
    if header.has_log_append_time:
        raise InvalidTimestamp("a producer may not set the timestamp type LogAppendTime")
    if header.base_offset != 0:
        raise InvalidRecord(f"the base offset of a batch must be 0, not {header.base_offset}")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise InvalidRecord(f"invalid producer sequence {header.base_sequence}")
    raise InvalidRecord(
        f"a batch of {counted(header.record_count, 'record')} has last offset delta "
        f"{header.last_offset_delta}"
    )


def _is_cut(records: memoryview) -> bool:
    """Return whether the batch is truncated. The order of the checks is the same as in Kafka.

    A truncated batch gets the error INVALID_RECORD, but a batch with an impossible length gets
    CORRUPT_MESSAGE.
    """
    if len(records) < LOG_OVERHEAD_BYTES:
        return True
    (length,) = _INT32.unpack_from(records, _LENGTH_AT)
    # If the data is shorter than the shortest possible message, Kafka returns CORRUPT_MESSAGE.
    if length < _MIN_LENGTH:
        return False
    if len(records) <= _MAGIC_AT:
        return True
    return records[_MAGIC_AT] <= _NEWEST_MAGIC and length + LOG_OVERHEAD_BYTES > len(records)


def admit_own(records: memoryview, limits: Limits) -> BatchHeader:
    """Check the size of a batch that a coordinator on this broker has built. Raises
    MessageTooLarge.
    """
    if len(records) > min(limits.max_message_bytes, limits.segment_bytes):
        raise MessageTooLarge(f"a batch of {len(records)} bytes is too large for this topic")
    return read_header(records)


def admit_marker(records: memoryview) -> tuple[BatchHeader, Marker]:
    """Check a transaction marker, which another broker may have sent, and return its header and
    content.

    Raises CorruptMessage if the marker was damaged in transit, or InvalidRecord if the batch is not
    a marker.
    """
    header = read_header(records)
    if header.size_bytes != len(records) or not verify_crc(records, 0, header):
        raise CorruptMessage("the transaction marker fails its checksum")
    marker = read_marker(records, 0, header) if header.is_control else None
    if marker is None or header.producer_id < 0:
        raise InvalidRecord("the batch is not a transaction marker")
    return header, marker


def prepare(records: memoryview, limits: Limits, now_ms: int, *, is_doubted: bool = False) -> Steps:
    """Admit a batch for a topic that has rules for its records, and convert the batch to the
    topic's codec.

    If `is_doubted` is set, every record is checked even if the topic does not require it. Raises
    the same errors as `admit`. If a record breaks a rule, raises InvalidRecord or InvalidTimestamp
    with `record_errors` (KIP-467). The returned batch may be `records` itself, corrected in place.
    """
    header = admit(records, limits)
    # If `compression.type` names a codec, only batches that already use this codec stay unchanged.
    # If it is `producer`, all batches stay unchanged.
    has_other_codec = limits.codec not in (_PRODUCERS_CODEC, header.codec)
    if not (has_other_codec or limits.needs_walk or is_doubted):
        return records
    refusal: KafkaError | None = None
    plain, walk = b"", None
    try:
        try:
            plain = plain_section(records, header, min(_INLINE_PLAIN_BYTES, limits.plain_bytes))
        except CorruptData:  # damaged, or too large to decompress here
            sent = yield partial(plain_section, records, header, limits.plain_bytes)
            plain, sent = sent or b"", None
        walk = Walk(header, plain, limits.rules(now_ms))
        while walk.step(_WALKED_AT_ONCE):
            yield None
        # Collect the errors of all records, because the response lists every invalid record
        # (KIP-467).
        if walk.fault_count:
            refusal = _refusal(walk)
    except CorruptData as cause:
        refusal = InvalidRecord(
            f"the records cannot be read (a batch may decompress to {limits.plain_bytes} bytes "
            f"at most): {cause}"
        )
    if walk is None or refusal is not None:
        # The exception keeps this frame alive, and the frame must not keep the output of a
        # decompression bomb alive.
        plain, walk = b"", None
        raise refusal or InvalidRecord()
    if not has_other_codec:
        # With LogAppendTime, the append later writes one time for all records into the header.
        if walk.max_timestamp != header.max_timestamp and not limits.is_log_append_time:
            correct_max_timestamp(records, header, walk.max_timestamp)
        return records
    header = header._replace(max_timestamp=walk.max_timestamp)
    again = partial(rewrite, header, plain, codec=limits.codec, level=limits.level)
    # Snappy compresses block by block. In a thread, it would have to wait for the GIL of a busy
    # event loop before each block.
    if len(plain) <= _INLINE_BYTES or limits.codec in (NONE, SNAPPY):
        rewritten = again()
    else:
        sent = yield again
        assert sent is not None
        rewritten = sent
    return memoryview(bytearray(rewritten))


def _refusal(walk: Walk) -> KafkaError:
    """Return the error for a batch with invalid records. As in Kafka, the first invalid record
    determines the error."""
    first = walk.faults[0]
    message = f"{counted(walk.fault_count, 'invalid record')}; the first, at {first.record}: "
    row = InvalidTimestamp if first.is_timestamp else InvalidRecord
    error = row(message + first.message)
    error.record_errors = [(fault.record, fault.message) for fault in walk.faults]
    return error
