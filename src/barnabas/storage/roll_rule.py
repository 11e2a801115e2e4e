"""Decides when a log has to roll, that is, to start a new active segment (ST-2).

    size     the batch would take the segment beyond `segment.bytes`
    indexes  an index is full (`segment.index.bytes`), or the offset is too far from the segment's
             base
    age      the records would span more than `segment.ms` minus a jitter of at most
             `segment.jitter.ms` or, in a compacted log, more than `max.compaction.lag.ms` if that
             is less (KIP-354)

`Log.roll` rolls the segment. A compacted log without new records rolls by the clock (`is_overdue`),
because the active segment is never cleaned.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

from barnabas.config import LogConfig
from barnabas.storage.index import MAX_RELATIVE_OFFSET, OFFSET_ENTRY, TIME_ENTRY
from barnabas.storage.segment import Segment


class RollRule(NamedTuple):
    """The limits that a topic's configuration sets for the segments of a log."""

    segment_bytes: int
    segment_ms: int
    segment_jitter_ms: int
    index_entries: int
    time_index_entries: int
    """The capacity of the time index, minus one entry that is added when the segment is closed."""

    @classmethod
    def of(cls, config: LogConfig) -> RollRule:
        segment_ms = config.segment_ms
        if config.is_compacted:
            # The active segment is never cleaned, so it must not become older than the maximum lag.
            segment_ms = min(segment_ms, config.max_compaction_lag_ms)
        return cls(
            config.segment_bytes,
            segment_ms,
            min(config.segment_jitter_ms, segment_ms),
            config.segment_index_bytes // OFFSET_ENTRY.size,
            config.segment_index_bytes // TIME_ENTRY.size - 1,
        )

    def is_due(
        self, segment: Segment, size_bytes: int, last_offset: int, timestamp: int, wall_ms: int
    ) -> bool:
        """Return whether a batch with this last offset and this timestamp has to go into a new
        segment.

        An empty segment accepts any batch whose offset fits into the indexes. The age of a segment
        is measured by the timestamps of its records. If the first batch has no timestamp, it is
        measured by the clock.
        """
        # A new segment would have the same name as this one.
        if not segment.size_bytes:
            return last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
        if (
            segment.size_bytes > self.segment_bytes - size_bytes
            or segment.offset_index.count >= self.index_entries
            or segment.time_index.count >= self.time_index_entries
            or last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
        ):
            return True
        first = segment.first_timestamp
        if first < 0:
            if segment.untimed_since_ms is None or segment.untimed_since_ms > wall_ms:
                segment.untimed_since_ms = wall_ms  # it is unset, or the clock was set back
            first, timestamp = segment.untimed_since_ms, wall_ms
        waited_ms = timestamp - first
        # `log.roll.jitter.ms=0` is the default.
        if not self.segment_jitter_ms:
            return waited_ms > self.segment_ms
        # The jitter prevents the partitions of a topic from all rolling and flushing at the same
        # time. A hash of the name serves this purpose as well as a random number does, but can be
        # reproduced.
        name = f"{segment.directory.name}/{segment.base_offset}"
        jitter_ms = zlib.crc32(name.encode()) % self.segment_jitter_ms
        return waited_ms > self.segment_ms - jitter_ms


def is_overdue(segment: Segment, config: LogConfig, wall_ms: int) -> bool:
    """Return whether the active segment contains a record that has to be compacted by now
    (KIP-354).
    """
    before_ms = wall_ms - config.max_compaction_lag_ms
    if before_ms <= 0 or not config.is_compacted or not segment.size_bytes:
        # with the default lag, do not open the segment's file
        return False
    return 0 < segment.first_timestamp < before_ms
