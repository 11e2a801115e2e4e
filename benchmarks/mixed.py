"""What producers get from a cluster of Kafka's brokers and ours, beside clusters of one kind.

    python -m benchmarks.mixed [--scale S] [--rounds N] [--json FILE]

Three brokers on one ZooKeeper, replication factor 3, min.insync.replicas 2, acks=all, librdkafka.
None, one, two and all of them are ours; the others are Kafka 3.9.1 with the JVM options of its
start script and 600 MB of heap. Each cluster is started for its round alone and warmed up, so no
other broker takes the cores. The goal is at most a tenth below the slower of the two pure clusters.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

import pytest

from benchmarks import client_work
from benchmarks.brokers import KAFKA_JVM
from benchmarks.client_work import Load
from benchmarks.figures import Figure, parser_of, show
from benchmarks.workloads import LARGE, SMALL
from tests.kit.processes.mixed_cluster import Kind, mixed_cluster

LOADS = {
    "100 B, 16 KiB batches, 6 partitions": Load(500_000, 100, 6, SMALL),
    "1 KB, 6 partitions": Load(300_000, 1000, 6, LARGE),
    "1 KB, 6 partitions, idempotent": Load(300_000, 1000, 6, {**LARGE, "enable.idempotence": True}),
}
ROUNDS = 3
BROKERS = 3
_OPTIONS = ("min.insync.replicas=2", "auto.create.topics.enable=false")
_MEGABYTE = 1e6


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="more or fewer records")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of which medians are shown")
    options = parser.parse_args()
    try:
        figures = measure(options.scale, options.rounds)
    except pytest.skip.Exception as missing:
        sys.exit(f"this cannot be measured here: {missing}")
    show(f"a mixed cluster, {options.rounds} round(s)", figures, options.json)


def measure(scale: float, rounds: int) -> list[Figure]:
    found: dict[tuple[str, int], list[float]] = {}
    for number in range(rounds):
        # Every other round runs the other way, so that no mix always has the fresher memory.
        mixes = range(BROKERS + 1) if number % 2 == 0 else reversed(range(BROKERS + 1))
        for ours in mixes:
            for name, rate in _rates(ours, scale).items():
                found.setdefault((name, ours), []).append(rate)
    medians = {key: statistics.median(rates) for key, rates in found.items()}
    return [figure for name in LOADS for figure in _figures(name, medians)]


def _rates(ours: int, scale: float) -> dict[str, float]:
    """The megabytes of values that each load writes in a second."""
    kinds: dict[int, Kind] = {
        number: "ours" if number <= ours else "kafka" for number in range(1, BROKERS + 1)
    }
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as directory,
        mixed_cluster(Path(directory), kinds, *_OPTIONS, jvm=KAFKA_JVM) as cluster,
    ):
        servers, rates = cluster.bootstrap_servers, {}
        for number, (name, load) in enumerate(LOADS.items()):
            topic = f"rate-{number}"
            client_work.create_topic(servers, topic, load.partitions, BROKERS)
            scaled = load._replace(records=max(1000, int(load.records * scale)))
            # Kafka's compiler is at work in the first seconds.
            client_work.produce(servers, topic, scaled)
            seconds = client_work.produce(servers, topic, scaled)
            rates[name] = scaled.records * scaled.size / seconds / _MEGABYTE
    return rates


def _figures(name: str, medians: dict[tuple[str, int], float]) -> list[Figure]:
    slower = min(medians[name, 0], medians[name, BROKERS])
    return [
        Figure(
            f"{name}: {ours} of {BROKERS} are Barnabas",
            "MB/s",
            medians[name, ours],
            0.9 * slower if 0 < ours < BROKERS else None,
            at_most=False,
        )
        for ours in range(BROKERS + 1)
    ]


if __name__ == "__main__":
    main()
