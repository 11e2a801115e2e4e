"""Keeps log ends and other figures for some minutes, and computes their rates. Pure.

Memory is bounded: a series has 300 values (ten minutes at one poll every two seconds), and the end
offsets of single partitions are kept for the last few polls only.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Mapping
from math import isnan, nan
from typing import Final

from barnabas.console.shapes import Series
from barnabas.types import TopicPartition

KEPT: Final = 300
_MOST_SERIES: Final = 2_000
_LOOKS: Final = 6
"""The number of polls kept, so that a partition's rate covers the last five intervals."""


class SeriesBook:
    """Holds several series with shared times, such as the lag of each group."""

    def __init__(self) -> None:
        self._times: deque[int] = deque(maxlen=KEPT)
        self._values: dict[str, array[float]] = {}

    def add(self, at_ms: int, values: Mapping[str, float]) -> None:
        """Add the values measured at one time. A series without a value gets a gap.

        A series is forgotten once all of its values are gaps, and new series beyond the limit are
        ignored.
        """
        for name in values:
            if name not in self._values and len(self._values) < _MOST_SERIES:
                self._values[name] = array("d", [nan]) * len(self._times)
        is_full = len(self._times) == KEPT
        self._times.append(at_ms)
        for name, own in list(self._values.items()):
            own.append(values.get(name, nan))
            if is_full:
                del own[0]
            if isnan(own[-1]) and all(map(isnan, own)):
                del self._values[name]

    def series(self, name: str) -> Series:
        """Return one series. An unknown series consists of gaps only."""
        own = self._values.get(name)
        values: list[float | None] = [None] * len(self._times)
        if own is not None:
            values = [None if isnan(value) else value for value in own]
        return Series(times=list(self._times), values=values)

    def last(self, name: str) -> float | None:
        """Return the last value of a series, or None."""
        own = self._values.get(name)
        return None if own is None or isnan(own[-1]) else own[-1]


TOTAL: Final = ""
"""The name of the series that is the total of all topics."""


class Growth:
    """Tracks log growth in records per second, for partitions, topics and the cluster."""

    def __init__(self) -> None:
        self._looks: deque[tuple[int, Mapping[TopicPartition, int]]] = deque(maxlen=_LOOKS)
        self._book = SeriesBook()

    def add(self, at_ms: int, ends: Mapping[TopicPartition, int]) -> None:
        """Add the end offsets of the logs at one time."""
        before = self._looks[-1] if self._looks else None
        if before is not None and at_ms <= before[0]:
            return  # the clock was set back, so compare the next poll with the same one
        self._looks.append((at_ms, ends))
        if before is None:
            return
        seconds = (at_ms - before[0]) / 1000
        rates: dict[str, float] = {}
        for name, end in ends.items():
            was = before[1].get(name)
            # A log that ends earlier was truncated, or its topic was recreated.
            if was is not None and end >= was:
                rates[name.topic] = rates.get(name.topic, 0.0) + (end - was) / seconds
        self._book.add(at_ms, rates | {TOTAL: sum(rates.values())})

    def series(self, topic: str = TOTAL) -> Series:
        """Return the records per second of one topic, or of all topics together."""
        return self._book.series(topic)

    def of_topic(self, topic: str) -> float | None:
        """Return the current records per second of a topic."""
        return self._book.last(topic)

    def of_partition(self, name: TopicPartition) -> float | None:
        """Return the current records per second of a partition."""
        if len(self._looks) < 2:
            return None
        (first_ms, first), (last_ms, last) = self._looks[0], self._looks[-1]
        was, now = first.get(name), last.get(name)
        if was is None or now is None or now < was:
            return None
        return (now - was) / ((last_ms - first_ms) / 1000)


def total(numbers: Iterable[int | None]) -> int | None:
    """Return the sum of the known numbers, or None if no number is known."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
