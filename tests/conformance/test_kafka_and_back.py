"""ZK-6: a cluster of Kafka's goes on as one of ours and then as Kafka's, and nobody notices.

The same directories, the same ZooKeeper, the same clients: an idempotent producer under load, a
transactional one with a transaction that is open at either change, a group.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.client import SyncAdmin
from barnabas.types import TopicPartition
from tests.conformance import confluent_client
from tests.conformance.clients import Resource, Sent
from tests.conformance.kafka_process import KafkaCluster
from tests.integration.broker_process import wait_until
from tests.integration.cluster_load import (
    BURST,
    acknowledge_more,
    check_everything_is_there,
    committed_values,
    leader_of,
    wait_for_full_isr,
)
from tests.integration.cluster_process import ClusterProcess, wait_for_equal_files
from tests.integration.senders import PARTITIONS, ConfluentSender, Sender, sending

pytestmark = [pytest.mark.slow, pytest.mark.foreign]

OPTIONS = (
    "min.insync.replicas=2",
    "replica.lag.time.max.ms=3000",
    # Three Javas that start at once may be silent for a while.
    "zookeeper.session.timeout.ms=6000",
    "auto.create.topics.enable=false",
)
TX_TOPIC, GROUP = "transactions", "readers"
GROUP_STEP = 500
DEADLINE_S = 30.0


class Clients:
    """Those who stay through all changes, and what they were promised."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        confluent_client.create_topic(servers, TX_TOPIC, PARTITIONS, {}, replicas=3)
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "transactional.id": "mover",
                "transaction.timeout.ms": 120_000,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._producer.init_transactions(DEADLINE_S)
        self.committed: list[bytes] = []
        self._open: list[bytes] = []
        self._number = 0
        self.group_position = 0

    def begin(self) -> None:
        """A transaction with a record in each partition, which are all in the log."""
        self._producer.begin_transaction()
        self.continue_()

    def continue_(self) -> None:
        for partition in range(PARTITIONS):
            value = b"%d" % self._number
            self._number += 1
            self._open.append(value)
            self._producer.produce(TX_TOPIC, value, partition=partition)
        assert self._producer.flush(DEADLINE_S) == 0

    def commit(self) -> None:
        self._producer.commit_transaction(DEADLINE_S)
        self.committed += self._open
        self._open.clear()

    def abort(self) -> None:
        self._producer.abort_transaction(DEADLINE_S)
        self._open.clear()

    def transact(self) -> None:
        """What was open is continued and committed; one more, one that is not; one stays open."""
        if self._open:
            self.continue_()
            self.commit()
        self.begin()
        self.commit()
        self.begin()
        self.abort()
        self.begin()

    def read_in_group(self, topic: str) -> None:
        """The next records of partition 0 after those that were committed, and commits."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        first: list[int] = []
        consumer.subscribe([topic])

        def has_read() -> bool:
            for message in consumer.consume(GROUP_STEP, 0.2):
                if message.error() is None and message.partition() == 0:
                    first.append(message.offset())
            return len(first) >= GROUP_STEP

        try:
            wait_until(has_read, DEADLINE_S)
            assert first[0] == self.group_position
            consumer.commit(asynchronous=False)
            self.group_position = first[-1] + 1
        finally:
            consumer.close()

    def check(self, topic: str) -> None:
        """All of it, wherever the cluster has been in the meantime."""
        read = committed_values(self.servers, TX_TOPIC, PARTITIONS)
        assert sorted(map(int, read)) == sorted(map(int, self.committed))
        with SyncAdmin(self.servers) as admin:
            offsets = admin.list_group_offsets(GROUP)
        assert offsets[TopicPartition(topic, 0)].offset == self.group_position


@pytest.mark.timeout(180)
def test_a_cluster_of_kafkas_changes_hands_and_back(tmp_path: Path) -> None:
    """ZK-6, DL-1, DL-2, DL-4, CO-6, PR-7"""
    cluster = ClusterProcess(tmp_path, 3, *OPTIONS)
    servers = cluster.bootstrap_servers
    kafka = KafkaCluster(cluster)
    try:
        cluster.zookeeper.start()
        kafka.start()
        with sending(patient_sender, servers, 3) as sender:
            clients = Clients(servers)
            live(sender, clients)
            sender.allow(BURST)
            kafka.stop()
            for broker in cluster.brokers.values():
                broker.start()
            live(sender, clients)
            lose_a_leader(cluster, sender)
            live(sender, clients)
            confluent_client.create_topic(servers, "ours", 3, {"segment.bytes": "4096"}, replicas=3)
            confluent_client.produce(servers, "ours", [Sent(n % 3, b"k", b"v") for n in range(300)])
            sender.allow(BURST)
            for broker in cluster.brokers.values():
                assert broker.stop() == 0
            kafka.start()
            check_kafka_is_content(kafka)
            live(sender, clients)
            assert len(confluent_client.consume(servers, "ours", 3, 300)) == 300
            configs = confluent_client.describe_configs(servers, Resource("topic", "ours"))
            assert configs["segment.bytes"].value == "4096"
            clients.commit()
            sender.stop()
        check_everything_is_there(sender, servers)
        clients.check(sender.topic)
        for topic in (sender.topic, TX_TOPIC):
            wait_for_full_isr(servers, topic)
            for partition in range(PARTITIONS):
                wait_for_equal_files(cluster, topic, partition)
        check_kafka_is_content(kafka)
        kafka.stop()
        print(f"{sender.acknowledged_count()} records were kept by Kafka, by us and by Kafka")
    finally:
        kafka.kill_all()
        cluster.kill_all()


def patient_sender(servers: str, replicas: int) -> Sender:
    """Kafka says of a topic that it is unknown until its controller has spoken to it, and librdkafka
    believes that of a topic that is older than this."""
    return ConfluentSender(servers, replicas, {"topic.metadata.propagation.max.ms": 3_600_000})


def live(sender: Sender, clients: Clients) -> None:
    acknowledge_more([sender])
    clients.transact()
    clients.read_in_group(sender.topic)


def lose_a_leader(cluster: ClusterProcess, sender: Sender) -> None:
    """So that epochs and logs change as they do in a bad week."""
    leader = leader_of(cluster.bootstrap_servers, sender.topic)
    sender.allow(BURST)
    cluster.brokers[leader].kill()
    acknowledge_more([sender])
    cluster.brokers[leader].start()
    wait_for_full_isr(cluster.bootstrap_servers, sender.topic)


def check_kafka_is_content(kafka: KafkaCluster) -> None:
    """It took the directories for those of a clean stop, and found nothing wrong in them."""
    for broker in kafka.running.values():
        said = broker.said()
        assert "since clean shutdown file was found" in said, said
        assert " ERROR " not in said and "orrupt" not in said, said
