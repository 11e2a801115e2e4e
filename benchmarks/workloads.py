"""Real clients against a broker: throughput, latency, and what the broker's process pays for them.

    python -m benchmarks.workloads [--only WORD] [--scale S] [--rounds N] [--json FILE]
    python -m benchmarks.kafka ...          the same, a real Kafka 3.9.1 beside it in the same run

The client is confluent-kafka. It shares the machine with the broker, so rates are what both reach
together; CPU seconds of the broker's process per GB of record values (user and system) is the
figure that holds on a noisy machine. `warm` says what went before the clock: so many times a
million records, ten thousand single requests and a full read, or that share of them which --scale
is (a JVM needs it: after one such round it can still cost three times as much).

Beside each produce row stands what a process pays that only receives as many bytes and writes them
(`bare_write`), in the same minute: the kernel's price for storing them, which on a virtual machine
changes by the hour. "over bare" is the row without it: what the broker itself costs.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import client_work
from benchmarks.accounting import Cpu
from benchmarks.bare_write import BareWrite
from benchmarks.brokers import Broker, barnabas, kafka
from benchmarks.client_work import Load
from benchmarks.figures import Figure, parser_of, show
from benchmarks.warm_memory import WarmMemory

GIGABYTE, MEGABYTE = 1e9, 1e6
SMALL, LARGE = {"batch.size": 16_384}, {"batch.size": 1_000_000}
LZ4 = {**LARGE, "compression.type": "lz4"}
ONE_AT_A_TIME_REQUESTS = 10_000
END_TO_END_SECONDS = 5.0
WARM_LOAD = Load(1_000_000, 100, 6, LARGE)


class Transfer(NamedTuple):
    """A produce row and, if asked for, the consume row of what it produced."""

    name: str
    load: Load
    goal: float | None
    consume_goal: float | None = None
    is_consumed: bool = False
    rate_goal: float | None = None
    """MB/s; None: what the broker beside it reaches."""


TRANSFERS = (
    Transfer("100 B, large batches", Load(4_000_000, 100, 1, LARGE), 1.0, 0.4, True),
    Transfer("100 B, 16 KiB batches", Load(2_000_000, 100, 6, SMALL), 4.0),
    Transfer("100 B, 100 partitions", Load(2_000_000, 100, 100, LARGE), 1.6),
    Transfer("100 B, two producers", Load(4_000_000, 100, 6, LARGE, producers=2), None),
    Transfer("1 KB", Load(1_000_000, 1000, 6, LARGE), 0.7, 0.25, True),
    Transfer("1 KB lz4", Load(1_000_000, 1000, 6, LZ4), 0.2),
)


class Plan(NamedTuple):
    """What is run, and what of it is to be reached."""

    transfers: Sequence[Transfer] = TRANSFERS
    paces: Sequence[int] = (1_000, 10_000)
    one_at_a_time_ms: tuple[float, float] = (0.11, 0.2)  # p50, p99
    one_at_a_time_us: float | None = 55.0  # of the broker's CPU
    end_to_end_ms: tuple[float, float] = (0.30, 0.8)


ALONE = Plan()


class Measured(NamedTuple):
    """One value of one broker, before the medians are made."""

    what: str
    unit: str
    value: float
    goal: float | None = None
    at_most: bool = True


Row = Callable[[Broker, str], list[Measured]]


def main() -> None:
    run(arguments().parse_args(), with_kafka=False)


def arguments() -> argparse.ArgumentParser:
    parser = parser_of(__doc__)
    parser.add_argument("--only", action="append", help="rows whose name holds this; repeatable")
    parser.add_argument("--scale", type=float, default=1.0, help="more or fewer records")
    parser.add_argument("--rounds", type=int, default=1, help="of all rows; medians are shown")
    parser.add_argument("--warm", type=int, default=2, help="warm-up rounds (default 2)")
    parser.add_argument("--cold", action="store_true", help="leave free memory as it is")
    return parser


def run(options: argparse.Namespace, *, with_kafka: bool) -> None:
    with contextlib.ExitStack() as stack:
        prefix = "barnabas-benchmark-"
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix)))
        memory = stack.enter_context(WarmMemory(wanted=not options.cold))
        floor = stack.enter_context(BareWrite(directory))
        brokers = [stack.enter_context(barnabas(directory / "barnabas"))]
        if with_kafka:
            brokers.append(stack.enter_context(kafka(directory / "kafka")))
        figures = measure(brokers, options, memory, floor)
    title = f"confluent-kafka, warm={options.warm}, {options.rounds} round(s), {memory.state}"
    show(title, figures, options.json, "Kafka 3.9.1" if with_kafka else "")


def measure_alone(scale: float, memory: WarmMemory) -> list[Figure]:
    """All rows once, against Barnabas alone."""
    prefix = "barnabas-benchmark-"
    with (
        tempfile.TemporaryDirectory(prefix=prefix) as directory,
        BareWrite(Path(directory)) as floor,
        barnabas(Path(directory) / "barnabas") as broker,
    ):
        options = arguments().parse_args(["--scale", str(scale), "--warm", "1"])
        return measure([broker], options, memory, floor)


def measure(
    brokers: Sequence[Broker],
    options: argparse.Namespace,
    memory: WarmMemory,
    floor: BareWrite,
    plan: Plan = ALONE,
) -> list[Figure]:
    """All rows against the first broker, and against a second one to be compared with."""
    chosen = [
        (name, row)
        for name, row in rows(options.scale, floor, plan)
        if not options.only or any(word in name for word in options.only)
    ]
    for broker in brokers:
        for number in range(options.warm):
            warm_up(broker, f"warm-{number}", min(1.0, options.scale))
    found: dict[tuple[str, str], list[Measured]] = {}
    for number in range(options.rounds):
        for at, (name, row) in enumerate(chosen):
            for broker in brokers if number % 2 == 0 else reversed(brokers):
                if name.startswith("produce"):
                    memory.fill()
                for measured in row(broker, f"row-{number}-{at}"):
                    found.setdefault((broker.name, measured.what), []).append(measured)
    return figures_of(brokers, found)


def figures_of(
    brokers: Sequence[Broker], found: dict[tuple[str, str], list[Measured]]
) -> list[Figure]:
    figures = []
    own, *others = (broker.name for broker in brokers)
    for (name, what), measured in found.items():
        if name != own:
            continue
        first = measured[0]
        value = median(measured)
        beside = found.get((others[0], what)) if others else None
        other = median(beside) if beside else None
        goal = first.goal
        if goal is None and not first.at_most:
            goal = other  # throughput is to be no worse
        figures.append(Figure(what, first.unit, value, goal, first.at_most, other))
    return figures


def median(measured: Iterable[Measured]) -> float:
    return statistics.median(each.value for each in measured)


def warm_up(broker: Broker, topic: str, share: float) -> None:
    load = WARM_LOAD._replace(records=max(1000, int(WARM_LOAD.records * share)))
    client_work.create_topic(broker.servers, topic, load.partitions, broker.replicas)
    client_work.produce(broker.servers, topic, load)
    client_work.consume(broker.servers, topic, load)
    client_work.one_at_a_time(broker.servers, topic, int(ONE_AT_A_TIME_REQUESTS * share))
    client_work.delete_topic(broker.servers, topic)


def rows(scale: float, floor: BareWrite, plan: Plan) -> list[tuple[str, Row]]:
    """Name and work of every row, latencies last."""
    listed: list[tuple[str, Row]] = []
    for transfer in plan.transfers:
        load = transfer.load._replace(records=max(1000, int(transfer.load.records * scale)))
        row = _transfer(transfer._replace(load=load), floor)
        listed.append((f"produce {transfer.name}", row))
    requests = max(100, int(ONE_AT_A_TIME_REQUESTS * scale))
    listed.append(("one at a time", _one_at_a_time(requests, plan)))
    for pace in plan.paces:
        seconds = max(0.2, END_TO_END_SECONDS * min(scale, 4))
        listed.append((f"end to end {pace:,}/s", _end_to_end(pace, seconds, plan)))
    return listed


def _transfer(transfer: Transfer, floor: BareWrite) -> Row:
    load = transfer.load
    volume = load.records * load.size

    def row(broker: Broker, topic: str) -> list[Measured]:
        client_work.create_topic(broker.servers, topic, load.partitions, broker.replicas)
        before = broker.cpu()
        seconds = client_work.produce(broker.servers, topic, load)
        used = broker.cpu().since(before)
        name = f"produce {transfer.name}"
        measured = _volume(name, volume, seconds, used, transfer.goal)
        if transfer.rate_goal is not None:
            measured[-1] = measured[-1]._replace(goal=transfer.rate_goal)
        stored = stored_bytes(broker, topic)
        if stored:
            measured += _beside_bare(name, volume, used, floor.store(stored))
        if transfer.is_consumed:
            before = broker.cpu()
            seconds = client_work.consume(broker.servers, topic, load)
            used = broker.cpu().since(before)
            name = f"consume {transfer.name.partition(',')[0]}"
            measured += _volume(name, volume, seconds, used, transfer.consume_goal)
        client_work.delete_topic(broker.servers, topic)
        return measured

    return row


def stored_bytes(broker: Broker, topic: str) -> int:
    """What the topic's logs hold, all replicas; 0 where the directories are unknown."""
    return sum(
        path.stat().st_size
        for directory in broker.data_dirs
        for path in directory.glob(f"{topic}-*/*.log")
    )


def _volume(
    name: str, volume: int, seconds: float, used: Cpu, goal: float | None
) -> list[Measured]:
    return [
        Measured(name, "CPU s/GB", used.total / volume * GIGABYTE, goal),
        Measured(f"{name}, user part", "CPU s/GB", used.user / volume * GIGABYTE),
        Measured(f"{name}, rate", "MB/s", volume / seconds / MEGABYTE, None, False),
    ]


def _beside_bare(name: str, volume: int, used: Cpu, bare: Cpu) -> list[Measured]:
    own = max(0.0, used.total - bare.total)
    measured = [
        Measured(f"{name}, bare write", "CPU s/GB", bare.total / volume * GIGABYTE),
        Measured(f"{name}, over bare", "CPU s/GB", own / volume * GIGABYTE),
    ]
    if bare.total:
        measured.append(Measured(f"{name}, of bare write", "ratio", used.total / bare.total))
    return measured


def _one_at_a_time(requests: int, plan: Plan) -> Row:
    def row(broker: Broker, topic: str) -> list[Measured]:
        name = "one record at a time"
        client_work.create_topic(broker.servers, topic, 1, broker.replicas)
        client_work.one_at_a_time(broker.servers, topic, requests // 10)
        before = broker.cpu()
        taken = client_work.one_at_a_time(broker.servers, topic, requests)
        used = broker.cpu().since(before)
        p50, p99 = plan.one_at_a_time_ms
        return [
            Measured(f"{name}, p50", "ms", taken.at(0.5), p50),
            Measured(f"{name}, p99", "ms", taken.at(0.99), p99),
            Measured(f"{name}, p99.9", "ms", taken.at(0.999)),
            Measured(
                f"{name}, CPU", "us/request", used.total / requests * 1e6, plan.one_at_a_time_us
            ),
        ]

    return row


def _end_to_end(pace: int, seconds: float, plan: Plan) -> Row:
    def row(broker: Broker, topic: str) -> list[Measured]:
        client_work.create_topic(broker.servers, topic, 1, broker.replicas)
        before, began = broker.cpu(), time.perf_counter()
        taken = client_work.end_to_end(broker.servers, topic, pace, seconds)
        cores = broker.cpu().since(before).total / (time.perf_counter() - began)
        p50, p99 = plan.end_to_end_ms
        name = f"end to end at {pace:,}/s"
        return [
            Measured(f"{name}, p50", "ms", taken.at(0.5), p50),
            Measured(f"{name}, p99", "ms", taken.at(0.99), p99),
            Measured(f"{name}, p99.9", "ms", taken.at(0.999)),
            Measured(f"{name}, CPU", "cores", cores),
        ]

    return row


if __name__ == "__main__":
    main()
