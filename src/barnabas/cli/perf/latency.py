"""Collects the latencies of many records in little memory, and formats them as lines. Pure.

Latencies are counted in steps of a tenth of a millisecond. Percentiles have this precision for any
number of records, and the average and the maximum are exact. Two windows are merged by adding their
counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

_MEBIBYTE = 1 << 20
_STEPS_PER_MS = 10
_SHARES = (("50th", 0.5), ("95th", 0.95), ("99th", 0.99), ("99.9th", 0.999))


class Latencies:
    """Counts latencies in tenths of a millisecond. Memory use grows only with their spread."""

    def __init__(self) -> None:
        self._steps: Counter[int] = Counter()
        self._sum_ms = 0.0
        self.count = 0
        self.max_ms = 0.0

    def add(self, sent_at_s: Iterable[float], done_at_s: float) -> None:
        """Add records sent at these times and acknowledged at `done_at_s`, all in seconds on one
        clock.
        """
        taken_ms = [(done_at_s - sent_at) * 1000 for sent_at in sent_at_s]
        self._steps.update([int(each * _STEPS_PER_MS) for each in taken_ms])
        self._sum_ms += sum(taken_ms)
        self.count += len(taken_ms)
        self.max_ms = max(self.max_ms, max(taken_ms, default=0.0))

    def merge(self, other: Latencies) -> None:
        self._steps.update(other._steps)
        self._sum_ms += other._sum_ms
        self.count += other.count
        self.max_ms = max(self.max_ms, other.max_ms)

    @property
    def average_ms(self) -> float:
        return self._sum_ms / self.count if self.count else 0.0

    def percentile_ms(self, share: float) -> float:
        """Return the latency that this share of records did not exceed, to the tenth of a
        millisecond.
        """
        # Add the counts in ascending order until they reach this share of the records.
        missing = share * self.count
        for step, count in sorted(self._steps.items()):
            missing -= count
            if missing <= 0:
                return step / _STEPS_PER_MS
        return 0.0

    def line(self, record_bytes: int, seconds: float) -> str:
        """Return the line that `kafka-producer-perf-test.sh` prints every five seconds."""
        rate = self.count / seconds if seconds > 0 else 0.0
        return (
            f"{self.count} records sent, {rate:.1f} records/sec "
            f"({rate * record_bytes / _MEBIBYTE:.2f} MB/sec), "
            f"{self.average_ms:.1f} ms avg latency, {self.max_ms:.1f} ms max latency."
        )

    def summary(self, record_bytes: int, seconds: float) -> str:
        """Return the tool's last line. Unlike in Kafka's tool, the percentiles keep their
        tenths.
        """
        rate = self.count / seconds if seconds > 0 else 0.0
        percentiles = ", ".join(
            f"{self.percentile_ms(share):.1f} ms {name}" for name, share in _SHARES
        )
        return (
            f"{self.count} records sent, {rate:.1f} records/sec "
            f"({rate * record_bytes / _MEBIBYTE:.2f} MB/sec), "
            f"{self.average_ms:.2f} ms avg latency, {self.max_ms:.2f} ms max latency, "
            f"{percentiles}."
        )
