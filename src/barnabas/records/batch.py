"""Reads, checks and patches the headers of record batches.

This module defines the layout of the 61 bytes (KIP-98) and of the headers of older messages:

     0  base offset          int64    absolute; the leader assigns it
     8  batch length         int32    of what follows this field
    12  leader epoch         int32    the leader's; outside the checksum
    16  magic                int8     2
    17  crc                  uint32   CRC-32C of everything from byte 21 on
    21  attributes           int16    bits 0-2 codec, 3 log-append time, 4 transactional,
                                      5 control, 6 base timestamp is a delete horizon (KIP-534)
    23  last offset delta    int32    kept by compaction
    27  base timestamp       int64    ms
    35  max timestamp        int64    ms
    43  producer id          int64    -1: none
    51  producer epoch       int16
    53  base sequence        int32    wraps to 0 after 2^31-1
    57  record count         int32
    61  records

Magic 0 and 1 occur only in old directories. A batch is then a single message: offset int64, size
int32, crc uint32, magic int8, attributes int8, in magic 1 timestamp int64, key, value. A compressed
message contains a set of messages and has the offset of the last one. The header of a message shows
only where the batch *ends*, so `base_offset` equals `last_offset`, and `record_count` is -1.

If `read_header` returns a header, its length is possible and its magic is known. Nothing else in
the header can be relied on until `verify_crc` has returned True.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from struct import Struct, error
from typing import NamedTuple

from barnabas.errors import CorruptData
from barnabas.records.crc32c import Buffer, crc32c

HEADER_BYTES = 61
LOG_OVERHEAD_BYTES = 12
"""The size of the base offset and length fields, which the length itself does not include."""
CHECKED_FROM = 21
"""The position of the first byte that the checksum covers."""
MIN_HEADER_BYTES = 26
"""The number of bytes needed to read the header of a legacy message, or the offset, length and
magic of any batch.
"""

CODEC_MASK, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 7, 8, 16, 32, 64

NO_TIMESTAMP = NO_PRODUCER_ID = NO_PRODUCER_EPOCH = NO_SEQUENCE = NO_LEADER_EPOCH = -1

_HEADER = Struct(">qiibIhiqqqhii")
_UNCHECKED, _CHECKED = Struct(">qiibI"), Struct(">hiqqqhii")  # together, the same
_LEGACY = Struct(">qiIbb")
PREFIX = Struct(">qii")
"""Fields that the checksum does not cover, except for magic: base offset, length, leader epoch."""
_INT64, _UINT32 = Struct(">q"), Struct(">I")
_ATTRIBUTES = Struct(">h")
_MAGIC_AT, _CRC_AT, _MAX_TIMESTAMP_AT = 16, 17, 35
_LEGACY_TIMESTAMP_AT, _LEGACY_CHECKED_FROM = 18, 16
_MIN_LENGTH = (14, 22, HEADER_BYTES - LOG_OVERHEAD_BYTES)  # minimum lengths, by magic


class BatchHeader(NamedTuple):
    """The header of a batch as it is stored. Times are in ms since the epoch."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def size_bytes(self) -> int:
        """The size of the whole batch in bytes, including the header."""
        return self.batch_length + LOG_OVERHEAD_BYTES

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def has_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def has_delete_horizon(self) -> bool:
        """Whether `base_timestamp` is the time from which tombstones may be removed (KIP-534)."""
        return bool(self.attributes & DELETE_HORIZON)


def new_header(codec: int, record_count: int, base_ms: int, max_ms: int) -> BatchHeader:
    """Return a header for a new batch without a producer id. `seal` fills in the missing fields."""
    return BatchHeader(
        base_offset=0,
        batch_length=0,
        partition_leader_epoch=NO_LEADER_EPOCH,
        magic=2,
        crc=0,
        attributes=codec,
        last_offset_delta=max(0, record_count - 1),
        base_timestamp=base_ms,
        max_timestamp=max_ms,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=record_count,
    )


# The same as `BatchHeader._make`, but without checking the number of fields, which the Struct
# guarantees.
_new_header: Callable[[tuple[int, ...]], BatchHeader] = partial(tuple.__new__, BatchHeader)


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Return the header of the batch at `position`. Raises CorruptData if a batch cannot begin
    there.

    The batch may extend beyond the end of the buffer, so the caller must check `size_bytes`.
    """
    try:
        header = _new_header(_HEADER.unpack_from(buffer, position))
    # In magic 2, a batch has at least 61 bytes, but old messages may be shorter.
    except error:
        return _read_short(buffer, position)
    if header.magic != 2:
        return _read_legacy(buffer, position)
    if header.batch_length < _MIN_LENGTH[2]:
        raise CorruptData(f"invalid batch length {header.batch_length}")
    return header


def _read_short(buffer: Buffer, position: int) -> BatchHeader:
    """Read a header where fewer than 61 bytes are left, because the data ends or because it is a
    legacy message.
    """
    if len(buffer) - position > _MAGIC_AT and buffer[position + _MAGIC_AT] < 2:
        return _read_legacy(buffer, position)
    raise CorruptData(f"no batch header fits into {len(buffer) - position} bytes")


def _read_legacy(buffer: Buffer, position: int) -> BatchHeader:
    timestamp = NO_TIMESTAMP
    try:
        offset, length, crc, magic, attributes = _LEGACY.unpack_from(buffer, position)
        # KIP-32 added the timestamp in magic 1.
        if magic == 1:
            (timestamp,) = _INT64.unpack_from(buffer, position + _LEGACY_TIMESTAMP_AT)
    except error as cause:
        raise CorruptData("a message's header is truncated") from cause
    if magic not in (0, 1):
        raise CorruptData(f"unknown record format with magic {magic}")
    if length < _MIN_LENGTH[magic]:
        raise CorruptData(f"invalid message length {length}")
    return BatchHeader(
        base_offset=offset,
        batch_length=length,
        partition_leader_epoch=NO_LEADER_EPOCH,
        magic=magic,
        crc=crc,
        # Clear all other bits, because in this format they do not mean that the batch is
        # transactional or a control batch.
        attributes=attributes & (CODEC_MASK | (LOG_APPEND_TIME if magic else 0)),
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=-1,
    )


def iterate_batches(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Yield the position and the header of each whole batch. If the last batch is incomplete, it is
    skipped.
    """
    position, end = 0, len(buffer)
    while end - position >= MIN_HEADER_BYTES:
        # The response to a fetch is cut off at the size limit, which may be within a header.
        if end - position < HEADER_BYTES and buffer[position + _MAGIC_AT] >= 2:
            return
        header = read_header(buffer, position)
        size = header.size_bytes
        if size > end - position:
            return
        yield position, header
        position += size


def verify_crc(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Return whether the checksum in the header matches the batch at `position`, which must be
    complete.
    """
    view = memoryview(buffer)
    end = position + header.size_bytes
    if end > len(view):
        return False
    # In old messages, the checksum is zlib's CRC-32 and covers everything from the magic on.
    if header.magic == 2:
        return crc32c(view[position + CHECKED_FROM : end]) == header.crc
    return zlib.crc32(view[position + _LEGACY_CHECKED_FROM : end]) == header.crc


def assign_in_place(
    buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int
) -> None:
    """Set the offset and leader epoch of the batch. The checksum does not cover these fields."""
    (length,) = _UINT32.unpack_from(buffer, position + 8)
    PREFIX.pack_into(buffer, position, base_offset, length, leader_epoch)


def stamp_in_place(
    buffer: bytearray | memoryview, position: int, header: BatchHeader, now_ms: int
) -> None:
    """Set the time of all records to `now_ms`, as `LogAppendTime` requires, and update the
    checksum.

    As in Kafka, the base timestamp and the deltas set by the client are kept.
    """
    attributes = header.attributes | LOG_APPEND_TIME
    _ATTRIBUTES.pack_into(buffer, position + CHECKED_FROM, attributes)
    _INT64.pack_into(buffer, position + _MAX_TIMESTAMP_AT, now_ms)
    crc = crc32c(memoryview(buffer)[position + CHECKED_FROM : position + header.size_bytes])
    _UINT32.pack_into(buffer, position + _CRC_AT, crc)


def seal(header: BatchHeader, records: Buffer) -> bytes:
    """Return the whole batch, which consists of the header, with its length and checksum, and the
    records.
    """
    return b"".join((sealed_header(header, records), records))


def sealed_header(header: BatchHeader, records: Buffer) -> bytes:
    """Return the encoded header of a batch with these records, with its length and checksum."""
    return _sealed(header[:3], header[5:], records)


def transactional_header(
    header: BatchHeader, records: Buffer, producer_id: int, producer_epoch: int, sequence: int
) -> bytes:
    """Return the encoded header of the same batch as a transactional producer would send it.

    The codec and the times are kept. If the batch has a delete horizon, its base timestamp is the
    horizon, and the deltas of the records are relative to it, so the times stay right.
    """
    attributes = header.attributes & CODEC_MASK | TRANSACTIONAL
    producer = (producer_id, producer_epoch, sequence, header.record_count)
    # Not with `_replace`, which takes longer than the checksum of a small batch.
    return _sealed((0, 0, NO_LEADER_EPOCH), (attributes, *header[6:9], *producer), records)


def _sealed(prefix: tuple[int, ...], checked_fields: tuple[int, ...], records: Buffer) -> bytes:
    """Encode the fields before the magic, whose length is set, and those after the checksum."""
    checked = _CHECKED.pack(*checked_fields)
    length = HEADER_BYTES - LOG_OVERHEAD_BYTES + len(records)
    crc = crc32c(records, crc32c(checked))
    return _UNCHECKED.pack(prefix[0], length, prefix[2], 2, crc) + checked
