"""Removes a log's oldest segments by log start offset, size and age (ST-6).

Only whole segments are removed, oldest first, and only below the high watermark, which the log
start must not exceed. The active segment can be removed too, but must roll first. With the
`compact` policy alone, size and age do not apply.
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
    """The offsets that limit retention."""

    log_start_offset: int
    high_watermark: int
    log_end_offset: int


class Removal(NamedTuple):
    """The oldest segments, no longer retained, by the limit that each exceeds.

    The limits are tried in this order: the log start offset, the size, the age.
    """

    by_start: int = 0
    by_size: int = 0
    by_age: int = 0
    size_bytes: int = 0

    @property
    def segments(self) -> int:
        """The total number of segments."""
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
        """Decide which of the oldest segments, including the active one, can be removed.

        Without `wall_ms`, age is ignored.
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
            # Keep everything above the high watermark, which the log start must not exceed. Keep an
            # empty active segment: only another empty one would replace it.
            if end_offset > bounds.high_watermark or (following is None and not segment.size_bytes):
                break
            # As in Kafka, remove a segment by size only if at least `retention.bytes` remain.
            excess_bytes -= segment.size_bytes
            # Remove the segment regardless of the policy: DeleteRecords has raised the log start
            # above it.
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
        """Remove the `count` oldest segments from the log; their files are removed at `due_ms`.

        The log start has been raised above them, so no reader looks for their offsets.
        """
        # A sync in progress may find these files missing from this point on; that is not an error.
        self._durability.on_start_raised(self._segments[count].base_offset)
        self._swaps.undo()  # the swap may be about to replace one of these segments
        taken = self._segments.take_first(count)
        self._segments.discards.discard(taken, due_ms)
        for each in taken:
            # A snapshot is needed only while the segment that follows it exists.
            self._files.remove(snapshot_path(self._segments.directory, each.base_offset))

    def _newest_ms(self, segment: Segment) -> int:
        """Return the segment's largest timestamp, or else the modification time of its file."""
        timestamp = segment.max_timestamp
        return timestamp if timestamp >= 0 else self._files.modified_ms(segment.path(LOG_SUFFIX))
