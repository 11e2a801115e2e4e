"""Three brokers on one machine: replication factor 3, min.insync.replicas 2, acks=all.

    python -m benchmarks.cluster [--kafka] [--only WORD] [--scale S] [--rounds N] [--warm N]

The workloads of `workloads`; CPU seconds are those of all three brokers together, ZooKeeper's left
out. With --kafka three of a real Kafka 3.9.1 run beside them, in the same run.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import client_work
from benchmarks.bare_write import BareWrite
from benchmarks.brokers import Broker, barnabas_cluster, kafka_cluster
from benchmarks.client_work import Load
from benchmarks.figures import Figure, show
from benchmarks.warm_memory import WarmMemory
from benchmarks.workloads import LARGE, LZ4, SMALL, Plan, Transfer, arguments, measure

PLAN = Plan(
    (
        Transfer("100 B, large batches", Load(2_000_000, 100, 1, LARGE), 4, None, True, 80),
        Transfer("100 B, 16 KiB batches", Load(1_000_000, 100, 6, SMALL), 15, rate_goal=40),
        Transfer("1 KB", Load(500_000, 1000, 6, LARGE), 3, None, True, 200),
        Transfer("1 KB lz4", Load(500_000, 1000, 6, LZ4), None),
        Transfer("100 B, 100 partitions", Load(1_000_000, 100, 100, LARGE), 10, rate_goal=40),
    ),
    (1_000,),
    (0.5, 2.0),
    None,
    (0.8, 4.0),
)
IDLE_PARTITIONS = 1_000
IDLE_SECONDS = 20.0
MEGABYTE = 1 << 20


def main() -> None:
    parser = arguments()
    parser.add_argument("--kafka", action="store_true", help="three Kafkas beside them")
    options = parser.parse_args()
    try:
        run(options)
    except pytest.skip.Exception as missing:
        sys.exit(f"this cannot be measured here: {missing}")


def run(options: argparse.Namespace) -> None:
    prefix = "barnabas-benchmark-"
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix)))
        memory = stack.enter_context(WarmMemory(wanted=not options.cold))
        clusters = [stack.enter_context(barnabas_cluster(directory / "barnabas"))]
        if options.kafka:
            clusters.append(stack.enter_context(kafka_cluster(directory / "kafka")))
        floor = stack.enter_context(BareWrite(directory))
        figures = measure(clusters, options, memory, floor, PLAN)
        if not options.only or any(word in "idle" for word in options.only):
            figures += rest(clusters, options.scale)
    title = f"three brokers, acks=all, warm={options.warm}, {options.rounds} round(s)"
    show(title, figures, options.json, "Kafka 3.9.1" if options.kafka else "")


def rest(clusters: Sequence[Broker], scale: float) -> list[Figure]:
    """What they hold after all this, and what they do with many partitions and nothing to do."""
    resident = [cluster.resident_bytes() / MEGABYTE for cluster in clusters]
    idle = [_idle_cores(cluster, scale) for cluster in clusters]
    return [
        Figure("resident, three brokers", "MB", resident[0], 180.0, True, _other(resident)),
        Figure("idle, 1,000 partitions", "cores", idle[0], 0.03, True, _other(idle)),
    ]


def _idle_cores(cluster: Broker, scale: float) -> float:
    partitions = max(10, int(IDLE_PARTITIONS * min(1.0, scale)))
    client_work.create_topic(cluster.servers, "idle", partitions, cluster.replicas)
    time.sleep(5)
    before, began = cluster.cpu(), time.perf_counter()
    time.sleep(max(2.0, IDLE_SECONDS * min(1.0, scale)))
    cores = cluster.cpu().since(before).total / (time.perf_counter() - began)
    client_work.delete_topic(cluster.servers, "idle")
    return cores


def _other(values: Sequence[float]) -> float | None:
    return values[1] if len(values) > 1 else None


if __name__ == "__main__":
    main()
