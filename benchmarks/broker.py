"""What one broker costs and carries: ready time, memory, and confluent-kafka against it.

    python -m benchmarks.broker [--records N] [--size BYTES]

The broker is a process of its own, as an operator runs it, on a new directory. Client and broker
share the machine, so the rates are what both reach together; the last column is the broker's own
CPU per million records, which says more about it than the clock does.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration.broker_process import BrokerProcess, broker_process

TOPIC = "benchmark"
PARTITIONS = 2
STARTS = 7
MEGABYTE = 1_000_000


class Rate(NamedTuple):
    """One line of the table."""

    what: str
    records: int
    record_bytes: int
    seconds: float
    broker_cpu_seconds: float

    def __str__(self) -> str:
        rate = self.records / self.seconds
        cpu = self.broker_cpu_seconds / self.records * 1_000_000
        volume = rate * self.record_bytes / MEGABYTE
        return f"{self.what:<38} {rate:>11,.0f} {volume:>8.1f} {cpu:>10.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=100, help="bytes of each record's value")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as directory:
        start_up(Path(directory) / "start")
        carry(Path(directory) / "carry", options.records, options.size)


def start_up(directory: Path) -> None:
    """How long until it serves, how much it occupies then."""
    directory.mkdir()
    broker = BrokerProcess(directory)
    ready_ms = []
    for _ in range(STARTS):
        began = time.perf_counter()
        broker.start()
        ready_ms.append((time.perf_counter() - began) * 1000)
        resident_mb = resident(broker)
        broker.stop()
    print(f"ready after {statistics.median(ready_ms):.0f} ms (median of {STARTS}, process start")
    print(f"to ready line, seen from outside), resident then {resident_mb:.1f} MB\n")


def carry(directory: Path, records: int, size: int) -> None:
    """Produce, then consume, through confluent-kafka."""
    directory.mkdir()
    # Half random, half not, so that a codec has something to do and something to leave.
    value = random.Random(1).randbytes(size // 2) + bytes(size - size // 2)
    print(f"{records:,} records of {size} bytes over {PARTITIONS} partitions, confluent-kafka")
    print(f"{'':<38} {'records/s':>11} {'MB/s':>8} {'CPU s/M':>10}")
    with broker_process(directory) as broker:
        servers = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers})
        for codec, acks in (("none", 1), ("none", -1), ("lz4", -1)):
            topic = f"{TOPIC}-{codec}-{acks}"
            admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
            name = "all, idempotent" if acks == -1 else str(acks)
            for what, work in (
                (f"produce, {codec}, acks={name}", produce),
                (f"consume, {codec}", consume),
            ):
                task = Task(servers, topic, codec, acks, records, value)
                print(measure(what, broker, task, work))
        print(f"\nresident after the load {resident(broker):.1f} MB")


class Task(NamedTuple):
    """What to move: `records` times `value`."""

    servers: str
    topic: str
    codec: str
    acks: int
    records: int
    value: bytes


def measure(what: str, broker: BrokerProcess, task: Task, work: Callable[[Task], None]) -> Rate:
    cpu_before, began = cpu_seconds(broker), time.perf_counter()
    work(task)
    seconds = time.perf_counter() - began
    return Rate(what, task.records, len(task.value), seconds, cpu_seconds(broker) - cpu_before)


def produce(task: Task) -> None:
    producer = Producer(
        {
            "bootstrap.servers": task.servers,
            "compression.type": task.codec,
            "acks": task.acks,
            "enable.idempotence": task.acks == -1,
            "linger.ms": 5,
            "queue.buffering.max.messages": 500_000,
        }
    )
    for number in range(task.records):
        while True:
            try:
                producer.produce(task.topic, task.value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
    if producer.flush(120):
        raise TimeoutError("not everything was acknowledged within two minutes")


def consume(task: Task) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": task.servers,
            "group.id": "unused",
            "enable.auto.commit": False,
            # Without these it pauses for a second whenever its queue is full.
            "queued.min.messages": 1_000_000,
            "fetch.queue.backoff.ms": 2,
        }
    )
    consumer.assign(
        [TopicPartition(task.topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)]
    )
    missing = task.records
    while missing > 0:
        batch = consumer.consume(10_000, timeout=30)
        if not batch:
            raise TimeoutError(f"{missing} records did not come")
        missing -= len(batch)
    consumer.close()


def resident(broker: BrokerProcess) -> float:
    return process(broker).memory_info().rss / MEGABYTE


def cpu_seconds(broker: BrokerProcess) -> float:
    times = process(broker).cpu_times()
    return times.user + times.system


def process(broker: BrokerProcess) -> psutil.Process:
    if broker.process is None:
        raise ProcessLookupError("the broker does not run")
    return psutil.Process(broker.process.pid)


if __name__ == "__main__":
    main()
