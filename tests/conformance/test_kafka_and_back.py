"""ZK-6: a cluster of Kafka's goes on as one of ours and then as Kafka's, unnoticed.

The same directories, the same ZooKeeper, the same clients: an idempotent producer under load, a
transactional one with a transaction that is open at either change, a group.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from barnabas.client import SyncAdmin
from barnabas.storage.gaps import FILE_NAME as GAPS
from barnabas.types import TopicPartition
from tests.kit.clients import confluent_client
from tests.kit.clients.clients import Resource, Sent
from tests.kit.clients.kafka_process import KafkaCluster
from tests.kit.processes.cluster_load import (
    BURST,
    acknowledge_more,
    check_everything_is_there,
    committed_values,
    leader_of,
    wait_for_full_isr,
)
from tests.kit.processes.cluster_process import ClusterProcess, wait_for_equal_files
from tests.kit.processes.senders import PARTITIONS, ConfluentSender, OwnSender, Sender, sending
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.foreign]

OPTIONS = (
    "min.insync.replicas=2",
    "replica.lag.time.max.ms=3000",
    # Three Javas that start at once may be silent for a while.
    "zookeeper.session.timeout.ms=6000",
    "auto.create.topics.enable=false",
)
TX_TOPIC, GROUP = "transactions", "readers"
OUR_TOPIC, OUR_BATCHES, OUR_BATCH = "made-by-us", 4, 100
GROUP_STEP = 500
ABOUT_FILES = re.compile(
    r" (WARN|ERROR) .*\((kafka\.log|kafka\.coordinator|kafka\.server\.checkpoints|"
    r"org\.apache\.kafka\.storage)|orrupt"
)
# A leader below min.insync.replicas keeps its watermark, and a follower may have a higher one from
# the leader before: no trouble, and no matter of files.
LOWER_WATERMARK = "Non-monotonic update of high watermark"
DEADLINE_S = 90.0
# A producer snapshot has the last batch only: of two that are not acknowledged when all brokers
# stop, the first is not known again, by whatever Kafka.
OUR_SENDER = partial(OwnSender, in_flight=1)
THEIR_SENDER = partial(ConfluentSender, settings={"max.in.flight": 1})


class Clients:
    """Those who stay through all changes, and what they were promised."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        confluent_client.create_topic(servers, TX_TOPIC, PARTITIONS, {}, replicas=3)
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "transactional.id": "mover",
                # It stays open while three Javas stop, and others start.
                "transaction.timeout.ms": 600_000,
                "socket.timeout.ms": 60_000,
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
            wait_until(partial(self._is_taken, value, partition), DEADLINE_S)
        assert self._producer.flush(DEADLINE_S) == 0

    def _is_taken(self, value: bytes, partition: int) -> bool:
        """librdkafka believes a Kafka that has just begun and knows of no topic yet."""
        try:
            self._producer.produce(TX_TOPIC, value, partition=partition)
        except KafkaException as refused:
            if refused.args[0].code() != KafkaError._UNKNOWN_TOPIC:
                raise
            # The broker that it asked has no metadata yet; by itself it asks again after minutes.
            self._producer.list_topics(TX_TOPIC, DEADLINE_S)
            return False
        return True

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

    def wait_for_metadata(self) -> None:
        """Until the producer has heard from all that its topic is there."""

        def is_known() -> bool:
            topic = self._producer.list_topics(TX_TOPIC, DEADLINE_S).topics[TX_TOPIC]
            return topic.error is None and all(
                partition.error is None and partition.leader >= 0
                for partition in topic.partitions.values()
            )

        wait_until(is_known, DEADLINE_S)

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


@pytest.mark.timeout(600)
def test_a_cluster_of_kafkas_changes_hands_and_back(tmp_path: Path) -> None:
    """ZK-6, DL-1, DL-2, DL-4, CO-6, PR-7"""
    cluster = ClusterProcess(tmp_path, 3, *OPTIONS)
    servers = cluster.bootstrap_servers
    kafka = KafkaCluster(cluster)
    try:
        cluster.zookeeper.start()
        kafka.start()
        with (
            sending(OUR_SENDER, servers, 3) as ours,
            sending(THEIR_SENDER, servers, 3) as theirs,
        ):
            clients = Clients(servers)
            live(clients, ours, theirs)
            for sender in (ours, theirs):
                sender.allow(BURST)
            kafka.stop()
            for broker in cluster.brokers.values():
                broker.start()
            live(clients, ours, theirs)
            lose_a_leader(cluster, ours, theirs)
            live(clients, ours, theirs)
            make_a_topic(servers)
            # librdkafka would believe a Kafka that has just begun, and calls every topic unknown.
            theirs.stop()
            ours.allow(BURST)
            for broker in cluster.brokers.values():
                assert broker.stop() == 0
            assert notes_of_gaps(cluster)
            kafka.start()
            assert notes_of_gaps(cluster) == [], "what Kafka writes has gaps where it likes"
            clients.wait_for_metadata()
            live(clients, ours)
            clients.commit()
            ours.stop()
        check_our_topic(servers)
        for sender in (ours, theirs):
            check_everything_is_there(sender, servers)
        clients.check(ours.topic)
        for topic in (ours.topic, theirs.topic, TX_TOPIC):
            wait_for_full_isr(servers, topic)
            for partition in range(PARTITIONS):
                wait_for_equal_files(cluster, topic, partition)
        check_kafka_is_content(kafka)
        kafka.stop()
        print(f"{ours.acknowledged_count()} records were kept by Kafka, by us and by Kafka")
    finally:
        kafka.kill_all()
        cluster.kill_all()


def live(clients: Clients, *senders: Sender) -> None:
    acknowledge_more(senders)
    clients.transact()
    clients.read_in_group(senders[0].topic)


def lose_a_leader(cluster: ClusterProcess, *senders: Sender) -> None:
    """So that epochs and logs change as they do in a bad week."""
    leader = leader_of(cluster.bootstrap_servers, senders[0].topic)
    cluster.brokers[leader].kill()
    acknowledge_more(senders)
    cluster.brokers[leader].start()
    for sender in senders:
        wait_for_full_isr(cluster.bootstrap_servers, sender.topic)


def notes_of_gaps(cluster: ClusterProcess) -> list[Path]:
    """Where we say that logs have no gaps: in files of a kind that Kafka removes as it starts."""
    found = (broker.data_dir.glob(f"*/{GAPS}") for broker in cluster.brokers.values())
    return [path for paths in found for path in paths]


def make_a_topic(servers: str) -> None:
    """Of several segments."""
    confluent_client.create_topic(servers, OUR_TOPIC, 1, {"segment.bytes": "20000"}, replicas=3)
    for _ in range(OUR_BATCHES):
        records = [Sent(0, b"key", b"x" * 150) for _ in range(OUR_BATCH)]
        confluent_client.produce(servers, OUR_TOPIC, records)


def check_our_topic(servers: str) -> None:
    count = OUR_BATCHES * OUR_BATCH
    seen = confluent_client.consume(servers, OUR_TOPIC, 1, count)
    assert [one.offset for one in seen] == list(range(count))
    configs = confluent_client.describe_configs(servers, Resource("topic", OUR_TOPIC))
    assert configs["segment.bytes"].value == "20000"


def check_kafka_is_content(kafka: KafkaCluster) -> None:
    """It took the directories for those of a clean stop, and found nothing wrong in them."""
    for broker in kafka.running.values():
        said = broker.said()
        assert "since clean shutdown file was found" in said, said
        complaints = [
            line
            for line in said.splitlines()
            if ABOUT_FILES.search(line) and LOWER_WATERMARK not in line
        ]
        assert complaints == []
