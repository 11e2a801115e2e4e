"""Our producer beside aiokafka's and confluent-kafka's, against one broker, in one run.

    python -m benchmarks.client_producer [--records N] [--rounds N] [--json FILE]

Records of 100 bytes, acks=all, one partition, linger 5 ms, all acknowledged at the end. Batches
have 256 KiB, and 16 KiB, the default, in the figures that say so. Each client is a process
of its own that is bound to one core where the system can do that; the broker has the others. The
clients take turns, and the best round of each counts: on a shared machine the others measure the
neighbours. `per CPU second` is the same by the client's own processor time.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import brokers
from benchmarks.client_work import create_topic, delete_topic
from benchmarks.figures import Figure, parser_of, show

COMMAND = "python -m benchmarks.client_producer"
RECORDS, ROUNDS, SIZE = 400_000, 3, 100
BATCH_BYTES, SMALL_BATCH_BYTES, LINGER_MS = 262_144, 16_384, 5
SMALL = ("send", "aiokafka", "confluent")
GOAL_RATE, GOAL_TIMES_AIOKAFKA, GOAL_COLUMNS_RATE, GOAL_CALLBACKS = 500_000.0, 3.0, 2_000_000.0, 5.0
TOPIC = "client-producer"
_VALUE = b"x" * SIZE
_SPAWN = multiprocessing.get_context("spawn")


class Load(NamedTuple):
    """What a client is to send."""

    servers: str
    records: int
    batch_bytes: int


class Rate(NamedTuple):
    """Records per second, and per second of the client's processor."""

    wall: float
    cpu: float


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    figures = measure(options.records, options.rounds)
    show("Producers, 100 B, acks=all, one core", figures, options.json, "confluent-kafka")


def measure(count: int, rounds: int) -> list[Figure]:
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as directory,
        brokers.barnabas(Path(directory)) as broker,
    ):
        best = _rounds(broker.servers, count, rounds)
    confluent = best["confluent"].wall
    aiokafka = best["aiokafka"].wall
    return [
        _figure("send per record", best["send"].wall, GOAL_RATE, confluent),
        _figure("send per record, per CPU second", best["send"].cpu, None, best["confluent"].cpu),
        _figure("aiokafka, send per record", aiokafka, None, confluent),
        _figure("aiokafka, per CPU second", best["aiokafka"].cpu, None, best["confluent"].cpu),
        _ratio("send : aiokafka", best["send"].wall / aiokafka, GOAL_TIMES_AIOKAFKA),
        _figure("SyncProducer.send", best["sync"].wall, None, confluent),
        _figure("send_many, a callback per batch", best["many"].wall, None, confluent),
        _figure("send, a callback per record", best["callback"].wall, None, confluent),
        _figure("SyncProducer.send, a callback per record", best["sync_callback"].wall),
        Figure(
            "send : send with a callback per record",
            "times",
            best["send"].wall / best["callback"].wall,
            GOAL_CALLBACKS,
            command=COMMAND,
        ),
        _figure("send_columns", best["columns"].wall, GOAL_COLUMNS_RATE, confluent),
        _figure("send_columns, sizes differ", best["columns_any"].wall, None, confluent),
        _figure("send_columns, per CPU second", best["columns"].cpu, None, best["confluent"].cpu),
        _figure("confluent-kafka's loop", confluent),
        _figure(
            "send per record, batches of 16 KiB",
            best["small send"].wall,
            GOAL_RATE,
            best["small confluent"].wall,
        ),
        _ratio(
            "send : aiokafka, batches of 16 KiB",
            best["small send"].wall / best["small aiokafka"].wall,
            GOAL_TIMES_AIOKAFKA,
        ),
    ]


def _figure(what: str, reached: float, goal: float | None = None, other: Any = None) -> Figure:
    return Figure(what, "records/s", reached, goal, False, other, COMMAND)


def _ratio(what: str, reached: float, goal: float) -> Figure:
    return Figure(what, "times", reached, goal, False, command=COMMAND)


def _rounds(servers: str, count: int, rounds: int) -> dict[str, Rate]:
    best: dict[str, Rate] = {}
    turns = [(name, name, BATCH_BYTES) for name in WORK]
    turns += [(f"small {name}", name, SMALL_BATCH_BYTES) for name in SMALL]
    for _ in range(rounds):
        for turn, name, batch_bytes in turns:
            create_topic(servers, TOPIC, 1)
            times = 5 if name.startswith("columns") else 1
            with _SPAWN.Pool(1) as pool:
                rate = pool.apply(run, (name, Load(servers, count * times, batch_bytes)))
            delete_topic(servers, TOPIC)
            before = best.get(turn, rate)
            best[turn] = Rate(max(before.wall, rate.wall), max(before.cpu, rate.cpu))
    return best


def run(name: str, load: Load) -> Rate:
    """One client's turn, in its own process."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return Rate(*WORK[name](load))


def _timed(count: int, began: tuple[float, float]) -> tuple[float, float]:
    wall, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
    return count / wall, count / cpu


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _with_ours(load: Load, work: Callable[[Any], Awaitable[None]]) -> tuple[float, float]:
    from barnabas.client import Producer

    async def timed() -> tuple[float, float]:
        async with Producer(
            load.servers, batch_size=load.batch_bytes, linger_ms=LINGER_MS
        ) as producer:
            await (await producer.send(TOPIC, _VALUE))
            began = _now()
            await work(producer)
            await producer.flush()
            return _timed(load.records, began)

    return asyncio.run(timed())


def _send(load: Load) -> tuple[float, float]:
    async def work(producer: Any) -> None:
        send = producer.send
        for _ in range(load.records):
            await send(TOPIC, _VALUE)

    return _with_ours(load, work)


def _callback(load: Load) -> tuple[float, float]:
    def report(delivery: Any) -> None:
        delivery.result()

    async def work(producer: Any) -> None:
        send = producer.send
        for _ in range(load.records):
            await send(TOPIC, _VALUE, on_delivery=report)

    return _with_ours(load, work)


def _many(load: Load) -> tuple[float, float]:
    from barnabas.client import ProducerRecord

    def report(batch: Any) -> None:
        if batch.exception() is not None:
            raise batch.exception()

    async def work(producer: Any) -> None:
        records = (ProducerRecord(TOPIC, _VALUE) for _ in range(load.records))
        await producer.send_many(records, on_delivery=report)

    return _with_ours(load, work)


def _columns(load: Load) -> tuple[float, float]:
    import pyarrow as pa  # type: ignore[import-untyped]

    values = pa.array([_VALUE] * load.records, pa.binary())

    async def work(producer: Any) -> None:
        await producer.send_columns(TOPIC, values)

    return _with_ours(load, work)


def _columns_any(load: Load) -> tuple[float, float]:
    import pyarrow as pa

    values = pa.array([b"x" * (SIZE - 20 + n % 41) for n in range(load.records)], pa.binary())

    async def work(producer: Any) -> None:
        await producer.send_columns(TOPIC, values)

    return _with_ours(load, work)


def _sync(load: Load, **options: Any) -> tuple[float, float]:
    from barnabas.client import SyncProducer

    with SyncProducer(load.servers, batch_size=load.batch_bytes, linger_ms=LINGER_MS) as producer:
        producer.send(TOPIC, _VALUE).result()
        send = producer.send
        began = _now()
        for _ in range(load.records):
            send(TOPIC, _VALUE, **options)
        producer.flush()
        return _timed(load.records, began)


def _sync_callback(load: Load) -> tuple[float, float]:
    return _sync(load, on_delivery=lambda delivery: delivery.result())


def _aiokafka(load: Load) -> tuple[float, float]:
    from aiokafka import AIOKafkaProducer

    async def timed() -> tuple[float, float]:
        producer = AIOKafkaProducer(
            bootstrap_servers=load.servers,
            acks="all",
            max_batch_size=load.batch_bytes,
            linger_ms=LINGER_MS,
            enable_idempotence=True,
        )
        await producer.start()
        try:
            await producer.send_and_wait(TOPIC, _VALUE)
            send = producer.send
            began = _now()
            for _ in range(load.records):
                await send(TOPIC, _VALUE)
            await producer.flush()
            return _timed(load.records, began)
        finally:
            await producer.stop()

    return asyncio.run(timed())


def _confluent(load: Load) -> tuple[float, float]:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": load.servers,
            "log_level": 3,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": LINGER_MS,
            "batch.size": load.batch_bytes,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    producer.produce(TOPIC, _VALUE)
    producer.flush(60)
    produce, poll = producer.produce, producer.poll
    began = _now()
    for _ in range(load.records):
        while True:
            try:
                produce(TOPIC, _VALUE)
                break
            except BufferError:
                poll(0.01)
    if producer.flush(120):
        raise TimeoutError("not everything was acknowledged in time")
    return _timed(load.records, began)


WORK: dict[str, Callable[[Load], tuple[float, float]]] = {
    "send": _send,
    "aiokafka": _aiokafka,
    "confluent": _confluent,
    "columns": _columns,
    "columns_any": _columns_any,
    "many": _many,
    "callback": _callback,
    "sync": _sync,
    "sync_callback": _sync_callback,
}


if __name__ == "__main__":
    main()
