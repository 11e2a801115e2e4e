"""Validates or recompresses the records of a batch on the broker.

Neither operation changes a record: offsets, timestamps, keys, values and headers keep the bytes
that the producer wrote (`record` describes their layout). A walk checks that the records match the
header and the rules of the topic. Because it runs on the event loop, where no step may take longer
than a few milliseconds, it processes a few records at a time. Compression is a single call, which
may run in a thread.

For any bytes, the result is either a verdict or `CorruptData`.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.counted import counted
from barnabas.errors import CorruptData
from barnabas.records.batch import (
    CODEC_MASK,
    HEADER_BYTES,
    NO_TIMESTAMP,
    BatchHeader,
    seal,
)
from barnabas.records.compression import NONE, compress, decompress
from barnabas.records.varint import finish_varint, read_varint

_MIN_RECORD_BYTES = 7
_MAX_FAULTS = 1000  # reported per batch, so that no response is larger than its request
_TIMESTAMPS = range(-(1 << 63), 1 << 63)


class Rules(NamedTuple):
    """The rules of a topic for each of its records."""

    needs_key: bool = False
    """Whether every record must have a key, because compaction identifies records by their keys
    (ST-7).
    """
    oldest_ms: int | None = None
    """The oldest timestamp that is accepted, or None if there is no limit. A missing timestamp is
    always accepted.
    """
    newest_ms: int | None = None


class Fault(NamedTuple):
    """Describes what is wrong with a record and gives its index in the batch (KIP-467)."""

    record: int
    message: str
    is_timestamp: bool


class Walk:
    """Walks over the records of a batch. Each call of `step` continues the walk.

    `plain` contains the decompressed records. After the walk, `faults` contains the first thousand
    records that break a rule, `fault_count` is the number of all such records, and `max_timestamp`
    is the timestamp that the header should contain.
    """

    __slots__ = (
        "_at",
        "_header",
        "_index",
        "_plain",
        "_rules",
        "fault_count",
        "faults",
        "max_timestamp",
    )

    def __init__(self, header: BatchHeader, plain: bytes, rules: Rules) -> None:
        if header.record_count * _MIN_RECORD_BYTES > len(plain):
            raise CorruptData(
                "Incorrect declared batch size, premature EOF reached: "
                f"{counted(header.record_count, 'record')} in {len(plain)} bytes"
            )
        self._header = header
        self._plain = plain
        self._rules = rules
        self._index = 0
        self._at = 0
        self.faults: list[Fault] = []
        self.fault_count = 0
        self.max_timestamp = NO_TIMESTAMP

    def step(self, record_count: int) -> bool:
        """Walk over at most `record_count` records, and return whether any are left. Raises
        CorruptData."""
        end = min(self._index + record_count, self._header.record_count)
        try:
            self._walk_to(end)
        except IndexError as cause:
            raise CorruptData(
                f"Incorrect declared batch size, premature EOF reached: "
                f"a record after the first {self._index} is truncated"
            ) from cause
        if end < self._header.record_count:
            return True
        if self._at != len(self._plain):
            raise CorruptData(
                f"Incorrect declared batch size, records still remaining in file: "
                f"{len(self._plain) - self._at} bytes after {counted(end, 'record')}"
            )
        return False

    def _walk_to(self, end_index: int) -> None:
        """Walk up to the record with this index.

        Nearly every varint has one byte, which is read inline (see `record`).
        """
        data = self._plain
        at = self._at
        total = len(data)
        base_timestamp = self._header.base_timestamp
        max_timestamp = self.max_timestamp
        needs_key, oldest_ms, newest_ms = self._rules
        for index in range(self._index, end_index):
            raw, at = data[at], at + 1
            if raw >= 0x80:
                raw, at = finish_varint(data, at, raw)
            end = at + ((raw >> 1) ^ -(raw & 1))
            if not at < end <= total:
                raise CorruptData(f"record {index} reaches from byte {at} to {end} of {total}")
            raw, at = data[at + 1], at + 2
            if raw >= 0x80:
                raw, at = finish_varint(data, at, raw)
            timestamp = base_timestamp + ((raw >> 1) ^ -(raw & 1))
            raw, at = data[at], at + 1
            if raw >= 0x80:
                raw, at = finish_varint(data, at, raw)
            # Only compaction leaves gaps, so in a producer's batch, record n must have the offset
            # delta n.
            if raw != index << 1:
                raise CorruptData(f"record {index} has offset delta {(raw >> 1) ^ -(raw & 1)}")
            key_raw, at = data[at], at + 1
            if key_raw >= 0x80:
                key_raw, at = finish_varint(data, at, key_raw)
            at += 0 if key_raw & 1 else key_raw >> 1
            raw, at = data[at], at + 1
            if raw >= 0x80:
                raw, at = finish_varint(data, at, raw)
            at += 0 if raw & 1 else raw >> 1
            at = at + 1 if data[at] == 0 else _after_headers(data, at, end)
            if at != end:
                raise CorruptData(f"record {index} does not fill its {end} bytes")
            if timestamp > max_timestamp:
                max_timestamp = timestamp
            if needs_key and key_raw & 1:
                self._fault(index, "a compacted topic accepts no record without a key", False)
            # As in Kafka, a record without a timestamp is always accepted.
            elif timestamp != NO_TIMESTAMP and (
                (oldest_ms is not None and timestamp < oldest_ms)
                or (newest_ms is not None and timestamp > newest_ms)
            ):
                self._fault(index, f"timestamp {timestamp} is outside of {self._bounds()}", True)
        self._index = end_index
        self._at = at
        # The delta and the base have 64 bits each. In Java, their sum would wrap around.
        if max_timestamp not in _TIMESTAMPS:
            raise CorruptData("a timestamp does not fit into 64 bits")
        self.max_timestamp = max_timestamp

    def _fault(self, index: int, message: str, is_timestamp: bool) -> None:
        self.fault_count += 1
        if len(self.faults) < _MAX_FAULTS:
            self.faults.append(Fault(index, message, is_timestamp))

    def _bounds(self) -> str:
        oldest_ms, newest_ms = self._rules.oldest_ms, self._rules.newest_ms
        return (
            f"[{'' if oldest_ms is None else oldest_ms}, {'' if newest_ms is None else newest_ms}]"
        )


def _after_headers(data: bytes, at: int, end: int) -> int:
    count, at = read_varint(data, at)
    if not 0 <= count <= end - at:
        raise CorruptData(f"{count} headers in {end - at} bytes")
    for _ in range(count):
        size, at = read_varint(data, at)
        if size < 0:
            raise CorruptData("a header's key is null")
        size, at = read_varint(data, at + size)
        at += max(size, 0)
        if at > end:  # stop, so that no lengths are read beyond the record's end
            raise CorruptData("a header reaches beyond its record")
    return at


def plain_section(records: memoryview, header: BatchHeader, limit_bytes: int) -> bytes:
    """Return the decompressed records of a batch.

    Raises CorruptData if the records are malformed or exceed `limit_bytes`.
    """
    body = records[HEADER_BYTES : header.size_bytes]
    return bytes(body) if header.codec == NONE else decompress(header.codec, body, limit_bytes)


def rewrite(header: BatchHeader, plain: bytes, *, codec: int, level: int | None) -> bytes:
    """Return the batch with its records compressed by another codec and no other change.

    `header.max_timestamp` is not checked; the length and the checksum are computed.
    """
    attributes = header.attributes & ~CODEC_MASK | codec
    body = plain if codec == NONE else compress(codec, plain, level)
    return seal(header._replace(attributes=attributes), body)


def correct_max_timestamp(records: memoryview, header: BatchHeader, timestamp_ms: int) -> None:
    """Replace the max timestamp that the producer has set with the correct one, and update the
    checksum.

    Retention and the time index rely on the header, so records with a wrong max timestamp might be
    kept indefinitely.
    """
    corrected = header._replace(max_timestamp=timestamp_ms)
    records[:HEADER_BYTES] = seal(corrected, records[HEADER_BYTES:])[:HEADER_BYTES]
