"""What TLS costs a broker: by our own transport, the event loops' and aiofastnet; beside Kafka.

    python -m benchmarks.tls [--records N] [--rounds N] [--kafka] [--only WORD] [--json FILE]

The client is confluent-kafka with records of 1 KB. CPU seconds are those of the broker's process
per GB of record values, of the round in which they were fewest (what else runs on the machine only
adds to them); `plain` is the same broker without TLS. An idle connection is one that has shaken
hands and made one request; its price is what the process has grown by. "After traffic" it has sent
and received 300 KB as well. With `--kafka` a real Kafka 3.9.1 runs beside them, with the same
certificate; what its connections hold cannot be told from the growth of a heap.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from barnabas.protocol.api import API_VERSIONS, METADATA
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from benchmarks import client_work
from benchmarks.accounting import cpu_seconds, resident_bytes
from benchmarks.brokers import kafka
from benchmarks.figures import Figure, parser_of, show
from benchmarks.tls_server import WHOSE
from tests.kit.broker.tls_broker import TlsRawClient, python_context
from tests.kit.certificates import Authority, PemFiles
from tests.kit.raw_client import RawClient

PARTITIONS = 6
RECORD_BYTES = 1000
IDLE_GOAL_KB = 60.0
_SPAWN = multiprocessing.get_context("spawn")
_CLIENT = {"log_level": 3, "enable.ssl.certificate.verification": "true"}


class Secured(NamedTuple):
    """A broker that is measured, by its two listeners."""

    name: str
    plain: str
    tls: str
    pid: int


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--only", help="those whose name holds this word")
    parser.add_argument("--kafka", action="store_true", help="a real Kafka 3.9.1 as well")
    given = parser.parse_args()
    names = [name for name in WHOSE if not given.only or given.only in name]
    figures = measure(names, given.records, given.rounds, given.connections, given.kafka)
    show(f"TLS, {given.records} records of 1 KB, {given.rounds} rounds", figures, given.json)


def measure(
    names: list[str], records: int, rounds: int, connections: int, with_kafka: bool = False
) -> list[Figure]:
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="barnabas-tls-")))
        files = Authority.make(directory / "ca").server()
        brokers = [
            stack.enter_context(_broker(name, directory / f"{number}", files))
            for number, name in enumerate(names)
        ]
        if with_kafka:
            brokers.append(stack.enter_context(_kafka(directory / "kafka", files)))
        figures = []
        found: dict[tuple[str, str], list[float]] = {}
        for number in range(rounds + 1):
            for broker in brokers:
                for what, value in _transfers(broker, files, records, number).items():
                    if number:  # the first round warms up
                        found.setdefault((broker.name, what), []).append(value)
        for (name, what), values in found.items():
            is_rate = what.endswith("rate")
            best = max(values) if is_rate else min(values)
            figures.append(Figure(f"{name}: {what}", "MB/s" if is_rate else "CPU s/GB", best))
        for broker in brokers:
            figures += _idle(broker, files, connections)
            figures += _storm(broker, files, 2 * connections)
    return figures


@contextlib.contextmanager
def _broker(name: str, directory: Path, files: PemFiles) -> Iterator[Secured]:
    directory.mkdir(parents=True)
    arguments = [name, str(directory), str(files.keystore), str(files.truststore)]
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.tls_server", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        plain, tls = process.stdout.readline().split()
        yield Secured(name, plain, tls, process.pid)
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def _kafka(directory: Path, files: PemFiles) -> Iterator[Secured]:
    with kafka(directory, files.settings()) as running:
        assert running.tls_servers
        yield Secured("Kafka 3.9.1", running.servers, running.tls_servers, running.pid)


def _transfers(broker: Secured, files: PemFiles, records: int, number: int) -> dict[str, float]:
    """Produce and consume, with and without TLS."""
    measured = {}
    security = {"security.protocol": "SSL", "ssl.ca.location": str(files.truststore)}
    for kind, servers, options in (
        ("plain", broker.plain, {}),
        ("TLS", broker.tls, security),
    ):
        topic = f"{kind}-{number}"
        client_work.create_topic(broker.plain, topic, PARTITIONS)
        for work, run in (("produce", _produce), ("consume", _consume)):
            before, began = cpu_seconds(broker.pid), time.perf_counter()
            run({"bootstrap.servers": servers, **_CLIENT, **options}, topic, records)
            gigabytes = records * RECORD_BYTES / 1e9
            measured[f"{work}, {kind}"] = (cpu_seconds(broker.pid) - before) / gigabytes
            rate = gigabytes * 1000 / (time.perf_counter() - began)
            measured[f"{work}, {kind}, rate"] = rate
        client_work.delete_topic(broker.plain, topic)
    return measured


def _produce(options: Mapping[str, str | int], topic: str, records: int) -> None:
    producer = Producer({**options, "acks": "all", "linger.ms": 5, "batch.size": 1_000_000})
    value = client_work.value_of(RECORD_BYTES)
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
    if producer.flush(120):
        raise TimeoutError("not everything was acknowledged in time")


def _consume(options: Mapping[str, str | int], topic: str, records: int) -> None:
    consumer = Consumer({**options, "group.id": "none", "enable.auto.commit": "false"})
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(PARTITIONS)])
    missing = records
    while missing > 0:
        found = consumer.consume(min(10_000, missing), timeout=60)
        if not found:
            raise TimeoutError(f"{missing} records did not come")
        missing -= len(found)
    consumer.close()


def _idle(broker: Secured, files: PemFiles, count: int) -> list[Figure]:
    """What open connections hold, and what it takes to open them."""
    context = python_context(files, has_certificate=False)
    figures = []
    unknown = [MetadataRequestTopic(name=f"{number:0>200}") for number in range(1500)]
    much = MetadataRequest(topics=unknown, allow_auto_topic_creation=False)
    for kind in ("plain", "TLS", "TLS, after traffic"):
        with contextlib.ExitStack() as stack:

            def connect(kind: str = kind, stack: contextlib.ExitStack = stack) -> None:
                client = (
                    RawClient(broker.plain)
                    if kind == "plain"
                    else TlsRawClient(broker.tls, context)
                )
                stack.enter_context(client).call(API_VERSIONS, 0, ApiVersionsRequest())
                if kind == "TLS, after traffic":
                    client.call(METADATA, 9, much)

            for _ in range(20):
                connect()
            before, began = resident_bytes(broker.pid), cpu_seconds(broker.pid)
            for _ in range(count):
                connect()
            grown = max(0, resident_bytes(broker.pid) - before) / count / 1000
            used = (cpu_seconds(broker.pid) - began) / count * 1000
        goal = IDLE_GOAL_KB if kind != "plain" else None
        figures.append(Figure(f"{broker.name}: idle connection, {kind}", "KB", grown, goal))
        figures.append(Figure(f"{broker.name}: opening it, {kind}", "CPU ms", used))
    return figures


def _storm(broker: Secured, files: PemFiles, count: int) -> list[Figure]:
    """Many connections at once, and what another client feels of it."""
    latencies: list[float] = []
    with RawClient(broker.plain) as client, _SPAWN.Pool(1) as pool:
        pool.apply(_open, (broker.tls, str(files.truststore), 1))  # started, before the clock
        began = time.perf_counter()
        opening = pool.apply_async(_open, (broker.tls, str(files.truststore), count))
        while not opening.ready():
            at = time.perf_counter()
            client.call(API_VERSIONS, 0, ApiVersionsRequest())
            latencies.append((time.perf_counter() - at) * 1000)
            time.sleep(0.001)
        opening.get()
        took = time.perf_counter() - began
    p99 = sorted(latencies)[int(len(latencies) * 0.99)]
    return [
        Figure(f"{broker.name}: {count} TLS connections", "s", took, 20.0),
        Figure(f"{broker.name}: another client's p99 meanwhile", "ms", p99, 20.0),
    ]


def _open(address: str, truststore: str, count: int) -> None:
    """Open them all, fifty handshakes at a time."""
    context = ssl.create_default_context(cafile=truststore)
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(50) as threads:
        for client in threads.map(lambda _: TlsRawClient(address, context), range(count)):
            stack.enter_context(client)


if __name__ == "__main__":
    main()
