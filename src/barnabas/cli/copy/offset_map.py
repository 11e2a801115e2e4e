"""Maps the offsets of a partition to those of its copy. Pure.

The offsets of a copy differ, because the source has gaps (compaction, transaction markers, expired
records), and the copy has others (the markers of its own transactions). Both grow together in runs
of consecutive records, so only the start and the length of each run are kept.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class Run(NamedTuple):
    """Consecutive records on both sides: record `source + n` is record `target + n`."""

    source: int
    target: int
    size: int


class OffsetMap:
    """The runs of one partition, in the order of their offsets.

    `position` is the offset at which copying continues in the source. It may be higher than the end
    of the last run, because markers and aborted records are not copied.
    """

    def __init__(self, runs: Iterable[Run] = (), position: int = 0) -> None:
        self._sources, self._targets, self._counts = array("q"), array("q"), array("q")
        self.position = position
        for run in runs:
            self.append(run)

    def __len__(self) -> int:
        return len(self._sources)

    def __iter__(self) -> Iterator[Run]:
        return map(Run, self._sources, self._targets, self._counts)

    @property
    def source_end(self) -> int:
        """The offset after the last copied record, or 0."""
        return self._sources[-1] + self._counts[-1] if self._sources else 0

    @property
    def target_end(self) -> int:
        """The offset after the last record of the copy, or 0."""
        return self._targets[-1] + self._counts[-1] if self._targets else 0

    @property
    def record_count(self) -> int:
        return sum(self._counts)

    def append(self, run: Run) -> None:
        """Add a run, which is joined to the last one if it continues it."""
        if self._sources and (run.source < self.source_end or run.target < self.target_end):
            raise ValueError(f"{run} does not follow {self.source_end}, {self.target_end}")
        if self._sources and (run.source, run.target) == (self.source_end, self.target_end):
            self._counts[-1] += run.size
        else:
            self._sources.append(run.source)
            self._targets.append(run.target)
            self._counts.append(run.size)
        self.position = max(self.position, self.source_end)

    def to_target(self, offset: int) -> int:
        """Return the offset of the first copied record whose source offset is at least `offset`.

        If there is none, return the offset after the last record of the copy.
        """
        return _translated(offset, self._sources, self._targets, self._counts, self.target_end)

    def to_source(self, offset: int) -> int:
        """Return the source offset of the first copied record at or after `offset` of the copy."""
        return _translated(offset, self._targets, self._sources, self._counts, self.source_end)


def _translated(
    offset: int, starts: Sequence[int], others: Sequence[int], counts: Sequence[int], end: int
) -> int:
    at = bisect_right(starts, offset) - 1
    if at >= 0 and offset < starts[at] + counts[at]:
        return others[at] + offset - starts[at]
    # The offset is in a gap, so the next run begins with the first record after it.
    return others[at + 1] if at + 1 < len(starts) else end


def runs_of(source_offsets: Sequence[int], target: int) -> Iterator[Run]:
    """Yield the runs of records that are written one after another from offset `target` on."""
    if isinstance(source_offsets, range):  # of a batch without gaps
        yield Run(source_offsets.start, target, len(source_offsets))
        return
    first = 0
    for index in range(1, len(source_offsets) + 1):
        is_end = index == len(source_offsets)
        if is_end or source_offsets[index] != source_offsets[index - 1] + 1:
            yield Run(source_offsets[first], target + first, index - first)
            first = index
