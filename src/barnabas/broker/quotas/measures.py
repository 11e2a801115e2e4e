"""Implements the measures that Kafka uses for quotas: a rate, a token bucket and an average.

A rate is computed from several samples, each one window long, and from the time that they cover:

    |  sample  |  sample  |  sample  | current |
    oldest start <------------ covered -------> now      at least (count - 1) windows

A sample begins with the first value after the end of the previous sample, and lasts for one window.
A pause therefore leaves a gap between two samples, and the gap is part of the measured time.
Samples that were last written `count` windows ago are obsolete. A burst is measured over at least
`count - 1` windows. Otherwise, the first request after a pause would look like a high rate.

Topic changes are measured by a token bucket (KIP-599). It is filled at the rate of the limit until
it is full. A single request of any size may overdraw it. After that, nothing is admitted until the
bucket is no longer below zero.

The measures never read a clock. The time is passed to every call, and must not decrease.
"""

from __future__ import annotations

from math import floor

from barnabas.named_tuple import NamedTuple

MAX_THROTTLE_MS = 2**31 - 1
"""The longest throttle time that a response can contain."""


class Windows(NamedTuple):
    """The number of samples that are kept, and the length of each sample."""

    kept: int = 11
    length_ms: int = 1_000

    @property
    def sure_s(self) -> float:
        """Return the shortest time over which a rate can be measured."""
        return (self.kept - 1) * self.length_ms / 1_000


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class Rate:
    """A measured rate, in units per second."""

    __slots__ = ("_current", "_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Count a value. A negative value undoes an earlier count."""
        samples = self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        # As in Kafka's SampledStat, a sample does not end with its window but with the first value
        # after the window.
        if now_ms - sample.start_ms >= self._windows.length_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def _advance(self, now_ms: int) -> _Sample:
        # Keep one sample more than the count, because the oldest may overlap the measured time.
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
        """Return the time over which the rate is measured, which is at least 1."""
        count, length_ms = self._windows
        if not self._samples:
            return max(1, (count - 1) * length_ms)
        for sample in self._samples:
            if now_ms - sample.last_ms >= count * length_ms:
                sample.reset(now_ms)
        passed_ms = now_ms - min([sample.start_ms for sample in self._samples])
        # Use at least `count - 1` windows, like Kafka's Rate. Otherwise, a burst after a pause
        # would look like a high rate over a short time.
        full = passed_ms // length_ms
        if full < count - 1:
            passed_ms += (count - 1 - full) * length_ms
        return max(1, passed_ms)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Return how long to remain idle until the rate has fallen to the limit, or 0 if it is not
        above the limit.

        If the limit is 0, any usage exceeds it, however long the client waits.
        """
        observed = self.per_second(now_ms)
        if observed <= max(0.0, limit):
            return 0
        if limit <= 0:
            return MAX_THROTTLE_MS
        # As in Kafka's QuotaUtils, the rate over both periods equals the limit after this time
        # without values.
        over = (observed - limit) / limit
        return floor(min(over * self.covered_ms(now_ms) + 0.5, MAX_THROTTLE_MS))


class TokenBucket:
    """A token bucket for all clients that share a limit. It is full at first."""

    __slots__ = ("_at_ms", "_burst_s", "_tokens")

    def __init__(self, windows: Windows) -> None:
        self._burst_s = windows.kept * windows.length_ms / 1_000
        self._tokens: float | None = None
        self._at_ms = 0

    def tokens(self, limit: float, now_ms: int) -> float:
        """Return the number of tokens after filling the bucket at this rate per second. The number
        is negative if the bucket is overdrawn.
        """
        burst = self._burst_s * limit
        if self._tokens is None:
            self._tokens = burst
        else:
            self._tokens = min(burst, self._tokens + limit * (now_ms - self._at_ms) / 1_000)
        self._at_ms = now_ms
        return self._tokens

    def take(self, count: float, limit: float, now_ms: int) -> None:
        """Take tokens out of the bucket, even if this overdraws it."""
        self._tokens = self.tokens(limit, now_ms) - count

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Return the time until the bucket is no longer overdrawn, or 0 if it is not overdrawn."""
        missing = -self.tokens(limit, now_ms)
        if missing <= 0:
            return 0
        if limit <= 0:
            return MAX_THROTTLE_MS
        return floor(min(missing / limit * 1_000 + 0.5, MAX_THROTTLE_MS))


class Average:
    """The average of the values recorded in the last few windows. Kafka averages throttle times in
    the same way.

    As long as no values are recorded, it costs nothing.
    """

    __slots__ = ("_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[tuple[int, float, int]] = []  # start, sum, count; the oldest first

    def record(self, value: float, now_ms: int) -> None:
        self._forget(now_ms)
        if self._samples and now_ms - self._samples[-1][0] < self._windows.length_ms:
            start_ms, total, count = self._samples[-1]
            self._samples[-1] = start_ms, total + value, count + 1
        else:
            self._samples.append((now_ms, value, 1))

    def value(self, now_ms: int) -> float:
        """Return the average, or 0 if no values have been recorded."""
        self._forget(now_ms)
        count = sum([each[2] for each in self._samples])
        return sum([each[1] for each in self._samples]) / count if count else 0.0

    def _forget(self, now_ms: int) -> None:
        oldest_ms = now_ms - self._windows.kept * self._windows.length_ms
        while self._samples and self._samples[0][0] <= oldest_ms:
            del self._samples[0]
