"""Reads a `.log` file and formats it like Kafka 3.9's DumpLogSegments (ST-9).

    baseOffset: 0 lastOffset: 2 count: 3 ... compresscodec: none crc: 1531881397 isvalid: true
    | offset: 0 CreateTime: 1700000000000 keySize: 2 valueSize: 2 sequence: -1 headerKeys: [] ...

The file is read batch by batch. Only one batch is in memory at a time, or only its header if the
batch is larger than `MAX_BATCH_BYTES`. Reading stops before the first incomplete batch. Bytes that
cannot start a batch raise `CorruptData`.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from struct import Struct, error
from typing import BinaryIO, NamedTuple

from barnabas.cli.dump.internal_records import Shown
from barnabas.errors import CorruptData
from barnabas.records.batch import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    NO_SEQUENCE,
    BatchHeader,
    read_header,
    verify_crc,
)
from barnabas.records.compression import CODEC_NAMES, NONE
from barnabas.records.control_records import ABORT, COMMIT
from barnabas.records.crc32c import crc32c
from barnabas.records.record import LOG_APPEND_TIME_TYPE, Record, records_of

MAX_BATCH_BYTES = 64 << 20
"""For a larger batch, only the checksum is verified, and the records are not read."""

_MAX_SEQUENCE = 2**31 - 1
_MAGIC_END = 17  # Kafka looks for a batch only in at least this many bytes
_MIN_LENGTH = 14  # the size of the shortest message in any format
_PIECE_BYTES = 1 << 20
_SIZE = Struct(">qi")
_CONTROL_KEY, _MARKER_VALUE = Struct(">hh"), Struct(">hi")
_MARKERS = {ABORT: "ABORT", COMMIT: "COMMIT"}
_CONTROL_TYPES = {
    **_MARKERS,
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}


class Batch(NamedTuple):
    """Represents a batch with its position, or a message in an older format."""

    position: int
    header: BatchHeader
    is_valid: bool
    data: bytes | None  # the whole batch, or None if larger than MAX_BATCH_BYTES

    def records(self) -> Iterator[Record]:
        """Yield the batch's records, including those of a control batch. Raises CorruptData."""
        if self.data is None:
            raise CorruptData(
                f"the batch at position {self.position} has {self.header.size_bytes} bytes: its "
                "records are not shown"
            )
        return records_of(self.data, 0, self.header)


class LogWalk:
    """Iterates over the complete batches of an open file, up to its size at creation."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size_bytes = os.fstat(file.fileno()).st_size
        self.position = 0  # where the next batch starts

    @property
    def trailing_bytes(self) -> int:
        """The number of bytes after the last complete batch. It is valid only after the
        iteration.
        """
        return self.size_bytes - self.position

    def __iter__(self) -> Iterator[Batch]:
        # As in Kafka, a tail too short to include the magic byte is neither a batch nor an error.
        while self.position < self.size_bytes - _MAGIC_END:
            self._file.seek(self.position)
            head = self._file.read(HEADER_BYTES)
            try:
                _, length = _SIZE.unpack_from(head)
                if length < _MIN_LENGTH:
                    raise CorruptData(f"a batch cannot have {length} bytes")
                # The batch is still being written, or a crash truncated it and recovery would
                # remove it.
                if length + LOG_OVERHEAD_BYTES > self.trailing_bytes:
                    return
                header = read_header(head)
            except (CorruptData, error) as cause:
                raise CorruptData(
                    f"no batch begins at position {self.position}: {cause}"
                ) from cause
            yield self._batch(header)
            self.position += header.size_bytes

    def _batch(self, header: BatchHeader) -> Batch:
        self._file.seek(self.position)
        if header.size_bytes > MAX_BATCH_BYTES:
            return Batch(self.position, header, self._sum(header) == header.crc, None)
        data = self._file.read(header.size_bytes)
        return Batch(self.position, header, verify_crc(data, 0, header), data)

    def _sum(self, header: BatchHeader) -> int:
        """Return the checksum of a batch that is too large to keep in memory."""
        # The checksum covers the bytes after it. In magic 2, it is a CRC-32C that starts at the
        # attributes. In older formats, it is a CRC-32 that starts at the magic byte.
        skipped, checksum = (21, crc32c) if header.magic == 2 else (16, zlib.crc32)
        self._file.read(skipped)
        left, crc = header.size_bytes - skipped, 0
        while left and (piece := self._file.read(min(left, _PIECE_BYTES))):
            crc = checksum(piece, crc)
            left -= len(piece)
        return crc


class RecordLines(NamedTuple):
    """Builds the lines for the records of a batch."""

    contents: Callable[[Record], Shown] | None  # None means that only sizes are shown

    def of(self, batch: Batch) -> Iterator[str]:
        header = batch.header
        for record in batch.records():
            line = (
                f"| offset: {record.offset} {_time_type(header, record)}: {record.timestamp} "
                f"keySize: {_size(record.key)} valueSize: {_size(record.value)}"
            )
            if header.magic == 2:
                names = ",".join(name for name, _ in record.headers)
                line += f" sequence: {_sequence(header, record.offset)} headerKeys: [{names}]"
            else:
                # The extra closing brace is a mistake in Kafka, but parsers of its output expect
                # it.
                line += f" isValid: {_word(batch.is_valid)} crc: {_message_crc(header, record)}}}"
            if header.is_control:
                line += _control_text(record)
            elif self.contents is not None:
                key, payload = self.contents(record)
                line += "" if key is None else f" key: {key}"
                line += "" if payload is None else f" payload: {payload}"
            yield line


def show_text(record: Record) -> Shown:
    """Return the key and value as Kafka's `--print-data-log` prints them."""
    return _text(record.key), _text(record.value)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


def batch_line(batch: Batch) -> str:
    """Return the line that Kafka prints for a batch."""
    header = batch.header
    if header.magic == 2:
        first = header.base_sequence
        last = _sequence(header, header.last_offset)
        # A compacted batch with tombstones stores the delete horizon as its base timestamp
        # (KIP-534).
        horizon = f"[{header.base_timestamp}]" if header.has_delete_horizon else ".empty"
        line = (
            f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} "
            f"count: {header.record_count} baseSequence: {first} lastSequence: {last} "
            f"producerId: {header.producer_id} producerEpoch: {header.producer_epoch} "
            f"partitionLeaderEpoch: {header.partition_leader_epoch} "
            f"isTransactional: {_word(header.is_transactional)} "
            f"isControl: {_word(header.is_control)} deleteHorizonMs: OptionalLong{horizon}"
        )
    else:
        line = f"offset: {header.last_offset}"
    codec = CODEC_NAMES[header.codec] if header.codec < len(CODEC_NAMES) else str(header.codec)
    return (
        f"{line} position: {batch.position} {_time_type(header)}: {header.max_timestamp} "
        f"size: {header.size_bytes} magic: {header.magic} compresscodec: {codec} "
        f"crc: {header.crc} isvalid: {_word(batch.is_valid)}"
    )


def _time_type(header: BatchHeader, record: Record | None = None) -> str:
    if header.magic == 0:
        return "NoTimestampType"
    stamped = header.has_log_append_time
    if record is not None:
        stamped = record.timestamp_type == LOG_APPEND_TIME_TYPE
    return "LogAppendTime" if stamped else "CreateTime"


def _sequence(header: BatchHeader, offset: int) -> int:
    """Return the producer's sequence number for the record at this offset. It wraps around to 0."""
    if header.base_sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    return (header.base_sequence + offset - header.base_offset) & _MAX_SEQUENCE


def _control_text(record: Record) -> str:
    try:
        _, kind = _CONTROL_KEY.unpack_from(record.key or b"")
        if kind not in _MARKERS:
            return f" controlType: {_CONTROL_TYPES.get(kind, 'UNKNOWN')}({kind})"
        _, epoch = _MARKER_VALUE.unpack_from(record.value or b"")
    except error as cause:
        raise CorruptData(f"the control record at offset {record.offset} is truncated") from cause
    return f" endTxnMarker: {_MARKERS[kind]} coordinatorEpoch: {epoch}"


def _message_crc(header: BatchHeader, record: Record) -> int:
    """Return the checksum of a message in an old format. The checksum of a message inside a wrapper
    is recomputed from its fields. This is exact, because the wrapper's checksum covers the fields,
    and they have only one layout.
    """
    if header.codec == NONE:
        return header.crc
    crc = zlib.crc32(bytes((header.magic, 8 if header.has_log_append_time else 0)))
    if header.magic:
        crc = zlib.crc32(record.timestamp.to_bytes(8, "big", signed=True), crc)
    for field in (record.key, record.value):
        crc = zlib.crc32(_size(field).to_bytes(4, "big", signed=True), crc)
        crc = zlib.crc32(field or b"", crc)
    return crc


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _word(flag: bool) -> str:
    return "true" if flag else "false"
