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

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import sub
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


# --- durations -----------------------------------------------------------------------------------

_WINDOW_NS = 300_000_000_000
_LOWEST_NS = 1_000
_BUCKETS = 112  # from a microsecond to four minutes; what takes longer is in the last one
_BOUNDS = [round(_LOWEST_NS * 2 ** (step / 4)) for step in range(_BUCKETS)]
QUANTILES = ((0.5, "0.50"), (0.75, "0.75"), (0.95, "0.95"), (0.98, "0.98"), (0.99, "0.99"),
             (0.999, "0.999"))  # fmt: skip
"""Those of Kafka's histograms, and how the JMX exporter labels them."""


class Durations:
    """How long something took, each time: counted in buckets, four to each doubling.

    Sums and counts are of all times. Quantiles are of the last five to ten minutes, so that they
    follow what happens, and over a longer time if no page was requested.
    """

    __slots__ = ("_older", "_recent", "_recent_from_ns", "counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * (_BUCKETS + 1)
        self.sum_ns = 0
        self._older: list[int] | None = None
        self._recent: list[int] | None = None
        self._recent_from_ns = 0

    def add(self, ns: int, times: int = 1) -> None:
        """Count a duration that was seen so many times."""
        self.counts[bisect_right(_BOUNDS, ns)] += times
        self.sum_ns += ns * times

    def lately(self, now_ns: int) -> list[int]:
        """The counts of the window, by bucket."""
        older = self._older
        found = self.counts if older is None else list(map(sub, self.counts, older))
        if now_ns - self._recent_from_ns >= _WINDOW_NS:
            if self._recent is not None:
                self._older = self._recent
            self._recent, self._recent_from_ns = self.counts.copy(), now_ns
        return found


def quantiles(counts: Sequence[int]) -> list[float]:
    """`QUANTILES` of these counts by bucket, in ms, each between its bucket's bounds; 0 of none."""
    total, found, below, bucket = sum(counts), [], 0, 0
    for quantile, _ in QUANTILES:
        wanted = quantile * total
        while bucket < _BUCKETS and below + counts[bucket] < wanted:
            below += counts[bucket]
            bucket += 1
        low = _BOUNDS[bucket - 1] if bucket else 0
        high = _BOUNDS[min(bucket, _BUCKETS - 1)]
        part = (wanted - below) / counts[bucket] if counts[bucket] else 0.0
        found.append((low + (high - low) * part) / 1e6)
    return found
