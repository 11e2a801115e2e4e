"""Counters, gauges and histograms as plain objects.

Whoever measures owns its metrics and counts on them directly; there is no registry. A reader (an
exporter, a test) walks the objects it was given. One event loop writes them, so there are no locks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence


class Counter:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def increment(self, amount: int = 1) -> None:
        assert amount >= 0, amount
        self.value += amount


class Gauge:
    """A number that is asked for when it is read, so that nothing has to keep it current."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], float]) -> None:
        self._read = read

    @property
    def value(self) -> float:
        return self._read()


class Histogram:
    """How often values fell into which range; `bounds` are the ranges' upper ends, included.

    What lies above the last bound is counted too, so `count` is always the sum of `buckets`.
    """

    __slots__ = ("bounds", "buckets", "count", "largest", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        assert list(bounds) == sorted(set(bounds)), f"bounds must ascend: {bounds}"
        self.bounds = tuple(bounds)
        self.buckets = [0] * (len(self.bounds) + 1)
        self.count = 0
        self.total = 0.0
        self.largest = 0.0

    def observe(self, value: float) -> None:
        self.buckets[bisect_left(self.bounds, value)] += 1
        self.count += 1
        self.total += value
        if value > self.largest:
            self.largest = value

    def quantile(self, share: float) -> float:
        """The upper end of the range in which the given share (0..1) of the values is reached.

        Above the last bound it is the largest value seen; without any values it is 0.
        """
        assert 0 <= share <= 1, share
        left = share * self.count
        for bound, inside in zip(self.bounds, self.buckets, strict=False):
            left -= inside
            if left <= 0:
                return min(bound, self.largest)
        return self.largest
