"""Counters, and the registry of families."""

from __future__ import annotations

from barnabas.metrics import Counter, Family, Registry, Sample


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
