"""The log of reads that fail: a line a minute for each partition."""

from __future__ import annotations

import pytest

from barnabas.broker.partitions.read_failures import ReadFailures
from barnabas.types import TopicPartition
from tests.kit.set_clock import SetClock

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_a_partition_has_a_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock = SetClock()
    failures = ReadFailures(clock)
    for name in (T0, T1):
        for _ in range(1000):
            failures.on_failure("read", name, ValueError("damage"))
    assert caplog.messages == ["read of t-0 failed: damage", "read of t-1 failed: damage"]
    caplog.clear()
    clock.at_ms += 60_000
    failures.on_failure("read", T0, ValueError("damage"))
    assert caplog.messages == ["read of t-0 failed: damage (999 more in the last minute)"]
