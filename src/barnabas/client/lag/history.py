"""Stores the samples on which the verdict about a group in one partition is based. Pure.

Consumers commit at intervals, by default every five seconds. Between two commits, the lag only
grows, so a trend over arbitrary samples would depend on where in an interval it starts and ends.
Trends are therefore measured from one commit to another.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from itertools import pairwise
from typing import Final, NamedTuple

from barnabas.client.lag.sample import Sample

WINDOW_MS: Final = 60_000
PRESENT_MS: Final = 20_000
"""Rates are measured over this period, or over the last four commits if they took longer."""
_LEAST_MOVES: Final = 4
_MOST_SAMPLES: Final = 1_200
_MOST_ENDS: Final = 600
_FLAT: Final = 0.05
"""A lag is steady if it changes by less than this fraction of the records written and read."""


class End(NamedTuple):
    """An end offset of the log, with the times at which it was first and last seen."""

    offset: int
    first_ms: int
    last_ms: int


class Pace(NamedTuple):
    """The rates at which a partition is written and read, in offsets per second."""

    write_rate: float
    read_rate: float
    trend: float  # growth of the lag; negative if it shrinks
    tolerance: float  # a smaller trend is not significant


class History:
    """The samples of the last minute, and a few older facts."""

    __slots__ = (
        "_ends",
        "_first_end",
        "_samples",
        "caught_up_at_ms",
        "moved_alone_at_ms",
        "moved_at_ms",
        "stalled_since_ms",
    )

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=_MOST_SAMPLES)
        self._ends: deque[End] = deque(maxlen=_MOST_ENDS)
        self._first_end = 0  # the log's end when the present member was first seen
        self.caught_up_at_ms: int | None = None  # when the group last had nothing to read
        self.moved_at_ms: int | None = None  # when the offset was last seen to move
        self.moved_alone_at_ms: int | None = None  # the same, while the partition had no member
        self.stalled_since_ms: int | None = None
        """The time since which the same member has left records unread without moving its offset.
        """

    @property
    def last(self) -> Sample:
        return self._samples[-1]

    @property
    def watched_ms(self) -> int:
        """The period of time that the samples cover."""
        return self._samples[-1].at_ms - self._samples[0].at_ms

    def add(self, sample: Sample) -> None:
        """Add the next sample. If the offset or the log was reset, start over with it."""
        if self._samples and self._has_restarted(sample):
            self._samples.clear()
            self.caught_up_at_ms = self.moved_at_ms = self.moved_alone_at_ms = None
            self.stalled_since_ms = None
            if sample.end is not None and self._ends and sample.end < self._ends[-1].offset:
                self._ends.clear()
        before = self._samples[-1] if self._samples else None
        self._samples.append(sample)
        while sample.at_ms - self._samples[0].at_ms > WINDOW_MS:
            self._samples.popleft()
        self._note_end(sample)
        if before is None or before.member != sample.member:
            self._first_end = sample.end or 0
            self.stalled_since_ms = None
        if before is not None and before.committed != sample.committed:
            self.moved_at_ms = sample.at_ms
            self.stalled_since_ms = None
            # A member's last commit, made as it leaves, does not count as made without a member.
            if before.member is None and sample.member is None:
                self.moved_alone_at_ms = sample.at_ms
        if sample.end is not None and sample.most == 0:
            self.caught_up_at_ms = sample.at_ms
            self.stalled_since_ms = None
        elif self.stalled_since_ms is None and self._must_move(sample):
            self.stalled_since_ms = sample.at_ms

    def arrived_ms(self, offset: int) -> float | None:
        """Return the time, by the monotonic clock, at which the record at an offset was appended.

        The time is interpolated between the observations before and after the record. The result is
        None if the record is older than the first observation or does not exist yet.
        """
        at = bisect_right(self._ends, offset, key=lambda end: end.offset)
        if at == 0 or at == len(self._ends):
            return None
        before, after = self._ends[at - 1], self._ends[at]
        part = (offset - before.offset) / (after.offset - before.offset)
        return before.last_ms + part * (after.first_ms - before.last_ms)

    def first_look_ms(self) -> int | None:
        """Return the time at which the end of the log was first seen."""
        return self._ends[0].first_ms if self._ends else None

    def pace(self) -> Pace | None:
        """Return the current rates, or None if fewer than two commits were seen within a minute."""
        samples = [sample for sample in self._samples if sample.end is not None]
        moves = [now for before, now in pairwise(samples) if before.committed != now.committed]
        if len(moves) < 2:
            return None
        recent = [each for each in moves if samples[-1].at_ms - each.at_ms <= PRESENT_MS]
        moves = recent if len(recent) >= _LEAST_MOVES else moves[-_LEAST_MOVES:]
        longest = max(now.at_ms - before.at_ms for before, now in pairwise(moves))
        first, last, now = moves[0], moves[-1], samples[-1]
        # The next commit is overdue, which means that the consumer has become slower.
        if now.at_ms - last.at_ms > longest:
            moves.append(now)
            last = now
        seconds = (last.at_ms - first.at_ms) / 1000
        assert first.end is not None and last.end is not None, "the others were left out"
        write_rate = (last.end - first.end) / seconds
        read_rate = (last.position - first.position) / seconds
        # A commit may have been made at any time since the previous observation.
        blur = 2 * self.watched_ms / (len(self._samples) - 1) / (last.at_ms - first.at_ms)
        tolerance = max(write_rate, read_rate) * max(_FLAT, min(blur, 0.5))
        return Pace(write_rate, read_rate, _slope(moves), tolerance)

    def _has_restarted(self, sample: Sample) -> bool:
        before = self._samples[-1]
        was, now = before.committed, sample.committed
        return (was is not None and (now is None or now < was)) or (
            None not in (before.end, sample.end) and (sample.end or 0) < (before.end or 0)
        )

    def _note_end(self, sample: Sample) -> None:
        if sample.end is None:
            return
        if self._ends and self._ends[-1].offset == sample.end:
            self._ends[-1] = self._ends[-1]._replace(last_ms=sample.at_ms)
        elif not self._ends or self._ends[-1].offset < sample.end:
            self._ends.append(End(sample.end, sample.at_ms, sample.at_ms))
        # Only the times of unread records matter.
        while len(self._ends) > 1 and self._ends[1].offset <= sample.position:
            self._ends.popleft()

    def _must_move(self, sample: Sample) -> bool:
        """Return whether the member must have records to read, and must therefore commit."""
        if sample.member is None or sample.least == 0:
            return False
        # Before its first commit, a member may start at the end of the log, and then only later
        # records count (`auto.offset.reset`).
        return sample.committed is not None or (sample.end or 0) > self._first_end


def _slope(samples: list[Sample]) -> float:
    """Return the growth of the lag in offsets per second, fitted by least squares."""
    times = [sample.at_ms / 1000 for sample in samples]
    mean_s = sum(times) / len(times)
    mean = sum(sample.offsets for sample in samples) / len(samples)
    covered = sum((at_s - mean_s) ** 2 for at_s in times)
    together = sum(
        (at_s - mean_s) * (sample.offsets - mean)
        for at_s, sample in zip(times, samples, strict=True)
    )
    return together / covered
