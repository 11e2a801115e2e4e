"""How fast `barnabas copy` copies a topic of a Kafka with KRaft that is on the same machine.

    python -m benchmarks.copy [--mib N]

Records of 1,000 bytes in three partitions, in batches of 16 KiB and of 512 KiB, plain and with lz4.
Source, target and the copy share the machine, so each copy stands beside what its halves take alone
there: fetching the topic and dropping it, and writing one and the same batch in transactions.
"Records" counts the bytes of the records as their readers see them, and has the goal; "moved"
counts the batches as they are stored and sent, which with lz4 are half of that.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from collections import deque
from pathlib import Path

from barnabas.cli.copy.fetches import Fetches
from barnabas.cli.copy.restamp import Draft, drafts_of
from barnabas.cli.copy.writer import Request, Writer
from barnabas.client import NewTopic, SyncAdmin, SyncProducer
from barnabas.client.channel import system_seams
from barnabas.client.cluster import Cluster
from barnabas.client.config import ClientConfig, configure
from barnabas.types import TopicPartition
from benchmarks.figures import Figure, parser_of, show
from tests.kit.clients.kraft_process import kraft_process
from tests.kit.processes.broker_process import COMMAND, broker_process

MIB = 1024 * 1024
PARTITIONS = 3
_RECORD_BYTES = 1_000
_IN_FLIGHT = 16
_TRANSACTION_BYTES = 128 * MIB
_GOAL = 200.0
_JVM = ("-XX:+UseSerialGC", "-Xmx512m")
CASES = [(16, "none"), (512, "none"), (16, "lz4"), (512, "lz4")]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--mib", type=int, default=1024, help="the size of each topic")
    options = parser.parse_args()
    show("barnabas copy, from KRaft, MB/s", measure(options.mib), options.json)


def measure(mib: int) -> list[Figure]:
    found = []
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "ours").mkdir()
        with (
            kraft_process(Path(directory) / "kraft", jvm=_JVM) as kraft,
            broker_process(Path(directory) / "ours") as ours,
        ):
            for kib, codec in CASES:
                servers = (kraft.bootstrap_servers, ours.bootstrap_servers)
                found += _measure(servers, kib, codec, mib)
    return found


def _measure(servers: tuple[str, str], kib: int, codec: str, mib: int) -> list[Figure]:
    source, target = servers
    topic = f"{codec}-{kib}"
    _fill(source, topic, kib, codec, mib)
    fetched_bytes, fetch_s = asyncio.run(_fetch(source, topic))
    write_s = asyncio.run(_write(source, target, topic, fetched_bytes))
    began_at = time.perf_counter()
    words = ["copy", "run", "--from", source, "--to", target, "--topic", topic]
    subprocess.run([str(COMMAND), *words], check=True, stdout=subprocess.DEVNULL)
    copy_s = time.perf_counter() - began_at
    with SyncAdmin(target) as admin:  # room for the next ones
        admin.delete_topics([topic, f"{topic}-written"])
    what = f"{codec}, batches of {kib} KiB"
    size, record_size = fetched_bytes / 1e6, mib * MIB // _RECORD_BYTES * _RECORD_BYTES / 1e6
    return [
        Figure(f"{what}: fetch alone, moved", "MB/s", size / fetch_s, at_most=False),
        Figure(f"{what}: write alone, moved", "MB/s", size / write_s, at_most=False),
        Figure(f"{what}: copy, moved", "MB/s", size / copy_s, at_most=False),
        Figure(f"{what}: copy, records", "MB/s", record_size / copy_s, _GOAL, at_most=False),
    ]


def _fill(servers: str, topic: str, kib: int, codec: str, mib: int) -> None:
    with SyncAdmin(servers) as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    # Half of each record is random, so lz4 saves half of it.
    value = [os.urandom(_RECORD_BYTES // 2) + bytes(_RECORD_BYTES // 2) for _ in range(97)]
    with SyncProducer(
        servers, batch_size=kib * 1024, linger_ms=100, compression_type=codec
    ) as producer:
        for number in range(mib * MIB // _RECORD_BYTES):
            producer.send(topic, value[number % 97], partition=number % PARTITIONS)


def _cluster(servers: str) -> Cluster:
    config, _ = configure(ClientConfig, {})
    return Cluster(servers, config, system_seams())


async def _fetch(servers: str, topic: str) -> tuple[int, float]:
    cluster = _cluster(servers)
    await cluster.start()
    try:
        fetches = Fetches(cluster)
        names = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        ends = await fetches.ends(names)
        size_bytes, began_at = 0, time.perf_counter()
        for name in names:
            async for chunk in fetches.records(name, *ends[name]):
                size_bytes += len(chunk.records)
        return size_bytes, time.perf_counter() - began_at
    finally:
        await cluster.close()


async def _write(source: str, target: str, topic: str, size_bytes: int) -> float:
    """Write the first batch of each partition again and again."""
    clusters = [_cluster(source), _cluster(target)]
    for each in clusters:
        await each.start()
    try:
        own = f"{topic}-written"
        with SyncAdmin(target) as admin:
            await asyncio.to_thread(admin.create_topics, [NewTopic(own, PARTITIONS, 1)])
        batches: list[tuple[TopicPartition, Draft]] = []
        for number in range(PARTITIONS):
            name = TopicPartition(topic, number)
            (chunk,) = await Fetches(clusters[0]).fetch({name: 0}, 500)
            batches.append((TopicPartition(own, number), next(drafts_of(chunk))))
        writer = Writer(clusters[1], f"benchmark-{topic}")
        await writer.identify()
        began_at = time.perf_counter()
        await _write_all(writer, batches, size_bytes)
        return time.perf_counter() - began_at
    finally:
        for each in clusters:
            await each.close()


async def _write_all(
    writer: Writer, batches: list[tuple[TopicPartition, Draft]], size_bytes: int
) -> None:
    round_bytes = sum(draft.size_bytes for _, draft in batches)
    sent: deque[Request] = deque()
    left_bytes = size_bytes
    while left_bytes > 0:
        await writer.add([name for name, _ in batches])
        for _ in range(max(1, min(left_bytes, _TRANSACTION_BYTES) // round_bytes)):
            sent += await writer.send(batches)
            left_bytes -= round_bytes
            while len(sent) > _IN_FLIGHT:
                await sent.popleft().base_offsets()
        while sent:
            await sent.popleft().base_offsets()
        await writer.commit()


if __name__ == "__main__":
    main()
