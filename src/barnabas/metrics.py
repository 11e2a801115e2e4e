"""Defines metrics: counters, and the registry of metric families.

Each part of a broker declares its families in the broker's registry, next to the code that does the
counting. Counting an event costs one addition. Values that can be derived from existing state are
read when a page is rendered. All counters are updated on one event loop, so no locks are needed.

    registry.counter("kafka.server:type=ReplicaManager,name=IsrShrinksPerSec", "ISR shrinks")
    registry.gauge("kafka.server:type=ReplicaManager,name=PartitionCount", "Replicas", self.count)
    registry.declare(self._families)        # several families read in one pass, or with labels

A family is declared under the name of Kafka's MBean. It gets the name that the JMX exporter's
example configuration for Kafka (kafka-2_0_0.yml) derives from the MBean's name, so that dashboards
and alerts written for Kafka work. The name is in lower case, and `PerSec` becomes `_total`, from
which Prometheus computes the rate. The help contains the MBean's name. A family that has no MBean
in Kafka is declared under our own name.

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

from barnabas.named_tuple import NamedTuple


class Counter:
    """A number that only increases."""

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
    """The suffix appended to the family's name: `_sum` and `_count` for a summary."""


class Family(NamedTuple):
    """All numbers with the same name, at one moment.

    `samples` may be a generator. It is consumed in slices, and other tasks run between the slices,
    so it must iterate over a copy of anything that may change.
    """

    name: str
    type: str  # gauge, counter or summary
    help: str
    samples: Iterable[Sample]


Read = Callable[[], Iterable[Family]]
"""Returns the current families. Called for each page, in the broker's loop."""


class Registry:
    """Holds all families of one broker.

    Each part declares its families once, when it is created.
    """

    __slots__ = ("_reads",)

    def __init__(self) -> None:
        self._reads: list[Read] = []

    def declare(self, read: Read) -> None:
        """Add the families that `read` returns. No other part may declare a family with one of
        their names.
        """
        self._reads.append(read)

    def counter(self, name: str, sentence: str) -> Counter:
        """Declare and return a counter; the caller increments it."""
        counter = Counter()
        self.declare(partial(_counted, name, sentence, counter))
        return counter

    def gauge(self, name: str, sentence: str, read: Callable[[], float]) -> None:
        """Declare a gauge with a single value, returned by `read`."""
        self.declare(partial(_read, name, sentence, read))

    def __iter__(self) -> Iterator[Read]:
        return iter(self._reads)


def gauge(name: str, sentence: str, samples: Iterable[Sample]) -> Family:
    """Return a family of numbers that can rise and fall, named after its MBean or by its
    own name.
    """
    return Family(*_named(name, sentence, "gauge"), samples)


def counter(name: str, sentence: str, samples: Iterable[Sample]) -> Family:
    """Return a family of numbers that only increase, named after its MBean or by its own name."""
    return Family(*_named(name, sentence, "counter"), samples)


def summary(name: str, sentence: str, samples: Iterable[Sample]) -> Family:
    """Return a family of quantiles, sums and counts, named after its MBean or by its own name."""
    return Family(*_named(name, sentence, "summary"), samples)


def _counted(name: str, sentence: str, counted: Counter) -> Iterable[Family]:
    return (counter(name, sentence, (Sample(counted.value),)),)


def _read(name: str, sentence: str, read: Callable[[], float]) -> Iterable[Family]:
    return (gauge(name, sentence, (Sample(read()),)),)


def _named(name: str, sentence: str, kind: str) -> tuple[str, str, str]:
    """Return the name, the type and the help of a family."""
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
_BUCKETS = 112  # from a microsecond to four minutes; longer durations are in the last bucket
_BOUNDS = [round(_LOWEST_NS * 2 ** (step / 4)) for step in range(_BUCKETS)]
QUANTILES = ((0.5, "0.50"), (0.75, "0.75"), (0.95, "0.95"), (0.98, "0.98"), (0.99, "0.99"),
             (0.999, "0.999"))  # fmt: skip
"""The quantiles in Kafka's histograms, with the labels that the JMX exporter gives them."""


class Durations:
    """Records the durations of repeated work in buckets, with four buckets per doubling.

    Sums and counts include all durations. Quantiles include only the last five to ten minutes, so
    that they follow changes; they include a longer period if no page was requested.
    """

    __slots__ = ("_older", "_recent", "_recent_from_ns", "counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * (_BUCKETS + 1)
        self.sum_ns = 0
        self._older: list[int] | None = None
        self._recent: list[int] | None = None
        self._recent_from_ns = 0

    def add(self, ns: int, times: int = 1) -> None:
        """Count a duration that occurred `times` times."""
        self.counts[bisect_right(_BOUNDS, ns)] += times
        self.sum_ns += ns * times

    def lately(self, now_ns: int) -> list[int]:
        """Return the counts of the current window, by bucket."""
        older = self._older
        found = self.counts if older is None else list(map(sub, self.counts, older))
        if now_ns - self._recent_from_ns >= _WINDOW_NS:
            if self._recent is not None:
                self._older = self._recent
            self._recent, self._recent_from_ns = self.counts.copy(), now_ns
        return found


def quantiles(counts: Sequence[int]) -> list[float]:
    """Return the `QUANTILES` in ms, computed from these counts by bucket. Each quantile lies within
    the bounds of its bucket, and is 0 if there are no counts.
    """
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
