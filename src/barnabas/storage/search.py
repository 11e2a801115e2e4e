"""Searches for records by timestamp, using first the time indexes and then the log (ST-4).

The time index returns an offset below which all records are older than the timestamp. From that
offset on, batch headers are read until a batch is found that may contain the record. Only that
batch is decoded.
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
    """A record that was found by a search."""

    offset: int
    timestamp: int
    leader_epoch: int


def find_timestamp(
    segments: Sequence[Segment], timestamp_ms: int, start_offset: int
) -> Found | None:
    """Return the first record at or above `start_offset` whose timestamp is not older than the
    given one.
    """
    for segment in segments:
        # If no record has a timestamp, there may be no time index, so search the log itself.
        if segment.size_bytes and (segment.max_timestamp >= timestamp_ms or _is_blind(segment)):
            found = _find_in(segment, timestamp_ms, start_offset)
            if found is not None:
                return found
    return None


def find_newest(segments: Sequence[Segment], start_offset: int) -> Found | None:
    """Return the first record at or above `start_offset` that has the largest timestamp in these
    segments.
    """
    best: Found | None = None
    # Start with the segment that has the largest timestamp, so that most segments need not be read.
    for segment in sorted(segments, key=lambda each: each.max_timestamp, reverse=True):
        # The segments are sorted, so none of the remaining ones can contain a newer record.
        if best is not None and segment.max_timestamp < best.timestamp:
            break
        found = _find_newest_in(segment, start_offset)
        if found is not None and (best is None or _is_better(found, best)):
            best = found
    return best


def _is_better(one: Found, other: Found) -> bool:
    return (one.timestamp, -one.offset) > (other.timestamp, -other.offset)


def _find_newest_in(segment: Segment, start_offset: int) -> Found | None:
    """Search for the newest record in one segment.

    If the record with the segment's largest timestamp is below the log start, the rest of the
    segment is scanned.
    """
    timestamp_ms = segment.max_timestamp
    if timestamp_ms < 0:
        return None
    # An earlier batch cannot contain the record, because then the index would point to that batch.
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
    # All records before this entry are older than the timestamp (ST-4).
    entry = segment.time_index.floor(timestamp_ms - 1)
    offset = segment.base_offset + (entry[1] if entry else 0)
    for batch in segment.headers(segment.index_position(max(offset, start_offset))):
        if batch.header.max_timestamp < timestamp_ms or batch.header.last_offset < start_offset:
            continue
        for record in _records(segment, batch):
            # Timestamps may decrease within a batch. As in Kafka, return the matching record with
            # the lowest offset.
            if record.timestamp >= timestamp_ms and record.offset >= start_offset:
                return _found(record, batch)
    return None


def _found(record: Record, batch: Located) -> Found:
    timestamp = record.timestamp
    if not -_LARGEST <= timestamp <= _LARGEST:  # a faulty producer: let it overflow as in Java
        timestamp = (timestamp + _LARGEST + 1) % _INT64 - _LARGEST - 1
    return Found(record.offset, timestamp, batch.header.partition_leader_epoch)


def _records(segment: Segment, batch: Located) -> list[Record]:
    """Return the records in the batch. This includes control records, which also have offsets and
    timestamps.
    """
    raw = segment.read_batch(batch.position, batch.header.size_bytes)
    if len(raw) < batch.header.size_bytes:
        raise CorruptData(f"{segment.path('.log')} ends inside the batch at {batch.position}")
    return list(records_of(raw, 0, batch.header))
