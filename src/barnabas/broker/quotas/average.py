"""An average over the last windows, as Kafka keeps it for throttle times. Pure."""

from __future__ import annotations

from barnabas.broker.quotas.rate import Windows


class Average:
    """The average of what was recorded; it costs nothing as long as nothing is."""

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
        """0 without values."""
        self._forget(now_ms)
        count = sum([each[2] for each in self._samples])
        return sum([each[1] for each in self._samples]) / count if count else 0.0

    def _forget(self, now_ms: int) -> None:
        oldest_ms = now_ms - self._windows.kept * self._windows.length_ms
        while self._samples and self._samples[0][0] <= oldest_ms:
            del self._samples[0]
