"""Defines a cleaner's job and its events, which are sent as lines of JSON.

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
_MOST_SOURCES = 64  # in a group


class Source(NamedTuple):
    """A closed segment to clean."""

    base_offset: int
    end_offset: int
    """The offset at which the next segment begins."""
    sizes: Sizes


class LastRecord(NamedTuple):
    """The last record of a producer, which must be kept for its sequence number or its epoch."""

    producer_epoch: int
    last_offset: int
    """The last offset of its last data batch; -1 if it has none, so that its marker must be kept.
    """


class Job(NamedTuple):
    """One pass over the closed segments of one log."""

    directory: str
    sources: tuple[Source, ...]
    """The segments, from the log's first one on, in ascending order of offsets."""
    first_dirty_offset: int
    aborted: tuple[Aborted, ...]
    """The transactions with data in the sources and markers after them."""
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    buffer_bytes: int
    """The memory for the keys."""
    read_bytes: int
    """The number of bytes to read at a time."""
    bytes_per_second: float
    """The limit on reading and writing together."""
    load_factor: float
    """The fraction of `buffer_bytes` that may be filled."""

    @property
    def end_offset(self) -> int:
        return self.sources[-1].end_offset


class Progress(NamedTuple):
    """The numbers of bytes read and written since the last progress event."""

    size_bytes: int


class Replacement(NamedTuple):
    """A finished group of segments and its replacement, in files with the suffix `.cleaned`."""

    replaced: tuple[int, ...]
    """Base offsets of the replaced segments; the first is also the new segment's base offset."""
    sizes: Sizes


class Finished(NamedTuple):
    """The end of the pass."""

    first_dirty_offset: int
    """Where the next pass starts; below the end of the sources if the map cannot hold their keys.
    """
    bytes_read: int
    bytes_kept: int
    records_read: int
    records_kept: int
    unopened_batches: int
    """The number of batches left unchanged because they are too large when decompressed."""


class Failed(NamedTuple):
    """The failure of a pass, which ends it."""

    reason: str
    is_corrupt: bool
    """Whether the log is damaged, in which case no pass can succeed."""


Event = Progress | Replacement | Finished | Failed
Producers = Mapping[int, LastRecord]

_EVENTS: Mapping[str, type[Event]] = {
    "Progress": Progress,
    "Replacement": Replacement,
    "Finished": Finished,
    "Failed": Failed,
}


def job_lines(job: Job, producers: Producers) -> Iterator[bytes]:
    """Yield the lines of the job in small portions."""
    yield _line(job._asdict() | {"producers": len(producers)})
    rows = [(producer_id, *last) for producer_id, last in producers.items()]
    for first in range(0, len(rows), _PRODUCERS_PER_LINE):
        yield _line(rows[first : first + _PRODUCERS_PER_LINE])


def read_job(lines: Iterator[bytes]) -> tuple[Job, Producers] | None:
    """Read the next job, which needs no validation; None at the end of the input."""
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
    """Group the sources below the offset, in order; each group is merged into one segment.

    Without this, small segments would accumulate. As in Kafka, the log and index sizes before
    cleaning count. A group also ends where offsets would not fit into the index's 31 bits and,
    unlike in Kafka, at 64 segments, because the swap of a group is one step of the event loop.
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
    """Return whether the source fits into the group.

    An empty segment always does; otherwise, one would be left every 2^31 offsets.
    """
    # The index of the merged segment counts from the first segment's base.
    reach = source.end_offset - 1 - group[0].base_offset
    return source.sizes.log == 0 or reach <= MAX_RELATIVE_OFFSET
