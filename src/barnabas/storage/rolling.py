"""Whether a log has to begin a new segment for the next batch, bytes apart (ST-2)."""

from __future__ import annotations

import zlib

from barnabas.storage.batch_validation import Limits
from barnabas.storage.index import MAX_RELATIVE_OFFSET
from barnabas.storage.segment import Segment


def is_full_or_old(
    segment: Segment, limits: Limits, last_offset: int, timestamp: int, wall_ms: int
) -> bool:
    """Whether the indexes leave no room for a batch, or the records would span `segment.ms`.

    Age is told by the records' own times, by the clock only where the first batch has none.
    """
    if (
        segment.offset_index.count >= limits.index_entries
        or segment.time_index.count >= limits.time_index_entries
        or last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
    ):
        return True
    first = segment.first_timestamp
    if first < 0:
        if segment.untimed_since_ms is None or segment.untimed_since_ms > wall_ms:
            segment.untimed_since_ms = wall_ms  # ... or the clock was set back
        first, timestamp = segment.untimed_since_ms, wall_ms
    waited_ms = timestamp - first
    if not limits.segment_jitter_ms:
        return waited_ms > limits.segment_ms
    # The jitter keeps the partitions of a topic from rolling, and being flushed, all at once; a
    # hash of the name spreads them as well as chance does, and the same way in every run.
    name = f"{segment.directory.name}/{segment.base_offset}"
    jitter_ms = zlib.crc32(name.encode()) % limits.segment_jitter_ms
    return waited_ms > limits.segment_ms - jitter_ms
