"""ZS-1: real Kafkas, 3.9 and 2.3.1, and our own cluster run on our ZooKeeper server unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client import NewTopic, SyncAdmin, SyncConsumer, SyncProducer
from tests.kit import foreign
from tests.kit.clients.kafka_process import KafkaProcess
from tests.kit.processes.cluster_process import ClusterProcess
from tests.kit.processes.own_zookeeper_process import OwnZooKeeperProcess
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.foreign, pytest.mark.slow]

RECORDS = 50


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[OwnZooKeeperProcess]:
    server = OwnZooKeeperProcess(tmp_path)
    try:
        server.start()
        yield server
    finally:
        if server.process is not None:
            server.kill()


def use(bootstrap_servers: str, topic: str, replicas: int) -> None:
    """A topic is created, written and read."""
    with SyncAdmin(bootstrap_servers) as admin:
        # A Kafka that has just started does not know its own broker yet.
        wait_until(lambda: len(admin.describe_cluster().brokers) >= replicas)
        admin.create_topics([NewTopic(topic, 2, replicas)])
    with SyncProducer(bootstrap_servers) as producer:
        for number in range(RECORDS):
            producer.send(topic, b"%d" % number, partition=number % 2)
    with SyncConsumer(bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0), (topic, 1)])
        values = sorted(int(consumer.getone().value) for _ in range(RECORDS))
    assert values == list(range(RECORDS))


@pytest.mark.parametrize("is_old", [False, True], ids=["3.9", "2.3.1"])
def test_zs_1_a_real_kafka_runs_on_it_and_survives_its_kill(
    zookeeper: OwnZooKeeperProcess, tmp_path: Path, is_old: bool
) -> None:
    cluster = ClusterProcess(tmp_path / "cluster", 1, f"zookeeper.connect={zookeeper.connect}")
    (ours,) = cluster.brokers.values()
    kafka = KafkaProcess(ours, foreign.require_kafka_2_3_jars() if is_old else None)
    try:
        kafka.wait_until_ready()
        use(ours.bootstrap_servers, "before", 1)
        zookeeper.kill()
        zookeeper.start()
        use(ours.bootstrap_servers, "after", 1)
        with SyncAdmin(ours.bootstrap_servers) as admin:
            assert {"before", "after"} <= set(admin.list_topics())
        assert "expired" not in kafka.said()
        kafka.stop()
    finally:
        kafka.kill()


def test_zs_1_our_cluster_runs_on_it_and_elects_a_leader(
    zookeeper: OwnZooKeeperProcess, tmp_path: Path
) -> None:
    cluster = ClusterProcess(tmp_path / "cluster", 3, f"zookeeper.connect={zookeeper.connect}")
    try:
        for broker in cluster.brokers.values():
            broker.start()
        use(cluster.bootstrap_servers, "first", 3)
        zookeeper.kill()
        zookeeper.start()
        with SyncAdmin(cluster.bootstrap_servers) as admin:
            lost = admin.describe_topics(["first"])[0].partitions[0].leader
            cluster.brokers[lost].kill()

            def leaders() -> set[int]:
                (topic,) = admin.describe_topics(["first"])
                return {each.leader for each in topic.partitions}

            wait_until(lambda: not leaders() & {lost, -1})
        left = [each for broker_id, each in cluster.brokers.items() if broker_id != lost]
        use(",".join(each.bootstrap_servers for each in left), "second", 2)
    finally:
        cluster.kill_all()
