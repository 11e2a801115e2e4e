"""Metrics: counters, and the registry of families of numbers.

A part of a broker is given the broker's one registry and declares its families there, beside the
code that counts. What happens is counted: a counter costs one addition. What can be read from state
is not counted but read when a page is rendered. One event loop writes counters, so there are no
locks.

    registry.counter("kafka.server:type=ReplicaManager,name=IsrShrinksPerSec", "ISR shrinks")
    registry.gauge("kafka.server:type=ReplicaManager,name=PartitionCount", "Replicas", self.count)
    registry.declare(self._families)        # several families of one walk, or with labels

A family is declared under the name of Kafka's MBean, and has the name that the JMX exporter's
example configuration for Kafka (kafka-2_0_0.yml) makes of that, so that dashboards and alerts
written for it work. All in lower case; `PerSec` becomes `_total`, of which Prometheus takes the
rate; the MBean's name stands in the help. What Kafka has no MBean for is declared under its own
name.

    kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions
        kafka_server_replicamanager_underreplicatedpartitions
    kafka.server:type=ReplicaManager,name=IsrShrinksPerSec
        kafka_server_replicamanager_isrshrinks_total
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple


class Counter:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def increment(self, amount: int = 1) -> None:
        assert amount >= 0, amount
        self.value += amount


class Sample(NamedTuple):
    """One number of a family, identified by its labels."""

    value: float
    labels: tuple[tuple[str, str], ...] = ()
    suffix: str = ""
    """Follows the family's name: `_sum` and `_count` of a summary."""


class Family(NamedTuple):
    """All numbers of one name, as they are at this moment.

    `samples` may be a generator: it is asked in slices, between which other tasks run, so it walks
    a copy of what may change.
    """

    name: str
    type: str  # gauge, counter or summary
    help: str
    samples: Iterable[Sample]


Read = Callable[[], Iterable[Family]]
"""Returns families as they are now. Called for each page, in the broker's loop."""


class Registry:
    """All families of one broker. A part declares its own once, when it is made."""

    __slots__ = ("_reads",)

    def __init__(self) -> None:
        self._reads: list[Read] = []

    def declare(self, read: Read) -> None:
        """Add the families that `read` returns; no other part may declare one of their names."""
        self._reads.append(read)

    def counter(self, name: str, sentence: str) -> Counter:
        """Declare a counter and return it, for its part to increment."""
        counter = Counter()
        self.declare(partial(_counted, name, sentence, counter))
        return counter

    def gauge(self, name: str, sentence: str, read: Callable[[], float]) -> None:
        """Declare a gauge whose one number `read` returns."""
        self.declare(partial(_read, name, sentence, read))

    def __iter__(self) -> Iterator[Read]:
        return iter(self._reads)


def gauge(name: str, sentence: str, samples: Iterable[Sample]) -> Family:
    """A family of numbers that rise and fall, by its MBean or by its own name."""
    return Family(*_named(name, sentence, "gauge"), samples)


def counter(name: str, sentence: str, samples: Iterable[Sample]) -> Family:
    """A family of numbers that only grow, by its MBean or by its own name."""
    return Family(*_named(name, sentence, "counter"), samples)


def summary(name: str, sentence: str, samples: Iterable[Sample]) -> Family:
    """A family of quantiles, sums and counts, by its MBean or by its own name."""
    return Family(*_named(name, sentence, "summary"), samples)


def _counted(name: str, sentence: str, counted: Counter) -> Iterable[Family]:
    return (counter(name, sentence, (Sample(counted.value),)),)


def _read(name: str, sentence: str, read: Callable[[], float]) -> Iterable[Family]:
    return (gauge(name, sentence, (Sample(read()),)),)


def _named(name: str, sentence: str, kind: str) -> tuple[str, str, str]:
    """The name, the type and the help of a family."""
    domain, colon, properties = name.partition(":")
    if not colon:
        return name, kind, sentence
    parts = (each.partition("=")[2] for each in properties.split(","))
    exported = "_".join((domain.replace(".", "_"), *parts)).lower()
    if kind == "counter":
        exported = f"{exported.removesuffix('persec')}_total"
    return exported, kind, f"{sentence} ({name})"
