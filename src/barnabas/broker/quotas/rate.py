"""A rate as Kafka measures it for quotas: by samples of a window each, over the time they cover.

    |  sample  |  sample  |  sample  | current |
    oldest start <------------ covered -------> now      at least (count - 1) windows

A sample begins with the first value after the end of the one before, and lasts a window. So a pause
leaves a gap between two samples, and the time without values counts. Samples that were last written
`count` windows ago are obsolete. Pure.
"""

from __future__ import annotations

from math import floor
from typing import NamedTuple

MAX_THROTTLE_MS = 2**31 - 1
"""The longest throttle time that an answer can name."""


class Windows(NamedTuple):
    """How many samples are kept, and how long each is."""

    kept: int = 11
    length_ms: int = 1_000

    @property
    def sure_s(self) -> float:
        """The least time over which a rate is measured."""
        return (self.kept - 1) * self.length_ms / 1_000


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class Rate:
    """Units per second."""

    __slots__ = ("_current", "_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Count a value; a negative one takes back what was counted."""
        samples = self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        if now_ms - sample.start_ms >= self._windows.length_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def _advance(self, now_ms: int) -> _Sample:
        # One more than the count: the oldest may still reach into the time that is measured.
        self._current = (self._current + 1) % (self._windows.kept + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def per_second(self, now_ms: int) -> float:
        covered_ms = self.covered_ms(now_ms)
        return sum([sample.value for sample in self._samples]) * 1_000 / covered_ms

    def covered_ms(self, now_ms: int) -> int:
        """The time over which the rate is measured, at least 1."""
        count, length_ms = self._windows
        if not self._samples:
            return max(1, (count - 1) * length_ms)
        for sample in self._samples:
            if now_ms - sample.last_ms >= count * length_ms:
                sample.reset(now_ms)
        passed_ms = now_ms - min([sample.start_ms for sample in self._samples])
        full = passed_ms // length_ms
        if full < count - 1:
            passed_ms += (count - 1 - full) * length_ms
        return max(1, passed_ms)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long nothing must come for the rate to be at the limit; 0 if it is not above.

        With a limit of 0 whatever came is too much for ever.
        """
        observed = self.per_second(now_ms)
        if observed <= max(0.0, limit):
            return 0
        if limit <= 0:
            return MAX_THROTTLE_MS
        over = (observed - limit) / limit
        return floor(min(over * self.covered_ms(now_ms) + 0.5, MAX_THROTTLE_MS))
