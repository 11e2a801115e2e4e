"""How close Barnabas is to the limit of one Python event loop, in one run with a bare server.

    python -m benchmarks.pipelined [--only 100B|16K|128K|fetch|lone] [--seconds N] [--json FILE]

The same raw client sends the same frames to both in turn, over one connection that is never idle;
rates are the median of the rounds, ratios the median of the ratios round by round. The client has
a core of its own and hardly uses it, so the server is what is measured. CPU per request is the
server process's own, user and system; "per CPU second" is its inverse, the rate of a loop that has
a core to itself, which on a busy machine the rate is not.

`lone` is one 100-byte record after the other, each sent when the last one is answered: what a
request costs when nothing is there to share it, beside the same round trip to the bare server.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.accounting import cpu_seconds
from benchmarks.bare_server import __file__ as _bare_server
from benchmarks.client_work import create_topic, end_offset
from benchmarks.figures import Figure, parser_of, show
from benchmarks.raw_client import (
    Frames,
    Pipeline,
    Run,
    batch_of,
    fetch_frame,
    fill,
    produce_frame,
)
from benchmarks.warm_memory import WarmMemory
from tests.kit.processes.broker_process import BrokerProcess, broker_process

COMMAND = "python -m benchmarks.pipelined"
ROUNDS = 4
MEBIBYTE = 1 << 20
FETCHED_BYTES = 256 * MEBIBYTE
FETCHED_BATCH_BYTES = 16 * 1024


class Case(NamedTuple):
    """What is sent: how large the batches are, how many requests go at once."""

    name: str
    batch_bytes: int
    per_block: int
    window: int
    rate_goal: float | None
    ratio_goal: float | None


PRODUCE_CASES = (
    Case("100B", 0, 256, 1024, 100_000, None),
    Case("16K", 16 * 1024, 4, 64, None, 0.6),
    Case("128K", 128 * 1024, 1, 8, None, 0.8),
)
FETCH_CASE = Case("fetch", MEBIBYTE, 1, 4, None, 0.8)
LONE_CASE = Case("lone", 0, 1, 1, None, None)
LONE_PER_SECOND = 2500  # requests a round and second asked for
CASES = {case.name: case for case in (*PRODUCE_CASES, FETCH_CASE, LONE_CASE)}


class Server(NamedTuple):
    """A process that is measured."""

    pid: int
    pipeline: Pipeline


class Round(NamedTuple):
    per_second: float
    cpu_us: float


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--only", choices=CASES, action="append", help="repeatable")
    parser.add_argument("--seconds", type=float, default=2.0, help="per server and case")
    parser.add_argument("--warm", action="store_true", help="fill free memory first (see there)")
    options = parser.parse_args()
    with WarmMemory(wanted=options.warm) as memory:
        figures = measure(options.only or list(CASES), options.seconds, memory)
    show("pipelined, one connection, against a bare server", figures, options.json, "bare")


def measure(names: list[str], seconds: float, memory: WarmMemory) -> list[Figure]:
    """The figures of these cases, `seconds` per server each."""
    figures = []
    for name in names:
        case = CASES[name]
        run = {"fetch": fetch, "lone": lone}.get(name, produce)
        memory.fill()
        with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as directory:
            figures += run(case, Path(directory), seconds)
    return figures


def produce(case: Case, directory: Path, seconds: float) -> list[Figure]:
    topic = "pipelined"
    batch, record_count = batch_of(case.batch_bytes)
    frame, batch_at, trailer = produce_frame(topic, batch)
    frames = Frames([frame] * case.per_block, case.per_block, case.window)
    arguments = ("produce", str(directory / "bare.log"), str(batch_at), str(trailer))
    with broker_process(directory) as broker, bare(arguments, frames) as other:
        create_topic(broker.bootstrap_servers, topic, 1)
        with barnabas(broker, frames) as own:
            rounds, requests = alternate(own, other, seconds)
        written = end_offset(broker.bootstrap_servers, topic)
        if written != requests * record_count:
            raise ValueError(f"{requests * record_count} records were answered, {written} written")
    return report(case, rounds, len(batch))


def fetch(case: Case, directory: Path, seconds: float) -> list[Figure]:
    """Both serve the broker's own segment: the same pages of the cache."""
    topic = "pipelined"
    batch, record_count = batch_of(FETCHED_BATCH_BYTES)
    frame, _, _ = produce_frame(topic, batch)
    with broker_process(directory) as broker:
        create_topic(broker.bootstrap_servers, topic, 1)
        fill(broker.port, Frames([frame], 1, 64), FETCHED_BYTES // FETCHED_BATCH_BYTES)
        per_fetch = case.batch_bytes // FETCHED_BATCH_BYTES * record_count
        offsets = range(0, FETCHED_BYTES // FETCHED_BATCH_BYTES * record_count, per_fetch)
        requests = [fetch_frame(topic, offset, case.batch_bytes) for offset in offsets]
        frames = Frames(requests, case.per_block, case.window)
        segment = broker.data_dir / f"{topic}-0" / f"{0:020}.log"
        arguments = ("fetch", str(segment), str(case.batch_bytes))
        with bare(arguments, frames) as other, barnabas(broker, frames) as own:
            rounds, _ = alternate(own, other, seconds)
    return report(case, rounds, case.batch_bytes)


def lone(case: Case, directory: Path, seconds: float) -> list[Figure]:
    """Round trips of both in turn."""
    batch, _ = batch_of(case.batch_bytes)
    frame, batch_at, trailer = produce_frame("lone", batch)
    frames = Frames([frame], case.per_block, case.window)
    arguments = ("produce", str(directory / "bare.log"), str(batch_at), str(trailer))
    count = max(20, int(LONE_PER_SECOND * seconds))
    found: dict[str, tuple[list[float], list[float]]] = {}
    with broker_process(directory) as broker, bare(arguments, frames) as other:
        create_topic(broker.bootstrap_servers, "lone", 1)
        with barnabas(broker, frames) as own:
            for number in range(ROUNDS + 1):
                for at, server in enumerate((own, other)):
                    before = cpu_seconds(server.pid)
                    taken = server.pipeline.one_at_a_time(count)
                    used = (cpu_seconds(server.pid) - before) / (count + 1) * 1e6
                    if number:
                        for name, value in zip(
                            ("p50", "p99", "CPU"),
                            (taken[count // 2], taken[count * 99 // 100], used),
                            strict=True,
                        ):
                            found.setdefault(name, ([], []))[at].append(value)
    return [
        Figure(
            f"lone request, {name}",
            "us/request" if name == "CPU" else "ms",
            statistics.median(mine),
            other=statistics.median(theirs),
            command=COMMAND,
        )
        for name, (mine, theirs) in found.items()
    ]


@contextlib.contextmanager
def bare(arguments: tuple[str, ...], frames: Frames) -> Iterator[Server]:
    """The bare server as a process, and a connection to it."""
    command = [sys.executable, "-m", "benchmarks.bare_server", *arguments]
    checkout = Path(_bare_server).parents[1]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=checkout) as process:
        assert process.stdout is not None
        try:
            pipeline = Pipeline(int(process.stdout.readline()), frames)
            yield Server(process.pid, pipeline)
            pipeline.close()
            process.wait(10)
        finally:
            process.kill()


@contextlib.contextmanager
def barnabas(broker: BrokerProcess, frames: Frames) -> Iterator[Server]:
    assert broker.process is not None
    with contextlib.closing(Pipeline(broker.port, frames)) as pipeline:
        yield Server(broker.process.pid, pipeline)


def alternate(own: Server, other: Server, seconds: float) -> tuple[list[tuple[Round, Round]], int]:
    """Rounds of both in turn, after one that does not count; all requests to the first of them."""
    rounds = []
    requests = 0
    for number in range(ROUNDS + 1):
        length = seconds / ROUNDS if number else min(0.3, seconds / ROUNDS)
        measured, run = one_round(own, length)
        requests += run.requests + 1  # the first one, which shows the size, too
        beside, _ = one_round(other, length)
        if number:
            rounds.append((measured, beside))
    return rounds, requests


def one_round(server: Server, seconds: float) -> tuple[Round, Run]:
    before = cpu_seconds(server.pid)
    run = server.pipeline.run(seconds)
    cpu = cpu_seconds(server.pid) - before
    return Round(run.requests / run.seconds, cpu / run.requests * 1e6), run


def report(case: Case, rounds: list[tuple[Round, Round]], batch_bytes: int) -> list[Figure]:
    own = statistics.median(mine.per_second for mine, _ in rounds)
    bare_rate = statistics.median(other.per_second for _, other in rounds)
    ratio = statistics.median(mine.per_second / other.per_second for mine, other in rounds)
    cpu = statistics.median(mine.cpu_us for mine, _ in rounds)
    bare_cpu = statistics.median(other.cpu_us for _, other in rounds)
    name = f"{case.name} pipelined" if case.name != "fetch" else "fetch of 1 MiB"
    figures = [
        Figure(f"{name}, rate", "1/s", own, case.rate_goal, False, bare_rate, COMMAND),
        Figure(f"{name}, server CPU", "us/request", cpu, other=bare_cpu, command=COMMAND),
    ]
    if cpu:
        other = 1e6 / bare_cpu if bare_cpu else None
        goal = case.rate_goal
        figures.append(Figure(f"{name}, per CPU second", "1/s", 1e6 / cpu, goal, False, other))
    if case.batch_bytes:
        megabytes = batch_bytes / 1e6
        figures.append(
            Figure(f"{name}, volume", "MB/s", own * megabytes, other=bare_rate * megabytes)
        )
    figures.append(Figure(f"{name}, of bare", "ratio", ratio, case.ratio_goal, False))
    return figures


if __name__ == "__main__":
    main()
