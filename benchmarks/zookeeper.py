"""What our own ZooKeeper server takes for reads and writes, beside Java's in the same run.

    python -m benchmarks.zookeeper [--starts N] [--seconds S] [--json FILE]

Both servers run on the first core and the load on the last one, in a process of its own that only
counts bytes (`zookeeper_load`); one server rests while the other is loaded. Java's has its usual
compiler and syncs its log, as ours does. Ready is from the start of the process until it answers,
on all cores; of a cluster, from `barnabas cluster start` until its ready line. A multi changes ten
nodes, which counts as ten writes. "4 x 50" are four connections with windows of 50 requests each; a
percentile is that of a whole window.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.accounting import resident_bytes
from benchmarks.figures import Figure, parser_of, show
from benchmarks.zookeeper_load import CHANGES, Outcome
from tests.kit.processes.local_cluster import local_cluster
from tests.kit.processes.own_zookeeper_process import OwnZooKeeperProcess
from tests.kit.processes.zookeeper_process import KeeperProcess, ZooKeeperProcess, running

STARTS = 5
SECONDS = 5.0
MEGABYTE = 1e6
_SYNCED = ("-XX:TieredStopAtLevel=4", "-Dzookeeper.forceSync=yes")
_CORES = sorted(os.sched_getaffinity(0))
_WARM_UP_SHARE = 0.6  # Java's compiler is at work in the first seconds


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--starts", type=int, default=STARTS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each load")
    options = parser.parse_args()
    try:
        run(options)
    except pytest.skip.Exception as missing:
        sys.exit(f"this cannot be measured here: {missing}")


def run(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as name:
        figures = measure(Path(name), options.starts, options.seconds)
    title = f"a ZooKeeper server on core {_CORES[0]}, its load on core {_CORES[-1]}"
    show(title, figures, options.json, "Java's")


def measure(directory: Path, starts: int, seconds: float) -> list[Figure]:
    ready = [
        statistics.median(_ready_ms(OwnZooKeeperProcess(directory / "a")) for _ in range(starts)),
        statistics.median(
            _ready_ms(ZooKeeperProcess(directory / "b", java_options=_SYNCED))
            for _ in range(min(3, starts))
        ),
    ]
    clusters = [
        statistics.median(
            _cluster_ready_ms(directory / f"{own}-{number}", own) for number in range(starts)
        )
        for own in (True, False)
    ]
    with contextlib.ExitStack() as stack:
        with _on_core(_CORES[0]):
            servers = [
                stack.enter_context(running(OwnZooKeeperProcess(directory / "c"))),
                stack.enter_context(
                    running(ZooKeeperProcess(directory / "d", java_options=_SYNCED))
                ),
            ]
        resident = [_resident_megabytes(each) for each in servers]
        stack.enter_context(_on_core(_CORES[-1]))
        outcomes = [_measure(load, servers, seconds) for load in LOADS]
        after = [_resident_megabytes(each) for each in servers]
    return [
        Figure("ready", "ms", ready[0], 100, True, ready[1]),
        Figure("ready with three brokers", "ms", clusters[0], 600, True, clusters[1]),
        Figure("resident, ready", "MB", resident[0], 40, True, resident[1]),
        *(row for pair in zip(LOADS, outcomes, strict=True) for row in _figures(*pair)),
        _most_busy(outcomes),
        Figure("resident after all this", "MB", after[0], 40, True, after[1]),
    ]


class Load(NamedTuple):
    """What is asked, over how many connections, and how many requests are under way on each."""

    what: str
    kind: str
    connections: int
    window: int
    goal: float | None = None
    """Operations per second."""


LOADS = (
    Load("writes in multis of 10", "multi", 4, 10, 5_000),
    Load("writes in multis of 10", "multi", 16, 1),
    Load("writes", "set", 4, 50),
    Load("writes", "set", 1, 1),
    Load("reads", "get", 4, 50, 20_000),
    Load("reads", "get", 1, 1),
)


def _measure(load: Load, servers: list[KeeperProcess], seconds: float) -> list[Outcome]:
    """One server after the other, each after a shorter load that warms it up."""
    found = []
    for server in servers:
        _loaded(load, server, seconds * _WARM_UP_SHARE)
        found.append(_loaded(load, server, seconds))
    return found


def _figures(load: Load, found: list[Outcome]) -> list[Figure]:
    name = f"{load.what}, {load.connections} x {load.window}"
    writes = CHANGES if load.kind == "multi" else 1
    rates = [each.rate * writes for each in found]
    rows = [Figure(name, "/s", rates[0], load.goal, False, rates[1])]
    if load.kind == "multi":
        rows.append(_row(f"{name}: multis", "/s", [each.rate for each in found]))
    cpu_us = [1e6 * each.server_cpu_seconds / each.requests for each in found]
    return [
        *rows,
        _row(f"{name}: p50", "ms", [each.p50_ms for each in found]),
        _row(f"{name}: p99", "ms", [each.p99_ms for each in found]),
        _row(f"{name}: server's CPU for a request", "us", cpu_us),
    ]


def _row(what: str, unit: str, values: Sequence[float]) -> Figure:
    return Figure(what, unit, values[0], other=values[1])


def _most_busy(outcomes: Sequence[list[Outcome]]) -> Figure:
    """Below 100 %, the load was not what limited the rates."""
    shares = [[100 * each.load_cpu_seconds / each.seconds for each in pair] for pair in outcomes]
    most = [max(column) for column in zip(*shares, strict=True)]
    return _row("the load's core, at its busiest", "%", most)


def _loaded(load: Load, server: KeeperProcess, seconds: float) -> Outcome:
    assert server.process is not None
    arguments = (server.port, server.process.pid, load.kind, load.connections, load.window, seconds)
    command = [sys.executable, "-m", "benchmarks.zookeeper_load", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return Outcome(**json.loads(done.stdout))


@contextlib.contextmanager
def _on_core(core: int) -> Iterator[None]:
    """Processes that are started now remain on this core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _ready_ms(server: KeeperProcess) -> float:
    began = time.perf_counter()
    with running(server):
        return (time.perf_counter() - began) * 1000


def _cluster_ready_ms(directory: Path, own: bool) -> float:
    directory.mkdir()
    with local_cluster(directory, javas_zookeeper=not own) as cluster:
        began = time.perf_counter()
        cluster.start("--brokers", "3")
        took_ms = (time.perf_counter() - began) * 1000
        cluster.stop()
    return took_ms


def _resident_megabytes(server: KeeperProcess) -> float:
    assert server.process is not None
    return resident_bytes(server.process.pid) / MEGABYTE


if __name__ == "__main__":
    main()
