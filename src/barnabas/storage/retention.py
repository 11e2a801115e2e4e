"""Retention: how many of a log's oldest segments may go (ST-6), by log start, size and age.

Only whole segments go, from the oldest on, and none that reaches above the high watermark, which
the log start may never pass. The active one may go too, which then has to roll first. In a log that
is only compacted, size and age do not count.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.config import LogConfig
from barnabas.storage.files import Files
from barnabas.storage.segment import LOG_SUFFIX, Segment
from barnabas.storage.segments import Segments


class Bounds(NamedTuple):
    """The offsets that limit retention."""

    log_start_offset: int
    high_watermark: int
    log_end_offset: int


def count_removable(
    files: Files, segments: Segments, bounds: Bounds, config: LogConfig, wall_ms: int | None
) -> int:
    """How many of the oldest segments may go now, the active one included.

    Without `wall_ms` none goes by age.
    """
    by_rules = "delete" in config.cleanup_policy.split(",")
    excess_bytes = oldest_ms = -1
    if by_rules and config.retention_bytes >= 0:
        excess_bytes = segments.size_bytes - config.retention_bytes
    if by_rules and config.retention_ms >= 0 and wall_ms is not None:
        oldest_ms = wall_ms - config.retention_ms
    for i, segment in enumerate(segments):
        following = segments[i + 1] if i + 1 < len(segments) else None
        end_offset = following.base_offset if following else bounds.log_end_offset
        if end_offset > bounds.high_watermark or (following is None and not segment.size_bytes):
            return i
        excess_bytes -= segment.size_bytes
        is_deleted = following is not None and end_offset <= bounds.log_start_offset
        if not (is_deleted or excess_bytes >= 0 or _newest_ms(files, segment) < oldest_ms):
            return i
    return len(segments)


def _newest_ms(files: Files, segment: Segment) -> int:
    """The largest timestamp in the segment; without any, when its file last changed."""
    timestamp = segment.max_timestamp
    return timestamp if timestamp >= 0 else files.modified_ms(segment.path(LOG_SUFFIX))
