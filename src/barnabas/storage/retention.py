"""Removes the oldest segments of a log because of the log start offset, the size of the log or the
age of the segments (ST-6).

Segments are removed as a whole, starting with the oldest, and only below the high watermark,
because the log start must never be above it. The active segment can be removed as well, but the log
has to roll first. If `compact` is the only cleanup policy, there are no limits on size and age.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.config import LogConfig
from barnabas.storage.durability import Durability
from barnabas.storage.files import Files
from barnabas.storage.segment import LOG_SUFFIX, Segment
from barnabas.storage.segments import Segments
from barnabas.storage.snapshot import snapshot_path
from barnabas.storage.swap import Swaps


class Bounds(NamedTuple):
    """The offsets that limit which segments can be removed."""

    log_start_offset: int
    high_watermark: int
    log_end_offset: int


class Removal(NamedTuple):
    """Counts the oldest segments that can be removed, grouped by the limit that each of them
    exceeds.

    The limits are checked in this order: log start offset, size, age.
    """

    by_start: int = 0
    by_size: int = 0
    by_age: int = 0
    size_bytes: int = 0

    @property
    def segments(self) -> int:
        """The total number of segments to remove."""
        return self.by_start + self.by_size + self.by_age


class Retention:
    """Removes the oldest segments of a log."""

    __slots__ = ("_durability", "_files", "_segments", "_swaps")

    def __init__(
        self, files: Files, segments: Segments, durability: Durability, swaps: Swaps
    ) -> None:
        self._files = files
        self._segments = segments
        self._durability = durability
        self._swaps = swaps

    def removal(self, bounds: Bounds, config: LogConfig, wall_ms: int | None) -> Removal:
        """Determine which of the oldest segments can be removed. The active segment may be among
        them.

        If `wall_ms` is None, the age of segments is ignored.
        """
        segments = self._segments
        by_rules = "delete" in config.cleanup_policy.split(",")
        excess_bytes = oldest_ms = -1
        if by_rules and config.retention_bytes >= 0:
            excess_bytes = segments.size_bytes - config.retention_bytes
        if by_rules and config.retention_ms >= 0 and wall_ms is not None:
            oldest_ms = wall_ms - config.retention_ms
        by_start = by_size = by_age = size_bytes = 0
        for i, segment in enumerate(segments):
            following = segments[i + 1] if i + 1 < len(segments) else None
            end_offset = following.base_offset if following else bounds.log_end_offset
            # Keep all records above the high watermark, because the log start must not exceed it.
            # Keep an empty active segment, because rolling would only replace it with another empty
            # one.
            if end_offset > bounds.high_watermark or (following is None and not segment.size_bytes):
                break
            # As in Kafka, remove a segment because of the size only if at least `retention.bytes`
            # remain after that.
            excess_bytes -= segment.size_bytes
            # DeleteRecords has raised the log start above this segment, so remove it regardless of
            # the cleanup policy.
            if following is not None and end_offset <= bounds.log_start_offset:
                by_start += 1
            elif excess_bytes >= 0:
                by_size += 1
            elif self._newest_ms(segment) < oldest_ms:
                by_age += 1
            else:
                break
            size_bytes += segment.size_bytes
        return Removal(by_start, by_size, by_age, size_bytes)

    def remove(self, count: int, due_ms: int) -> None:
        """Remove the `count` oldest segments from the log. Their files are removed at `due_ms`.

        The log start is already above these segments, so no reader looks for their offsets.
        """
        # From now on, a sync that is in progress may not find these files. That is not an error.
        self._durability.on_start_raised(self._segments[count].base_offset)
        self._swaps.undo()  # the swap may be about to replace one of these segments
        taken = self._segments.take_first(count)
        self._segments.discards.discard(taken, due_ms)
        for each in taken:
            # A snapshot is not needed once the segment that begins at its offset has been removed.
            self._files.remove(snapshot_path(self._segments.directory, each.base_offset))

    def _newest_ms(self, segment: Segment) -> int:
        """Return the largest timestamp in the segment. If there is none, return the modification
        time of the log file.
        """
        timestamp = segment.max_timestamp
        return timestamp if timestamp >= 0 else self._files.modified_ms(segment.path(LOG_SUFFIX))
