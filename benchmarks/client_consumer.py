"""How many records a second consumers read, ours beside others, from one broker process.

    python -m benchmarks.client_consumer [--records N] [--rounds N] [--json FILE]

Records of 100 bytes in one partition, without compression, read from the start to the end by one
consumer after the other, each without a group and by its defaults, in turns; the median of the
rounds. Every loop looks at the length of each value; of an Arrow table it counts the rows. `per CPU
second` counts what the reader's own process used, threads of C included: it is what remains true on
a machine that does other work.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from barnabas.client import Consumer, SyncConsumer
from benchmarks.brokers import barnabas
from benchmarks.client_work import Load, create_topic, produce
from benchmarks.figures import Figure, parser_of, show

SIZE = 100
TOPIC = "read"
GOAL, ARROW_GOAL = 1_500_000.0, 5_000_000.0
_PATIENCE_MS = 60_000
_BATCH = {"batch.size": 131_072, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000}

Read = Callable[[str, int], None]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    show("Reading records of 100 bytes", measure(options.records, options.rounds), options.json)


def measure(records: int, rounds: int = 3) -> list[Figure]:
    """Records a second of each consumer."""
    import_module("barnabas.records.columns")  # numpy and pyarrow take a while, once
    rates: dict[str, list[float]] = {name: [] for name in READERS}
    per_cpu: dict[str, list[float]] = {name: [] for name in READERS}
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as directory,
        barnabas(Path(directory)) as broker,
    ):
        create_topic(broker.servers, TOPIC, 1)
        produce(broker.servers, TOPIC, Load(records, SIZE, 1, _BATCH))
        for _ in range(rounds):
            for name, (read, _) in READERS.items():
                began, used = time.perf_counter(), time.process_time()
                read(broker.servers, records)
                rates[name].append(records / (time.perf_counter() - began))
                per_cpu[name].append(records / (time.process_time() - used))
    figures = []
    for name, (_, goal) in READERS.items():
        rate, efficiency = statistics.median(rates[name]), statistics.median(per_cpu[name])
        figures.append(Figure(name, "records/s", rate, goal, at_most=False))
        figures.append(Figure(f"{name}: per CPU second", "records/s", efficiency))
    return figures


def _ours(servers: str, records: int) -> None:
    async def run() -> None:
        async with Consumer(servers, auto_offset_reset="earliest") as consumer:
            consumer.assign((TOPIC, 0))
            left = records
            while left > 0:
                for record in await consumer.poll(_PATIENCE_MS):
                    assert len(record.value) == SIZE
                    left -= 1

    asyncio.run(run())


def _ours_blocking(servers: str, records: int) -> None:
    with SyncConsumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign((TOPIC, 0))
        left = records
        while left > 0:
            for record in consumer.poll(_PATIENCE_MS):
                assert len(record.value) == SIZE
                left -= 1


def _ours_iterated(servers: str, records: int) -> None:
    with SyncConsumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign((TOPIC, 0))
        left = records
        for record in consumer:
            assert len(record.value) == SIZE
            left -= 1
            if not left:
                return


def _ours_arrow(servers: str, records: int) -> None:
    async def run() -> None:
        async with Consumer(servers, auto_offset_reset="earliest") as consumer:
            consumer.assign((TOPIC, 0))
            left = records
            while left > 0:
                left -= (await consumer.poll_arrow(_PATIENCE_MS)).num_rows

    asyncio.run(run())


def _confluent(servers: str, records: int) -> None:
    from confluent_kafka import OFFSET_BEGINNING, TopicPartition
    from confluent_kafka import Consumer as Confluent

    consumer = Confluent(
        {
            "bootstrap.servers": servers,
            "group.id": "unused",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 1,  # else it pauses for a second where its queue is full
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    left = records
    while left > 0:
        for message in consumer.consume(500, _PATIENCE_MS / 1000):
            value = message.value()
            assert value is not None and len(value) == SIZE
            left -= 1
    consumer.close()


def _aiokafka(servers: str, records: int) -> None:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def run() -> None:
        consumer = AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
        await consumer.start()
        try:
            consumer.assign([TopicPartition(TOPIC, 0)])
            left = records
            while left > 0:
                found = await consumer.getmany(timeout_ms=_PATIENCE_MS, max_records=500)
                for taken in found.values():
                    for record in taken:
                        assert len(record.value) == SIZE
                        left -= 1
        finally:
            await consumer.stop()

    asyncio.run(run())


READERS: dict[str, tuple[Read, float | None]] = {
    "barnabas, poll": (_ours, GOAL),
    "barnabas, blocking poll": (_ours_blocking, None),
    "barnabas, for record in consumer": (_ours_iterated, None),
    "barnabas, Arrow": (_ours_arrow, ARROW_GOAL),
    "confluent-kafka, consume(500)": (_confluent, None),
    "aiokafka, getmany": (_aiokafka, None),
}


if __name__ == "__main__":
    main()
