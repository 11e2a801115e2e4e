"""Groups of closed segments to merge into one, so that small ones do not accumulate.

As in Kafka, sizes are those before the cleaning, of the log and of each index. A group also ends
where offsets would not fit into the index's 31 bits, and, unlike in Kafka, at 64 segments, as the
swap of a group is one step of the event loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.storage.compaction.job import Job, Source
from barnabas.storage.index import MAX_RELATIVE_OFFSET

MOST_SOURCES = 64


def grouped(job: Job, end_offset: int) -> list[list[Source]]:
    """The sources that begin below the offset, in their order."""
    groups: list[list[Source]] = []
    log = index = time_index = 0
    for source in job.sources:
        if source.base_offset >= end_offset:
            break
        sizes = source.sizes
        group = groups[-1] if groups else []
        if (
            group
            and len(group) < MOST_SOURCES
            and log + sizes.log <= job.segment_bytes
            and index + sizes.offset_index <= job.segment_index_bytes
            and time_index + sizes.time_index <= job.segment_index_bytes
            and _fits(source, group)
        ):
            group.append(source)
        else:
            groups.append([source])
            log = index = time_index = 0
        log += sizes.log
        index += sizes.offset_index
        time_index += sizes.time_index
    return groups


def _fits(source: Source, group: Sequence[Source]) -> bool:
    """An empty segment fits anywhere: else one would be left every 2^31 offsets."""
    reach = source.end_offset - 1 - group[0].base_offset
    return source.sizes.log == 0 or reach <= MAX_RELATIVE_OFFSET
