"""Builds batches of records, and reads the records in fetched batches.

    length varint | attributes int8 (0) | timestamp delta varlong | offset delta varint
    | key length varint (-1: null), key | value length varint (-1: null), value
    | header count varint | per header: key length varint, key, value length varint (-1), value

If a batch has a codec, its records are compressed as a single stream. With log-append time, the
timestamp of every record is the max timestamp of the batch, whatever its delta.

For any bytes, the result is either records or `CorruptData`. Control batches are skipped, because
they contain no records for users. Apart from that, this module does not interpret records; for
example, it does not skip aborted transactions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from barnabas.counted import counted
from barnabas.errors import CorruptData
from barnabas.records.batch import (
    HEADER_BYTES,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    iterate_batches,
    new_header,
    seal,
    verify_crc,
)
from barnabas.records.compression import NONE, compress, decompress
from barnabas.records.crc32c import Buffer
from barnabas.records.legacy import iterate_messages
from barnabas.records.varint import VARINTS, append_varint, finish_varint, read_varint

Headers = Sequence[tuple[str, bytes | None]]

CREATE_TIME, LOG_APPEND_TIME_TYPE = 0, 1

DEFAULT_LIMIT_BYTES = 256 * 1024 * 1024
"""The default limit on the decompressed size of a batch."""

_MIN_RECORD_BYTES = 7
RECORD_OVERHEAD_BYTES = 31
"""The maximum total size of the lengths, attributes, deltas and header count in a record."""


class Record(NamedTuple):
    """Represents a record as it is stored."""

    offset: int
    timestamp: int
    """The time in ms since the epoch, or -1 if the record has no timestamp."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_type: int = CREATE_TIME


_new_record = tuple.__new__


class BatchBuilder:
    """Collects records and builds a batch from them.

    The fields of the producer may be set at any time before `build`, because an idempotent producer
    assigns the sequence number of a batch only when it sends the batch. `build` may be called
    again, also after more records have been appended.
    """

    __slots__ = (
        "_base_timestamp",
        "_body",
        "_max_timestamp",
        "base_sequence",
        "codec",
        "is_transactional",
        "producer_epoch",
        "producer_id",
        "record_count",
    )

    def __init__(
        self,
        codec: int = NONE,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
    ) -> None:
        self.codec = codec
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.is_transactional = is_transactional
        self.record_count = 0
        self._body = bytearray()
        self._base_timestamp = self._max_timestamp = NO_TIMESTAMP

    @property
    def size_bytes(self) -> int:
        """The uncompressed size of the batch in bytes."""
        return HEADER_BYTES + len(self._body)

    @property
    def body(self) -> bytes:
        """The uncompressed records without the batch header."""
        return bytes(self._body)

    def append(
        self, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Headers = ()
    ) -> int:
        """Append a record and return the new `size_bytes`."""
        if self.record_count == 0:
            self._base_timestamp = self._max_timestamp = timestamp_ms
        elif timestamp_ms > self._max_timestamp:
            self._max_timestamp = timestamp_ms
        record = bytearray(1)  # attributes
        append_varint(record, timestamp_ms - self._base_timestamp)
        append_varint(record, self.record_count)
        _append_nullable(record, key)
        _append_nullable(record, value)
        append_varint(record, len(headers))
        for name, content in headers:
            _append_nullable(record, name.encode())
            _append_nullable(record, content)
        append_varint(self._body, len(record))
        self._body += record
        self.record_count += 1
        return HEADER_BYTES + len(self._body)

    def build(self, base_offset: int = 0) -> bytes:
        """Build the batch. The leader epoch is -1 until a leader appends the batch."""
        body = self._body if self.codec == NONE else compress(self.codec, self._body)
        header = new_header(
            self.codec, self.record_count, self._base_timestamp, self._max_timestamp
        )
        owned = header._replace(
            base_offset=base_offset,
            attributes=self.codec | (TRANSACTIONAL if self.is_transactional else 0),
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
        )
        return seal(owned, body)


def record_size_bound(key: bytes | None, value: bytes | None, headers: Headers = ()) -> int:
    """Return the maximum number of uncompressed bytes by which this record can increase the size of
    a batch.
    """
    bound = RECORD_OVERHEAD_BYTES + len(key or b"") + len(value or b"")
    for name, content in headers:
        bound += 10 + len(name.encode()) + len(content or b"")
    return bound


def nullable(data: bytes | None) -> bytes:
    """Return the bytes preceded by their length, as in a record's key, value and headers."""
    return VARINTS[-1] if data is None else VARINTS[len(data)] + data


def encoded_headers(headers: Headers) -> bytes:
    """Encode the last part of a record, which consists of the header count and the headers."""
    pairs = (nullable(name.encode()) + nullable(content) for name, content in headers)
    return VARINTS[len(headers)] + b"".join(pairs)


def _append_nullable(buffer: bytearray, data: bytes | None) -> None:
    if data is None:
        buffer.append(1)  # the varint of -1
        return
    size = len(data)
    if size < 64:
        buffer.append(size << 1)
    else:
        append_varint(buffer, size)
    buffer += data


def iterate_records(
    batches: Buffer, *, check_crc: bool = True, limit_bytes: int = DEFAULT_LIMIT_BYTES
) -> Iterator[Record]:
    """Yield the records in concatenated batches of any magic, in their order.

    If the last batch is incomplete, as is common in a fetch response, it is ignored. Control
    batches are skipped. Raises CorruptData if a checksum is wrong or if a batch decompresses to
    more than `limit_bytes`.
    """
    for position, header in iterate_batches(batches):
        if check_crc and not verify_crc(batches, position, header):
            raise CorruptData(f"the batch at offset {header.base_offset} fails its checksum")
        if not header.is_control:
            yield from records_of(batches, position, header, limit_bytes)


def records_of(
    batches: Buffer, position: int, header: BatchHeader, limit_bytes: int = DEFAULT_LIMIT_BYTES
) -> Iterator[Record]:
    """Yield the records in the batch at `position`. Control records are included. Raises
    CorruptData."""
    if header.magic != 2:
        kind = LOG_APPEND_TIME_TYPE if header.has_log_append_time else CREATE_TIME
        for message in iterate_messages(batches, position, header, limit_bytes):
            yield Record(*message, (), kind)
        return
    yield from walk_records(header, plain_records(batches, position, header, limit_bytes))


def plain_records(
    batches: Buffer, position: int, header: BatchHeader, limit_bytes: int = DEFAULT_LIMIT_BYTES
) -> bytes:
    """Return the decompressed records of the batch at `position`, which must have magic 2. Raises
    CorruptData.
    """
    body = memoryview(batches)[position + HEADER_BYTES : position + header.size_bytes]
    try:
        if header.codec == NONE:
            plain = bytes(body)
        else:
            plain = decompress(header.codec, body, limit_bytes)
        # If the record count is impossible, do not even start a loop.
        if not 0 <= header.record_count * _MIN_RECORD_BYTES <= len(plain):
            raise CorruptData(f"{counted(header.record_count, 'record')} in {len(plain)} bytes")
        return plain
    except CorruptData as cause:
        raise CorruptData(f"the batch at offset {header.base_offset}: {cause}") from cause


def walk_records(header: BatchHeader, plain: bytes) -> Iterator[Record]:
    """Yield the records in the result of `plain_records` one by one. Raises CorruptData."""
    try:
        yield from _walk(header, plain)
    except IndexError as cause:
        raise CorruptData(f"the batch at offset {header.base_offset} has a torn record") from cause
    except CorruptData as cause:
        raise CorruptData(f"the batch at offset {header.base_offset}: {cause}") from cause


def _walk(header: BatchHeader, data: bytes) -> Iterator[Record]:
    """Decode `record_count` records, which must fill `data` exactly.

    Nearly every varint has one byte, and a function call would cost more than everything else, so
    the first byte is read inline. Slicing beyond the end returns too few bytes without an error.
    However, the position then cannot be equal to the end of the record, which is checked once for
    each record.
    """
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    stamped = header.has_log_append_time
    kind = LOG_APPEND_TIME_TYPE if stamped else CREATE_TIME
    total = len(data)
    at = 0
    for _ in range(header.record_count):
        raw, at = data[at], at + 1
        if raw >= 0x80:
            raw, at = finish_varint(data, at, raw)
        end = at + ((raw >> 1) ^ -(raw & 1))
        # Without this check, a record could end within another record or before its own start.
        if not at < end <= total:
            raise CorruptData(f"a record reaches from byte {at} to {end} of {total}")
        raw, at = data[at + 1], at + 2
        if raw >= 0x80:
            raw, at = finish_varint(data, at, raw)
        timestamp = base_timestamp + ((raw >> 1) ^ -(raw & 1))
        raw, at = data[at], at + 1
        if raw >= 0x80:
            raw, at = finish_varint(data, at, raw)
        offset = base_offset + ((raw >> 1) ^ -(raw & 1))
        raw, at = data[at], at + 1
        if raw >= 0x80:
            raw, at = finish_varint(data, at, raw)
        key = None if raw & 1 else data[at : at + (raw >> 1)]
        at += 0 if raw & 1 else raw >> 1
        raw, at = data[at], at + 1
        if raw >= 0x80:
            raw, at = finish_varint(data, at, raw)
        value = None if raw & 1 else data[at : at + (raw >> 1)]
        at += 0 if raw & 1 else raw >> 1
        headers: tuple[tuple[str, bytes | None], ...] = ()
        if data[at]:
            headers, at = _headers(data, at)
        else:
            at += 1
        if at != end:
            raise CorruptData(f"the record at offset {offset} does not fill its size")
        # With LogAppendTime, all records have the time in the header (ST-4).
        if stamped:
            timestamp = header.max_timestamp
        yield _new_record(Record, (offset, timestamp, key, value, headers, kind))
    if at != total:
        raise CorruptData(f"{total - at} bytes after its records")


def _headers(data: bytes, at: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    count, at = read_varint(data, at)
    if not 0 <= count <= len(data) - at:
        raise CorruptData(f"{count} headers in {len(data) - at} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        size, at = read_varint(data, at)
        if size < 0:
            raise CorruptData("a header's key is null")
        name = data[at : at + size].decode("utf-8", "replace")  # like Java's clients
        at += size
        size, at = read_varint(data, at)
        if size < 0:
            headers.append((name, None))
        else:
            headers.append((name, data[at : at + size]))
            at += size
    return tuple(headers), at
