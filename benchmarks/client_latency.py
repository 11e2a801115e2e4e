"""How long a record takes until it is acknowledged: our producers beside confluent-kafka's.

    python -m benchmarks.client_latency [--seconds S] [--rounds N] [--json FILE]

Records of 100 bytes, acks=all, one partition of one broker, 10,000 records a second, each from the
call of `send` to its delivery callback by the same clock; with linger 0, where a record leaves at
once, and with 5 ms, the default of librdkafka. Each client is a process of its own, and they take
turns. The first tenth of a turn, where connections are made and code is loaded, is not counted; the
median of the rounds is.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import brokers
from benchmarks.client_work import Latencies, create_topic, value_of
from benchmarks.figures import Figure, parser_of, show

COMMAND = "python -m benchmarks.client_latency"
PER_SECOND, SECONDS, ROUNDS = 10_000, 4.0, 5
LINGERS_MS = (0, 5)
GOAL_TIMES_CONFLUENT = 1.5
TOPIC = "client-latency"
_VALUE = value_of(100)
_WARM_SHARE = 10
_PATIENCE_SECONDS = 60
_SPAWN = multiprocessing.get_context("spawn")


class Load(NamedTuple):
    """What a client is to send."""

    servers: str
    records: int
    linger_ms: int


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    figures = measure(options.seconds, options.rounds)
    title = f"send to acknowledgement, 100 B, acks=all, {PER_SECOND:,} records/s"
    show(title, figures, options.json, "confluent-kafka")


def measure(seconds: float, rounds: int) -> list[Figure]:
    """p50 and p99 of each client with each linger."""
    count = max(200, int(PER_SECOND * seconds))
    figures = []
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as directory,
        brokers.barnabas(Path(directory)) as broker,
    ):
        create_topic(broker.servers, TOPIC, 1)
        for linger_ms in LINGERS_MS:
            found = _rounds(Load(broker.servers, count, linger_ms), rounds)
            for name in CLIENTS:
                for quantile in (0.5, 0.99):
                    what = f"{name}, linger {linger_ms} ms, p{quantile * 100:.0f}"
                    figures.append(_figure(what, found, name, quantile))
    return figures


def _rounds(load: Load, rounds: int) -> dict[str, list[Latencies]]:
    found: dict[str, list[Latencies]] = {name: [] for name in CLIENTS}
    for _ in range(rounds):
        for name in CLIENTS:
            with _SPAWN.Pool(1) as pool:
                taken = pool.apply(run, (name, load))
            found[name].append(Latencies(sorted(taken[len(taken) // _WARM_SHARE :])))
    return found


def _figure(what: str, found: dict[str, list[Latencies]], name: str, quantile: float) -> Figure:
    ours, theirs = (
        statistics.median(each.at(quantile) for each in found[client])
        for client in (name, "confluent-kafka")
    )
    has_goal = quantile == 0.99 and name != "confluent-kafka"
    goal = GOAL_TIMES_CONFLUENT * theirs if has_goal else None
    return Figure(what, "ms", ours, goal, other=theirs, command=COMMAND)


def run(name: str, load: Load) -> list[float]:
    """One client's turn, in its own process: milliseconds, in the order of the records."""
    return CLIENTS[name](load)


def _wait_s(began: float, number: int) -> float:
    """Until a record is due."""
    return began + number / PER_SECOND - time.perf_counter()


def _asynchronous(load: Load) -> list[float]:
    from barnabas.client import Producer

    taken: list[float] = []

    async def work() -> None:
        async with Producer(load.servers, linger_ms=load.linger_ms) as producer:
            await (await producer.send(TOPIC, _VALUE))
            began = time.perf_counter()
            for number in range(load.records):
                if (wait_s := _wait_s(began, number)) > 0:
                    await asyncio.sleep(wait_s)
                at = time.perf_counter()
                await producer.send(TOPIC, _VALUE, on_delivery=_noting(taken, at))
            await producer.flush()

    asyncio.run(work())
    return taken


def _blocking(load: Load) -> list[float]:
    from barnabas.client import SyncProducer

    taken: list[float] = []
    with SyncProducer(load.servers, linger_ms=load.linger_ms) as producer:
        producer.send(TOPIC, _VALUE).result(_PATIENCE_SECONDS)
        began = time.perf_counter()
        for number in range(load.records):
            while (wait_s := _wait_s(began, number)) > 0:
                time.sleep(wait_s)
            at = time.perf_counter()
            producer.send(TOPIC, _VALUE, on_delivery=_noting(taken, at))
        producer.flush()
    return taken


def _noting(taken: list[float], at: float) -> Callable[[Any], None]:
    def note(delivery: Any) -> None:
        delivery.result()
        taken.append((time.perf_counter() - at) * 1000)

    return note


def _confluent(load: Load) -> list[float]:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": load.servers,
            "log_level": 3,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": load.linger_ms,
        }
    )
    producer.produce(TOPIC, _VALUE)
    producer.flush(_PATIENCE_SECONDS)
    taken: list[float] = []
    began = time.perf_counter()
    for number in range(load.records):
        while (wait_s := _wait_s(began, number)) > 0:
            producer.poll(wait_s)  # callbacks are called from here
        at = time.perf_counter()

        def note(error: Any, record: Any, at: float = at) -> None:
            if error is not None:
                raise ConnectionError(str(error))
            taken.append((time.perf_counter() - at) * 1000)

        producer.produce(TOPIC, _VALUE, on_delivery=note)
    if producer.flush(_PATIENCE_SECONDS):
        raise TimeoutError("not everything was acknowledged in time")
    return taken


CLIENTS: dict[str, Callable[[Load], list[float]]] = {
    "Producer": _asynchronous,
    "SyncProducer": _blocking,
    "confluent-kafka": _confluent,
}


if __name__ == "__main__":
    main()
