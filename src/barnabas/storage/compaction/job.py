"""Defines the jobs of the cleaner and the events it sends, both encoded as lines of JSON.

to the cleaner      the job; then, a thousand at a time, the producers of the log
from the cleaner    its progress, each finished group of segments, and the end
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from barnabas.storage.index import MAX_RELATIVE_OFFSET
from barnabas.storage.segment import Sizes
from barnabas.storage.transaction_index import Aborted

_PRODUCERS_PER_LINE = 1000
_MOST_SOURCES = 64  # the maximum in one group


class Source(NamedTuple):
    """Represents a closed segment to be cleaned."""

    base_offset: int
    end_offset: int
    """The offset at which the next segment begins."""
    sizes: Sizes


class LastRecord(NamedTuple):
    """Represents the last record of a producer. It must be kept to preserve the producer's sequence
    number or epoch.
    """

    producer_epoch: int
    last_offset: int
    """The last offset of the producer's last data batch, or -1 if no data batch is left and the
    marker must be kept.
    """


class Job(NamedTuple):
    """Describes one pass over the closed segments of a log."""

    directory: str
    sources: tuple[Source, ...]
    """The segments to clean, sorted by offset and starting with the first segment of the log."""
    first_dirty_offset: int
    aborted: tuple[Aborted, ...]
    """The aborted transactions whose data is in the sources but whose markers come after the
    sources.
    """
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    buffer_bytes: int
    """The size of the memory in which keys are stored."""
    read_bytes: int
    """The number of bytes to read in one call."""
    bytes_per_second: float
    """The limit on the rate of reads and writes combined."""
    load_factor: float
    """The fraction of `buffer_bytes` that may be used."""

    @property
    def end_offset(self) -> int:
        return self.sources[-1].end_offset


class Progress(NamedTuple):
    """Reports how many bytes were read and written since the last progress event."""

    size_bytes: int


class Replacement(NamedTuple):
    """Reports that a group of segments was cleaned. The new segment is in files with the suffix
    `.cleaned`.
    """

    replaced: tuple[int, ...]
    """The base offsets of the replaced segments. The new segment has the same base offset as the
    first of them.
    """
    sizes: Sizes


class Finished(NamedTuple):
    """Reports that the pass has finished."""

    first_dirty_offset: int
    """The offset at which the next pass starts. It is below the end of the sources if the map had
    no room for all keys.
    """
    bytes_read: int
    bytes_kept: int
    records_read: int
    records_kept: int
    unopened_batches: int
    """The number of batches that were left unchanged because their decompressed size exceeds the
    limit.
    """


class Failed(NamedTuple):
    """Reports that the pass has failed and ended."""

    reason: str
    is_corrupt: bool
    """Whether the log is damaged, so that another pass would fail as well."""


Event = Progress | Replacement | Finished | Failed
Producers = Mapping[int, LastRecord]

_EVENTS: Mapping[str, type[Event]] = {
    "Progress": Progress,
    "Replacement": Replacement,
    "Finished": Finished,
    "Failed": Failed,
}


def job_lines(job: Job, producers: Producers) -> Iterator[bytes]:
    """Yield the lines that describe the job, a few at a time."""
    yield _line(job._asdict() | {"producers": len(producers)})
    rows = [(producer_id, *last) for producer_id, last in producers.items()]
    for first in range(0, len(rows), _PRODUCERS_PER_LINE):
        yield _line(rows[first : first + _PRODUCERS_PER_LINE])


def read_job(lines: Iterator[bytes]) -> tuple[Job, Producers] | None:
    """Read the next job without validating it. Returns None at the end of the input."""
    first = next(lines, None)
    if first is None:
        return None
    fields = json.loads(first)
    count = fields.pop("producers")
    fields["sources"] = tuple(
        Source(base, end, Sizes(*sizes)) for base, end, sizes in fields["sources"]
    )
    fields["aborted"] = tuple(Aborted(*each) for each in fields["aborted"])
    producers: dict[int, LastRecord] = {}
    while len(producers) < count:
        for producer_id, epoch, offset in json.loads(next(lines)):
            producers[producer_id] = LastRecord(epoch, offset)
    return Job(**fields), producers


def event_line(event: Event) -> bytes:
    return _line([type(event).__name__, *event])


def read_event(line: bytes) -> Event:
    kind, *fields = json.loads(line)
    if kind == Replacement.__name__:
        return Replacement(tuple(fields[0]), Sizes(*fields[1]))
    return _EVENTS[kind](*fields)


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def group_sources(job: Job, end_offset: int) -> list[list[Source]]:
    """Group the sources below the offset in their order. Each group is then merged into one
    segment.

    Without groups, small segments would accumulate. As in Kafka, the sizes of the logs and indexes
    before cleaning determine a group. A group also ends before its relative offsets would exceed 31
    bits, which is the limit of the index. Unlike in Kafka, a group has at most 64 segments, because
    the event loop swaps a whole group in one step.
    """
    groups: list[list[Source]] = []
    log = index = time_index = 0
    for source in job.sources:
        if source.base_offset >= end_offset:
            break
        sizes = source.sizes
        group = groups[-1] if groups else []
        if (
            group
            and len(group) < _MOST_SOURCES
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
    """Return whether the source can be added to the group.

    An empty segment can always be added. Otherwise, an empty segment would remain for every 2^31
    offsets.
    """
    # The index of the merged segment stores offsets relative to the first segment's base offset.
    reach = source.end_offset - 1 - group[0].base_offset
    return source.sizes.log == 0 or reach <= MAX_RELATIVE_OFFSET
