"""Counters, durations, and the registry of families."""

from __future__ import annotations

import pytest

from barnabas.metrics import (
    QUANTILES,
    Counter,
    Durations,
    Family,
    Registry,
    Sample,
    quantiles,
)


def families(registry: Registry) -> dict[str, tuple[str, str, list[Sample]]]:
    found = [family for read in registry for family in read()]
    return {each.name: (each.type, each.help, list(each.samples)) for each in found}


def test_a_counter_grows() -> None:
    counter = Counter()
    counter.increment()
    counter.increment(4)
    assert counter.value == 5


def test_what_is_declared_is_read_as_it_is_then() -> None:
    """IN-3: a counter by its part, a gauge by a function, several families by one."""
    registry = Registry()
    shrinks = registry.counter("kafka.server:type=ReplicaManager,name=IsrShrinksPerSec", "Shrinks")
    queue = [1, 2, 3]
    registry.gauge("barnabas_queue", "What waits", lambda: len(queue))
    registry.declare(lambda: [Family("own", "gauge", "Its own", [Sample(7, (("a", "b"),))])])
    shrinks.increment(2)
    queue.clear()
    assert families(registry) == {
        "kafka_server_replicamanager_isrshrinks_total": (
            "counter",
            "Shrinks (kafka.server:type=ReplicaManager,name=IsrShrinksPerSec)",
            [Sample(2)],
        ),
        "barnabas_queue": ("gauge", "What waits", [Sample(0)]),
        "own": ("gauge", "Its own", [Sample(7, (("a", "b"),))]),
    }


# --- durations -----------------------------------------------------------------------------------


def test_quantiles_are_within_a_fifth_of_the_truth() -> None:
    durations = Durations()
    for ms in range(1, 1_001):
        durations.add(ms * 1_000_000)
    found = dict(zip((each for each, _ in QUANTILES), quantiles(durations.lately(0)), strict=True))
    for quantile, value in found.items():
        assert 0.81 * quantile * 1_000 < value < 1.19 * quantile * 1_000, quantile
    assert durations.sum_ns == 500_500_000_000
    assert quantiles(Durations().lately(0)) == [0.0] * len(QUANTILES)


@pytest.mark.parametrize("ns", [0, 999, 1_000, 10**15])
def test_what_takes_no_time_or_for_ever_is_counted_too(ns: int) -> None:
    durations = Durations()
    durations.add(ns, 3)
    counts = durations.lately(0)
    assert sum(counts) == 3
    low, high = (0, 0.001) if ns < 1_000 else (0.001, 300_000)
    assert all(low <= each <= high for each in quantiles(counts))


def test_quantiles_follow_what_happens() -> None:
    """Of the last five to ten minutes: what was slow once is forgotten, and the sum is not."""
    minute = 60 * 10**9
    durations = Durations()
    durations.add(10**9, 100)
    start = 100 * minute
    assert sum(durations.lately(start)) == 100
    durations.add(10**6, 10)
    assert sum(durations.lately(start + 4 * minute)) == 110
    assert sum(durations.lately(start + 6 * minute)) == 110
    assert sum(durations.lately(start + 7 * minute)) == 10
    durations.add(10**6, 5)
    assert sum(durations.lately(start + 12 * minute)) == 15
    assert sum(durations.lately(start + 13 * minute)) == 5
    assert sum(durations.counts) == 115 and durations.sum_ns == 100 * 10**9 + 15 * 10**6
