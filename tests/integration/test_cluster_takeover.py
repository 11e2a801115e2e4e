"""ZK-6: three brokers take over the directories and the metadata of a stopped Kafka cluster.

The tree was written down while two of Kafka's brokers ran, and says that the third is out of sync;
it has two partitions of each internal topic, the directories have three.
"""

from __future__ import annotations

import json
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.client import SyncAdmin
from barnabas.client.admin.admin import (
    DYNAMIC_TOPIC_CONFIG,
    TOPIC,
    ConfigResource,
    TopicDescription,
)
from barnabas.client.offsets import EARLIEST, LATEST
from barnabas.clock import SystemClock
from barnabas.protocol.api import OFFSET_FOR_LEADER_EPOCH
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.types import TopicPartition, uuid_from_text
from tests.kit.clients import confluent_client
from tests.kit.clients.clients import Sent
from tests.kit.processes.broker_process import COMMAND
from tests.kit.processes.cluster_process import ClusterProcess, wait_for_equal_files
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.secured, pytest.mark.slow, pytest.mark.foreign, pytest.mark.timeout(600)]

# The records and transactions are old: nothing is to be thought too old to be kept.
LONGEST_MS = 2**31 - 1
OPTIONS = (
    f"producer.id.expiration.ms={LONGEST_MS}",
    "log.cleaner.enable=false",
    "log.retention.ms=-1",
    "offsets.retention.minutes=2147483647",
    "transaction.remove.expired.transaction.cleanup.interval.ms=2147483647",
    "replica.lag.time.max.ms=3000",
)
READY_SECONDS = 120.0
IMPORT_SECONDS = 180
GROUP, TRANSACTIONAL_ID = "java-tx-group", "wire-tx"
R3, GONE = TopicPartition("r3", 0), TopicPartition("gone", 0)


@pytest.fixture(scope="module")
def expected(shared: Path) -> dict[str, Any]:
    path = shared / "fixtures" / "kafka-3.9" / "expected" / "cluster.json"
    facts: dict[str, Any] = json.loads(path.read_text())
    return facts


@pytest.fixture(scope="module")
def taken(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    """The cluster as its operator has it: the tree imported by the command, then all started."""
    kafka = shared / "fixtures" / "kafka-3.9"
    cluster = ClusterProcess(tmp_path_factory.mktemp("taken"), 3, *OPTIONS)
    for broker_id, broker in cluster.brokers.items():
        with tarfile.open(kafka / "cluster" / f"broker{broker_id}.tar.gz") as tar:
            tar.extractall(broker.data_dir.parent)
        (broker.data_dir.parent / "logs").rename(broker.data_dir)
    try:
        cluster.zookeeper.start()
        tree = kafka / "zookeeper" / "cluster-final-broker3-down.json"
        words = [str(COMMAND), "metadata", "import", str(tree)]
        words += ["--zookeeper-connect", cluster.zookeeper.connect]
        for broker in cluster.brokers.values():
            words += ["--dir", str(broker.data_dir)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=IMPORT_SECONDS)
        assert done.returncode == 0, done.stderr
        assert "Left out 3 ephemeral nodes." in done.stdout
        for topic in ("__consumer_offsets", "__transaction_state"):
            assert f"Created the states of 1 partition of {topic}" in done.stdout
        for broker in cluster.brokers.values():
            broker.start()
        yield cluster
        for broker in cluster.brokers.values():
            assert broker.stop() == 0
            assert "Traceback" not in broker.log.read_text()
    finally:
        cluster.kill_all()


@pytest.fixture(scope="module")
def admin(taken: ClusterProcess) -> Iterator[SyncAdmin]:
    with SyncAdmin(taken.bootstrap_servers) as admin:
        yield admin


@pytest.fixture(scope="module")
def topics(admin: SyncAdmin) -> dict[str, TopicDescription]:
    """All topics, once every replica of them is in sync."""
    found: dict[str, TopicDescription] = {}

    def are_whole() -> bool:
        found.update({topic.name: topic for topic in admin.describe_topics()})
        return all(
            set(partition.replicas) == set(partition.isr)
            for topic in found.values()
            for partition in topic.partitions
        )

    wait_until(are_whole, READY_SECONDS)
    return found


def named(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


def test_the_topics_are_the_same_ones(
    topics: dict[str, TopicDescription], admin: SyncAdmin, expected: dict[str, Any]
) -> None:
    """ZK-6: ids, replicas, and leader epochs that go on."""
    assert admin.describe_cluster().cluster_id == "XCO8KmIuT62m_iTEJQMzvg"
    replicas = {
        f"{topic.name}-{partition.partition}": partition.replicas
        for topic in topics.values()
        for partition in topic.partitions
        if not topic.is_internal
    }
    assert replicas == {"move-0": (3, 1), "move-1": (2, 3), "r3-0": (1, 2, 3), "r3-1": (2, 3, 1)}
    for internal in ("__consumer_offsets", "__transaction_state"):
        assert topics[internal].is_internal
        assert len(topics[internal].partitions) == 3
    for name, facts in expected["_view"].items():
        partition = named(name)
        topic = topics[partition.topic]
        assert topic.topic_id == uuid_from_text(facts["topic_id"])
        assert topic.partitions[partition.partition].leader_epoch >= facts["leader_epoch"]
    for place, facts in expected.items():
        if place.startswith("broker"):
            partition = named(place.partition("/")[2])
            newest = max(epoch for epoch, _ in facts["leader_epochs"])
            assert topics[partition.topic].partitions[partition.partition].leader_epoch >= newest


def test_every_log_begins_and_ends_as_it_did(
    topics: dict[str, TopicDescription], admin: SyncAdmin, expected: dict[str, Any]
) -> None:
    """ST-1, RE-2"""
    assert topics
    facts = {named(name): each for name, each in expected["_view"].items()}
    earliest = admin.list_offsets(dict.fromkeys(facts, EARLIEST))
    latest = admin.list_offsets(dict.fromkeys(facts, LATEST))
    stable = admin.list_offsets(dict.fromkeys(facts, LATEST), read_committed=True)
    for name, each in facts.items():
        assert earliest[name].offset == each["log_start"], name
        assert latest[name].offset == each["log_end"], name
        assert stable[name].offset == each["lso"], name


def test_every_epoch_ends_where_it_did(
    taken: ClusterProcess, topics: dict[str, TopicDescription], expected: dict[str, Any]
) -> None:
    """RE-5: at each partition's leader, from the history that Kafka wrote."""
    judged = 0
    for name, facts in expected["_view"].items():
        partition = named(name)
        leader = topics[partition.topic].partitions[partition.partition].leader
        place = expected.get(f"broker{leader}/{name}")
        history = [] if place is None else place["leader_epochs"]
        with RawClient(taken.brokers[leader].bootstrap_servers) as client:
            ends = [start for _, start in history[1:]] + [facts["log_end"]]
            for (epoch, start), end in zip(history, ends, strict=False):
                if start == end:
                    continue  # the next epoch takes its place
                assert _end_of_epoch(client, partition, epoch) == (epoch, end), (name, epoch)
                judged += 1
    print(f"{judged} epochs ended where they did in Kafka")
    assert judged >= 5


def test_the_group_and_the_transaction_are_where_they_were(
    topics: dict[str, TopicDescription], admin: SyncAdmin, expected: dict[str, Any]
) -> None:
    """ZK-6, CO-6: the offsets of an aborted transaction are not among the group's."""
    assert topics
    offsets = admin.list_group_offsets(GROUP)
    assert {name: each.offset for name, each in offsets.items()} == {
        R3: 22,
        TopicPartition("r3", 1): 0,
    }
    group = admin.describe_groups([GROUP])[GROUP]
    assert (group.state, group.protocol_type, group.members) == ("Empty", "consumer", ())
    transaction = admin.describe_transactions([TRANSACTIONAL_ID])[TRANSACTIONAL_ID]
    assert (transaction.state, transaction.producer_id) == ("CompleteAbort", 0)
    producers = admin.describe_producers([R3])[R3]
    [known] = expected["_view"]["r3-0"]["producers"]
    if known["last_timestamp"] + LONGEST_MS < SystemClock().wall_ms():
        assert not producers  # no setting keeps a producer for longer
        return
    assert list(producers) == [
        (
            known["producer_id"],
            known["epoch"],
            known["last_sequence"],
            known["last_timestamp"],
            known["coordinator_epoch"],
            known["txn_start"],
        )
    ]


def test_the_settings_are_in_force(admin: SyncAdmin) -> None:
    """ZK-6, TP-5"""
    resource = ConfigResource(TOPIC, "r3")
    entries = admin.describe_configs([resource])[resource]
    own = {each.name: each.value for each in entries if each.source == DYNAMIC_TOPIC_CONFIG}
    assert own == {
        "max.message.bytes": "2000000",
        "min.insync.replicas": "1",
        "retention.ms": "-1",
        "unclean.leader.election.enable": "true",
    }


def test_the_cluster_goes_on(
    taken: ClusterProcess, topics: dict[str, TopicDescription], admin: SyncAdmin
) -> None:
    """RE-2, TP-1: behind Kafka's last record, on all replicas, by our own producer ids; the topic
    that Kafka was deleting does not come back, and its name is free."""
    assert "gone" not in topics
    servers = taken.bootstrap_servers
    confluent_client.produce(servers, "r3", [Sent(0, b"key", b"one more")])
    confluent_client.create_topic(servers, "gone", 1, {}, replicas=3)
    confluent_client.produce(servers, "gone", [Sent(0, b"key", b"the first")])
    # A marker at 21, and an aborted record with its marker at 22.
    offsets = [*range(21), *range(24, 65)]
    seen = confluent_client.consume(servers, "r3", 1, len(offsets))
    assert [one.offset for one in seen] == offsets
    assert seen[-1].value == b"one more"
    assert admin.list_offsets({GONE: LATEST})[GONE].offset == 1
    for name in ("r3", "gone"):
        wait_for_equal_files(taken, name, 0)


def _end_of_epoch(client: RawClient, name: TopicPartition, epoch: int) -> tuple[int, int]:
    wanted = OffsetForLeaderPartition(
        partition=name.partition, current_leader_epoch=-1, leader_epoch=epoch
    )
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=name.topic, partitions=[wanted])]
    )
    answer = client.call(OFFSET_FOR_LEADER_EPOCH, 4, request).topics[0].partitions[0]
    assert answer.error_code == 0, name
    return answer.leader_epoch, answer.end_offset
