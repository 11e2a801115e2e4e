"""Measures how long `consume` has waited for a record."""

from __future__ import annotations

from barnabas.client.consumer.consumer import Consumer
from barnabas.clock import SystemClock

JOIN_MS = 10_000
"""How long a private group may take to form before waiting for records counts as silence."""


class Silence:
    """Measures the time without records, which `--timeout-ms` limits. The time that it takes to
    join a group counts, but a private group is allowed some extra time.
    """

    def __init__(self, consumer: Consumer, limit_ms: int | None, join_ms: int) -> None:
        """`join_ms` is the extra time for a private group. If it is 0, joining counts as
        silence.
        """
        self._consumer = consumer
        self._limit_ms = limit_ms
        self._join_ms = join_ms
        self._clock = SystemClock()
        self._since_ms = self._clock.monotonic_ms()

    def left_ms(self, most_ms: int) -> int:
        """Return how long to wait for records, at most `most_ms`. If the result is 0 or less, the
        time is up.
        """
        if self._limit_ms is None:
            return most_ms
        now_ms = self._clock.monotonic_ms()
        # The command has just become a member, so its time limit for records starts now.
        if self._join_ms and self._consumer.group_metadata().generation >= 0:
            self._since_ms, self._join_ms = now_ms, 0
        return min(most_ms, self._since_ms + self._join_ms + self._limit_ms - now_ms)

    def on_record(self) -> None:
        """Restart the measurement when a record arrives."""
        self._since_ms = self._clock.monotonic_ms()
