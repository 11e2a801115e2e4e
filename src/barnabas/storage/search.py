"""Searches for records by timestamp: first in the time indexes, then in the log (ST-4).

The time index contains an offset below which everything is older than the timestamp. From that
offset on, batch headers are read until one may contain the record. Only that batch is decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.errors import CorruptData
from barnabas.records.record import Record, records_of
from barnabas.storage.segment import Located, Segment

_INT64 = 2**64
_LARGEST = 2**63 - 1


class Found(NamedTuple):
    """A record that a search found."""

    offset: int
    timestamp: int
    leader_epoch: int


def find_timestamp(
    segments: Sequence[Segment], timestamp_ms: int, start_offset: int
) -> Found | None:
    """Return the first record at or after `start_offset` that is not older than the timestamp."""
    for segment in segments:
        # The time index may be missing if no record has a timestamp. Search the log.
        if segment.size_bytes and (segment.max_timestamp >= timestamp_ms or _is_blind(segment)):
            found = _find_in(segment, timestamp_ms, start_offset)
            if found is not None:
                return found
    return None


def find_newest(segments: Sequence[Segment], start_offset: int) -> Found | None:
    """Return the first record from `start_offset` on with the segments' largest timestamp."""
    best: Found | None = None
    # Start with the largest timestamps, so that most segments need not be read.
    for segment in sorted(segments, key=lambda each: each.max_timestamp, reverse=True):
        # In this order, no later segment can contain a newer record.
        if best is not None and segment.max_timestamp < best.timestamp:
            break
        found = _find_newest_in(segment, start_offset)
        if found is not None and (best is None or _is_better(found, best)):
            best = found
    return best


def _is_better(one: Found, other: Found) -> bool:
    return (one.timestamp, -one.offset) > (other.timestamp, -other.offset)


def _find_newest_in(segment: Segment, start_offset: int) -> Found | None:
    """Search one segment for the newest record.

    If the one with the segment's largest timestamp is below the log start, the rest is scanned.
    """
    timestamp_ms = segment.max_timestamp
    if timestamp_ms < 0:
        return None
    # No earlier batch can contain the record: the index would point to it.
    offset = segment.offset_of_max_timestamp
    best: Found | None = None
    for batch in segment.headers(segment.index_position(max(offset, start_offset))):
        newest = batch.header.max_timestamp
        if batch.header.last_offset < start_offset or newest < 0:
            continue
        if (offset >= start_offset and newest < timestamp_ms) or (
            best is not None and newest <= best.timestamp
        ):
            continue
        for record in _records(segment, batch):
            if record.offset >= start_offset and record.timestamp >= 0:
                found = _found(record, batch)
                if best is None or _is_better(found, best):
                    best = found
        if best is not None and best.timestamp >= timestamp_ms:
            break  # no record in this segment is newer
    return best


def _is_blind(segment: Segment) -> bool:
    return segment.max_timestamp < 0


def _find_in(segment: Segment, timestamp_ms: int, start_offset: int) -> Found | None:
    # Everything before the entry is older than the timestamp (ST-4).
    entry = segment.time_index.floor(timestamp_ms - 1)
    offset = segment.base_offset + (entry[1] if entry else 0)
    for batch in segment.headers(segment.index_position(max(offset, start_offset))):
        if batch.header.max_timestamp < timestamp_ms or batch.header.last_offset < start_offset:
            continue
        for record in _records(segment, batch):
            # Timestamps may decrease within a batch. As in Kafka, return the first match in offset
            # order.
            if record.timestamp >= timestamp_ms and record.offset >= start_offset:
                return _found(record, batch)
    return None


def _found(record: Record, batch: Located) -> Found:
    timestamp = record.timestamp
    if not -_LARGEST <= timestamp <= _LARGEST:  # from a faulty producer; wrap as in Java
        timestamp = (timestamp + _LARGEST + 1) % _INT64 - _LARGEST - 1
    return Found(record.offset, timestamp, batch.header.partition_leader_epoch)


def _records(segment: Segment, batch: Located) -> list[Record]:
    """Return the batch's records, including control records, which also have offsets and times."""
    raw = segment.read_batch(batch.position, batch.header.size_bytes)
    if len(raw) < batch.header.size_bytes:
        raise CorruptData(f"{segment.path('.log')} ends inside the batch at {batch.position}")
    return list(records_of(raw, 0, batch.header))
