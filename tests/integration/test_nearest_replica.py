"""Consumers that read from the replica in their rack (RE-2, KIP-392): ours and librdkafka's."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError
from confluent_kafka import TopicPartition as Partition

import barnabas
from barnabas.client import SyncProducer
from barnabas.client.channel import Connection, system_seams
from barnabas.client.consumer import consumer as our_consumer
from barnabas.client.security.tls import ClientTls
from barnabas.types import TopicPartition
from tests.kit.clients import confluent_client
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.secured

CONFIG = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "controlled.shutdown.retry.backoff.ms": "100",
    "min.insync.replicas": "2",
    "replica.lag.time.max.ms": "2000",
}
RACKS = {1: "east", 2: "west", 3: "north"}
_BYTES_RECEIVED = 128  # where struct tcp_info has tcpi_bytes_received
WITHIN_S = 120.0


@pytest.fixture
def cluster() -> Iterator[barnabas.Cluster]:
    racks = {broker_id: {"broker.rack": rack} for broker_id, rack in RACKS.items()}
    with barnabas.Cluster(brokers=3, config=CONFIG, broker_config=racks) as cluster:
        yield cluster


def create(cluster: barnabas.Cluster, topic: str) -> int:
    """A topic of one partition on all brokers; who leads it."""
    servers = cluster.bootstrap_servers
    confluent_client.create_topic(servers, topic, 1, {}, replicas=3)
    wait_until(lambda: len(described(cluster, topic).isr) == 3)
    return described(cluster, topic).leader


def described(cluster: barnabas.Cluster, topic: str) -> Any:
    return confluent_client.describe_topic(cluster.bootstrap_servers, topic)[0]


class Writing:
    """Numbers, one record each, with acks=all, until it is left: `count` were acknowledged."""

    def __init__(self, cluster: barnabas.Cluster, topic: str) -> None:
        self._servers = cluster.bootstrap_servers
        self._topic = topic
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.count = 0

    def __enter__(self) -> Writing:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _write(self) -> None:
        with SyncProducer(self._servers, acks=-1) as producer:
            while not self._is_over.is_set():
                producer.send(self._topic, b"%d" % self.count, partition=0).result()
                self.count += 1
                time.sleep(0.002)


class LibrdkafkaReader:
    """What confluent-kafka has read, and from whom its partition comes."""

    def __init__(self, servers: str, topic: str, rack: str) -> None:
        self._topic = topic
        self.values: list[int] = []
        self._statistics: dict[str, Any] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "none",
                "client.rack": rack,
                "auto.offset.reset": "error",
                "enable.auto.commit": False,
                "statistics.interval.ms": 100,
                "stats_cb": self._keep_statistics,
                "fetch.error.backoff.ms": 50,
                "reconnect.backoff.max.ms": 200,
                "topic.metadata.refresh.interval.ms": 1_000,
            }
        )
        self._consumer.assign([Partition(topic, 0, OFFSET_BEGINNING)])

    def _keep_statistics(self, text: str) -> None:
        self._statistics = json.loads(text)

    def read_on(self) -> None:
        for message in self._consumer.consume(500, 0.1):
            error = message.error()
            if error is None:
                assert message.offset() == len(self.values)
                self.values.append(int(message.value() or b""))
            else:
                assert error.code() != KafkaError._AUTO_OFFSET_RESET, error
                assert not error.fatal(), error

    @property
    def source(self) -> int:
        topic = self._statistics.get("topics", {}).get(self._topic, {})
        return int(topic.get("partitions", {}).get("0", {}).get("broker", -1))

    def received(self) -> dict[int, int]:
        """Bytes by broker."""
        brokers = self._statistics.get("brokers", {}).values()
        return {each["nodeid"]: each["rxbytes"] for each in brokers if each["nodeid"] > 0}

    def close(self) -> None:
        self._consumer.close()


class OurReader:
    """The same of our own consumer, on a loop of its own."""

    def __init__(self, servers: str, topic: str, rack: str, **options: Any) -> None:
        self.values: list[int] = []
        self._connections: list[tuple[int, asyncio.Transport]] = []
        self._cut_off = 0
        self._partition = TopicPartition(topic, 0)
        self._next_offset = 0
        self._loop = asyncio.new_event_loop()
        self._consumer = our_consumer.Consumer(
            servers,
            seams=system_seams()._replace(dial=self._dial),
            client_rack=rack,
            auto_offset_reset="none",
            **{"metadata_max_age_ms": 1_000, **options},
        )
        self._loop.run_until_complete(self._start())

    async def _start(self) -> None:
        await self._consumer.start()
        self._consumer.assign([self._partition])
        self._consumer.seek(self._partition, 0)

    async def _dial(
        self, make: Callable[[], Connection], host: str, port: int, tls: ClientTls | None = None
    ) -> Connection:
        assert tls is None
        if port == self._cut_off:
            raise ConnectionRefusedError
        loop = asyncio.get_running_loop()
        transport, connection = await loop.create_connection(make, host, port)
        self._connections.append((port, transport))
        return connection

    def cut_off(self, port: int) -> None:
        """From here the port is not reachable any more."""
        self._cut_off = port
        for there, transport in self._connections:
            if there == port:
                transport.abort()

    def read_on(self) -> None:
        for record in self._loop.run_until_complete(self._consumer.poll(100)):
            assert record.offset == self._next_offset
            self._next_offset += 1
            self.values.append(int(record.value or b""))

    def seek(self, offset: int) -> None:
        self._consumer.seek(self._partition, offset)
        self._next_offset = offset

    def received_at(self, port: int) -> int:
        """Bytes on connections that are open."""
        return sum(
            struct.unpack_from(
                "Q",
                transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, 11, 192),
                _BYTES_RECEIVED,
            )[0]
            for there, transport in self._connections
            if there == port and not transport.is_closing()
        )

    def close(self) -> None:
        self._loop.run_until_complete(self._consumer.close())
        self._loop.close()


Reader = LibrdkafkaReader | OurReader


@pytest.fixture(params=[OurReader, LibrdkafkaReader])
def reader_of(request: pytest.FixtureRequest) -> Iterator[Callable[[str, str, str], Reader]]:
    opened: list[Reader] = []

    def open_reader(servers: str, topic: str, rack: str) -> Reader:
        opened.append(request.param(servers, topic, rack))
        return opened[-1]

    yield open_reader
    for reader in opened:
        reader.close()


def read_until(reader: Reader, holds: Callable[[], bool]) -> None:
    until = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < until, f"{len(reader.values)} read"
        reader.read_on()


def source_of(cluster: barnabas.Cluster, reader: Reader) -> Callable[[], int]:
    """From whom the reader gets most of what it gets from now on."""
    if isinstance(reader, LibrdkafkaReader):
        return lambda: reader.source
    ports = {cluster.server(each).port: each for each in RACKS}
    before = {port: reader.received_at(port) for port in ports}

    def source() -> int:
        more = {port: reader.received_at(port) - before[port] for port in ports}
        most = max(more, key=lambda port: more[port])
        return ports[most] if more[most] > 5_000 else -1

    return source


def near(leader: int) -> int:
    """One of the followers."""
    return next(each for each in RACKS if each != leader)


def test_re_2_the_reads_go_to_the_follower(
    cluster: barnabas.Cluster, reader_of: Callable[[str, str, str], Reader]
) -> None:
    """A megabyte of it, and what comes later too; the leader sends next to nothing."""
    leader = create(cluster, "near")
    follower = near(leader)
    with SyncProducer(cluster.bootstrap_servers, acks=-1) as producer:
        for number in range(2_000):
            producer.send("near", b"%0500d" % number, partition=0)
        producer.flush()
        reader = reader_of(cluster.bootstrap_servers, "near", RACKS[follower])
        read_until(reader, lambda: len(reader.values) == 2_000)
        producer.send("near", b"2000", partition=0).result()
        read_until(reader, lambda: len(reader.values) == 2_001)
    assert reader.values == list(range(2_001))
    if isinstance(reader, LibrdkafkaReader):
        read_until(reader, lambda: reader.received().get(follower, 0) > 1_000_000)
        bytes_by_broker = reader.received()
        assert reader.source == follower
    else:
        bytes_by_broker = {each: reader.received_at(cluster.server(each).port) for each in RACKS}
    assert bytes_by_broker[follower] > 1_000_000
    assert bytes_by_broker[leader] < 50_000


def test_re_2_without_a_rack_the_reads_go_to_the_leader(
    cluster: barnabas.Cluster, reader_of: Callable[[str, str, str], Reader]
) -> None:
    leader = create(cluster, "far")
    with Writing(cluster, "far") as writing:
        reader = reader_of(cluster.bootstrap_servers, "far", "")
        read_until(reader, lambda: len(reader.values) > 300)
        source = source_of(cluster, reader)
        read_until(reader, lambda: source() == leader)
    read_until(reader, lambda: len(reader.values) == writing.count)
    assert reader.values == list(range(writing.count))


@pytest.mark.slow
@pytest.mark.parametrize("who", ["follower", "leader"])
def test_re_2_nothing_is_lost_or_read_twice_when_one_of_them_stops(
    cluster: barnabas.Cluster, reader_of: Callable[[str, str, str], Reader], who: str
) -> None:
    """Monotonic reads: each record once, in order. Then the follower is read once more."""
    leader = create(cluster, "stops")
    follower = near(leader)
    gone = follower if who == "follower" else leader
    with Writing(cluster, "stops") as writing:
        reader = reader_of(cluster.bootstrap_servers, "stops", RACKS[follower])
        source = source_of(cluster, reader)
        read_until(reader, lambda: source() == follower)
        cluster.stop_broker(gone)
        seen = len(reader.values)
        read_until(reader, lambda: len(reader.values) > seen + 500)
        cluster.start_broker(gone)
        wait_until(lambda: len(described(cluster, "stops").isr) == 3)
        now_led_by = described(cluster, "stops").leader
        source = source_of(cluster, reader)
        if now_led_by != follower:
            read_until(reader, lambda: source() == follower)
        seen = len(reader.values)
        read_until(reader, lambda: len(reader.values) > seen + 500)
    read_until(reader, lambda: len(reader.values) == writing.count)
    assert reader.values == list(range(writing.count))
    print(f"{writing.count} records read once each, while the {who} was away and came back")


def freeze(cluster: barnabas.Cluster, broker_id: int, topic: str) -> None:
    """It copies no more, and answers consumers all the same."""
    server = cluster.server(broker_id)
    replica = server.node.replicas.replica_of((topic, 0))
    assert server.parts.partitions.others is not None
    fetchers = server.parts.partitions.others.fetchers
    cluster.thread.call(lambda: fetchers.on_unfollowing(replica))


@pytest.mark.parametrize("how", ["by time", "by a seek"])
def test_re_2_a_follower_that_lags_is_left(cluster: barnabas.Cluster, how: str) -> None:
    """When metadata.max.age.ms is over, or what is wanted is beyond its log: that is no reason to
    reset the offset, since the leader has it."""
    leader = create(cluster, "lags")
    follower = near(leader)
    max_age_ms = 1_000 if how == "by time" else 300_000
    with SyncProducer(cluster.bootstrap_servers, acks=-1) as producer:
        producer.send("lags", b"0", partition=0).result()
        servers, rack = cluster.bootstrap_servers, RACKS[follower]
        reader = OurReader(servers, "lags", rack, metadata_max_age_ms=max_age_ms)
        try:
            read_until(reader, lambda: reader.values == [0])
            freeze(cluster, follower, "lags")
            for number in range(1, 101):
                # The follower holds up the first one until it leaves the ISR.
                producer.send("lags", b"%d" % number, partition=0)
            producer.flush()
            # The leader knows it, or it would not have acknowledged them; the others are informed.
            wait_until(lambda: follower not in described(cluster, "lags").isr)
            if how == "by a seek":
                reader.read_on()
                assert reader.values == [0], "the follower still counts as the one to read"
                reader.seek(50)
                read_until(reader, lambda: len(reader.values) == 52)
                assert reader.values[1:] == list(range(50, 101))
            else:
                read_until(reader, lambda: len(reader.values) == 101)
                assert reader.values == list(range(101))
        finally:
            reader.close()


@pytest.mark.slow
def test_re_2_a_follower_that_cannot_be_reached_is_left(cluster: barnabas.Cluster) -> None:
    """From where the consumer is: the metadata says that it is there, and the leader names it."""
    leader = create(cluster, "cut")
    follower = near(leader)
    servers, rack = cluster.bootstrap_servers, RACKS[follower]
    with Writing(cluster, "cut") as writing:
        reader = OurReader(servers, "cut", rack, metadata_max_age_ms=3_000)
        try:
            read_until(reader, lambda: len(reader.values) > 100)
            reader.cut_off(cluster.server(follower).port)
            seen = len(reader.values)
            read_until(reader, lambda: len(reader.values) > seen + 200)
            reader.cut_off(0)
            source = source_of(cluster, reader)
            read_until(reader, lambda: source() == follower)
        finally:
            reader.close()
    assert reader.values == list(range(len(reader.values)))
    assert writing.count >= len(reader.values)


def test_co_6_aborted_records_are_left_out_at_the_follower_too(cluster: barnabas.Cluster) -> None:
    """RE-2: its last stable offset and its aborted transactions are the leader's."""
    leader = create(cluster, "bank")
    follower = near(leader)
    servers = cluster.bootstrap_servers
    with SyncProducer(servers, transactional_id="t") as producer:
        producer.init_transactions()
        for is_commit, value in zip(itertools.cycle([True, False]), range(10), strict=False):
            producer.begin_transaction()
            producer.send("bank", b"%d" % value, partition=0)
            if is_commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
        producer.begin_transaction()
        producer.send("bank", b"99", partition=0).result()  # open: what is behind it is unseen
        reader = Committed(servers, "bank", RACKS[follower])
        try:
            read_until(reader, lambda: len(reader.values) >= 5)
            for _ in range(5):
                reader.read_on()
            assert reader.values == [0, 2, 4, 6, 8]
            producer.commit_transaction()
            read_until(reader, lambda: reader.values[5:] == [99])
            ports = {each: cluster.server(each).port for each in RACKS}
            assert reader.received_at(ports[follower]) > reader.received_at(ports[leader])
        finally:
            reader.close()


class Committed(OurReader):
    """Reads what is committed; offsets have gaps."""

    def __init__(self, servers: str, topic: str, rack: str) -> None:
        super().__init__(servers, topic, rack, isolation_level="read_committed")

    def read_on(self) -> None:
        for record in self._loop.run_until_complete(self._consumer.poll(100)):
            self.values.append(int(record.value or b""))
