"""What is done to a cluster under load, and what must be true of it afterwards."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable
from typing import Protocol

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, PartitionMetadata

from barnabas.client import NewTopic, SyncAdmin
from barnabas.client.offsets import LATEST
from barnabas.cluster import layout
from barnabas.cluster.zookeeper import ZooKeeperStore
from barnabas.cluster.zookeeper_settings import Settings
from barnabas.protocol.api import PRODUCE
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.types import TopicPartition as Name
from tests.kit.clients import confluent_client
from tests.kit.processes.cluster_process import ClusterProcess, wait_for_equal_files
from tests.kit.processes.senders import LEAST_PER_LIFE, PARTITIONS, ConfluentSender, Sender
from tests.kit.raw_client import PATIENCE_S, RawClient, batch
from tests.kit.waiting import wait_until

BURST = 3_000
ASKED = "asked-by-hand"  # a topic of one partition, for what the senders would not do
LONGEST_LOSS_SECONDS = 120.0


class Load(Protocol):
    """Whatever sends numbers, in turn to each partition: our senders, and those elsewhere."""

    topic: str
    sent_count: int
    failed: list[object]

    def allow(self, count: int) -> None: ...

    def has_acknowledged_enough(self) -> bool: ...


def acknowledge_more(senders: Iterable[Load]) -> None:
    """Returns when each has had `LEAST_PER_LIFE` more acknowledged; it still may send some."""
    senders = list(senders)
    for sender in senders:
        sender.allow(LEAST_PER_LIFE + BURST)
    for sender in senders:
        wait_until(sender.has_acknowledged_enough, LONGEST_LOSS_SECONDS)


def leader_of(servers: str, topic: str, partition: int = 0) -> int:
    """Who leads it, once somebody does."""
    found: list[int] = []

    def is_led() -> bool:
        found[:] = [each.leader for each in partitions_of(servers, topic)]
        return len(found) > partition and found[partition] >= 0

    wait_until(is_led, LONGEST_LOSS_SECONDS)
    return found[partition]


def wait_for_full_isr(servers: str, topic: str, size: int = 3) -> None:
    def is_full() -> bool:
        partitions = partitions_of(servers, topic)
        return bool(partitions) and all(len(each.isrs) == size for each in partitions)

    wait_until(is_full, LONGEST_LOSS_SECONDS)


def partitions_of(servers: str, topic: str) -> list[PartitionMetadata]:
    """As one of the servers has it; none while that one has not heard of the topic."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    found = admin.list_topics(topic, LONGEST_LOSS_SECONDS).topics[topic]
    return [each for _, each in sorted(found.partitions.items())] if found.error is None else []


def check_everything_is_there(sender: Load, servers: str) -> None:
    """For one that got everything acknowledged: what it sent is there, once and in order."""
    assert sender.failed == []
    seen = confluent_client.consume(servers, sender.topic, PARTITIONS, sender.sent_count)
    for partition in range(PARTITIONS):
        stored = [int(one.value or b"") for one in seen if one.partition == partition]
        sent = list(range(partition, sender.sent_count, PARTITIONS))
        pairs = enumerate(itertools.zip_longest(stored, sent))
        wrong = next(((at, pair) for at, pair in pairs if pair[0] != pair[1]), None)
        assert wrong is None, f"{sender.topic}-{partition} holds something else"


def committed_values(servers: str, topic: str, partitions: int) -> list[bytes]:
    """All that a reader of committed records sees, when it can read to the end of the log: no
    transaction is open for ever."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "looks",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    names = [Name(topic, number) for number in range(partitions)]
    with SyncAdmin(servers) as admin:
        found = admin.list_offsets(dict.fromkeys(names, LATEST))
    ends = {name.partition: found[name].offset for name in names}
    assigned = [TopicPartition(topic, number, 0) for number in range(partitions)]
    try:
        consumer.assign(assigned)
        values: list[bytes] = []

        def is_read() -> bool:
            for message in consumer.consume(1_000, 0.1):
                assert message.error() is None, message.error()
                values.append(confluent_client.value_of(message))
            at = {each.partition: each.offset for each in consumer.position(assigned)}
            return all(at[number] >= end for number, end in ends.items() if end)

        wait_until(is_read, LONGEST_LOSS_SECONDS)
        return values
    finally:
        consumer.close()


def create_led_by(leader: int, cluster: ClusterProcess) -> None:
    """The topic that is asked by hand, on all brokers."""
    replicas = [leader, *(key for key in cluster.brokers if key != leader)]
    with SyncAdmin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(ASKED, assignment={0: replicas})])
    wait_until(lambda: leader_of(cluster.bootstrap_servers, ASKED) == leader)


def produce_request(value: bytes, timeout_ms: int = 5_000) -> ProduceRequest:
    records = PartitionProduceData(index=0, records=batch(value))
    topics = [TopicProduceData(name=ASKED, partition_data=[records])]
    return ProduceRequest(acks=-1, timeout_ms=timeout_ms, topic_data=topics)


def produce(client: RawClient, value: bytes, timeout_ms: int = 5_000) -> int:
    """The error code of its answer."""
    answer = client.call(PRODUCE, 9, produce_request(value, timeout_ms))
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


def check_replicas_are_equal(cluster: ClusterProcess, sender: Load) -> None:
    for partition in range(PARTITIONS):
        wait_for_equal_files(cluster, sender.topic, partition)


def controller_of(cluster: ClusterProcess) -> int:
    """The controller's broker id; between two controllers, the next one's."""

    async def read() -> int:
        store = await ZooKeeperStore.open(Settings(cluster.zookeeper.connect, 60_000))
        try:
            async with asyncio.timeout(PATIENCE_S):
                while (node := await store.read(layout.CONTROLLER)) is None or node.data is None:
                    await asyncio.sleep(0.1)
            return layout.decode_controller(node.data)
        finally:
            await store.close()

    return asyncio.run(read())


def impatient_sender(servers: str, replicas: int) -> Sender:
    """It does not wait for a minute until it asks another broker."""
    return ConfluentSender(servers, replicas, {"socket.timeout.ms": 2_000})
