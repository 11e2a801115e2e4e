"""Several brokers in one process: what a notebook or somebody's own tests have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import barnabas
from barnabas.client import SyncAdmin, SyncConsumer, SyncProducer
from barnabas.types import TopicPartition
from tests.kit.clients import confluent_client
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.secured

SMALL = {
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
    "group.initial.rebalance.delay.ms": "0",
    "controlled.shutdown.retry.backoff.ms": "100",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[barnabas.Cluster]:
    with barnabas.Cluster(brokers=3, config=SMALL) as cluster:
        yield cluster


def isr_sizes(servers: str, topic: str) -> set[int]:
    described = confluent_client.describe_topic(servers, topic)
    return {len(partition.isr) for partition in described}


def test_leaders_and_replicas_are_spread(cluster: barnabas.Cluster) -> None:
    """TP-3, TP-7, RE-1: a foreign client sees three brokers, and each leads its part."""
    servers = cluster.bootstrap_servers
    confluent_client.create_topic(servers, "spread", 6, {}, replicas=3)
    described = confluent_client.describe_topic(servers, "spread")
    leaders = [partition.leader for partition in described]
    assert sorted(leaders) == [1, 1, 2, 2, 3, 3]
    assert all(sorted(partition.replicas) == [1, 2, 3] for partition in described)
    assert isr_sizes(servers, "spread") == {3}


def test_what_is_acknowledged_by_all_is_in_every_log(cluster: barnabas.Cluster) -> None:
    """RE-2, RE-3, PR-4: the replicas' files are the leader's to the byte."""
    servers = cluster.bootstrap_servers
    confluent_client.create_topic(servers, "copied", 1, {}, replicas=3)
    with SyncProducer(servers, acks=-1) as producer:
        for number in range(1000):
            producer.send("copied", b"%d" % number)
        producer.flush()
    files = [
        (cluster.data_dir / f"broker-{broker_id}" / "copied-0" / f"{0:020}.log").read_bytes()
        for broker_id in cluster.broker_ids
    ]
    assert len(files[0]) > 1000
    assert files[0] == files[1] == files[2]


def test_a_stopped_broker_gives_its_leadership_away_and_comes_back(
    cluster: barnabas.Cluster,
) -> None:
    """RE-12, RE-13, DL-2: reading and writing go on; the ISR shrinks, and grows again."""
    servers = cluster.bootstrap_servers
    confluent_client.create_topic(servers, "moved", 3, {"min.insync.replicas": "2"}, replicas=3)
    with SyncProducer(servers, acks=-1, delivery_timeout_ms=120_000) as producer:
        for number in range(300):
            producer.send("moved", b"%d" % number, partition=number % 3).result()
        cluster.stop_broker(2)

        def is_left() -> bool:
            described = confluent_client.describe_topic(cluster.bootstrap_servers, "moved")
            return all(
                partition.leader in (1, 3) and sorted(partition.isr) == [1, 3]
                for partition in described
            )

        wait_until(is_left)  # whichever broker is asked, it hears of it soon
        for number in range(300, 600):
            producer.send("moved", b"%d" % number, partition=number % 3).result()
        cluster.start_broker(2)
        wait_until(lambda: isr_sizes(cluster.bootstrap_servers, "moved") == {3})
        for number in range(600, 900):
            producer.send("moved", b"%d" % number, partition=number % 3).result()
    seen = confluent_client.consume(cluster.bootstrap_servers, "moved", 3, 900)
    assert [int(one.value or b"") for one in seen if one.partition == 1] == list(range(1, 900, 3))
    assert len(seen) == 900


def test_a_transaction_over_partitions_of_several_brokers(cluster: barnabas.Cluster) -> None:
    """PR-7, DL-1: coordinator and partitions live on different brokers; verified and marked."""
    servers = cluster.bootstrap_servers
    confluent_client.create_topic(servers, "bank", 6, {}, replicas=3)
    for name in ("tx-a", "tx-b", "tx-c", "tx-d"):
        with SyncProducer(servers, transactional_id=name) as producer:
            producer.init_transactions()
            for is_commit in (True, False, True):
                producer.begin_transaction()
                for partition in range(6):
                    producer.send("bank", b"kept" if is_commit else b"gone", partition=partition)
                if is_commit:
                    producer.commit_transaction()
                else:
                    producer.abort_transaction()
    with SyncConsumer(
        servers, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([TopicPartition("bank", partition) for partition in range(6)])
        values: list[bytes | None] = []
        while len(values) < 48:
            found = consumer.poll(timeout_ms=60_000)
            assert found, f"only {len(values)} records are visible"
            values += [record.value for record in found]
    assert values == [b"kept"] * 48


def test_a_group_whose_coordinator_stops_goes_on(cluster: barnabas.Cluster) -> None:
    """GC-1, GC-3: its offsets are where its coordinator goes."""
    servers = cluster.bootstrap_servers
    confluent_client.create_topic(servers, "read", 3, {}, replicas=3)
    with SyncProducer(servers) as producer:
        for number in range(90):
            producer.send("read", b"%d" % number, partition=number % 3)
    seen: list[bytes | None] = []
    with SyncConsumer(servers, group_id="readers", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["read"])
        while len(seen) < 90:
            seen += [record.value for record in consumer.poll(timeout_ms=5000)]
        consumer.commit_sync()
        for broker_id in cluster.broker_ids:
            for partition in range(int(SMALL["offsets.topic.num.partitions"])):
                cluster.wait_for_isr("__consumer_offsets", partition, cluster.broker_ids)
            cluster.stop_broker(broker_id)
            committed = consumer.committed(*(TopicPartition("read", number) for number in range(3)))
            assert sorted(one.offset for one in committed.values() if one) == [30, 30, 30]
            cluster.start_broker(broker_id)
    assert sorted(int(value or b"") for value in seen) == list(range(90))


def test_a_deleted_topic_leaves_nothing_on_any_broker(cluster: barnabas.Cluster) -> None:
    """ZK-4"""
    servers = cluster.bootstrap_servers
    with SyncAdmin(servers) as admin:
        confluent_client.create_topic(servers, "short", 3, {}, replicas=3)
        admin.delete_topics(["short"])

    def is_gone() -> bool:
        return not list(cluster.data_dir.glob("broker-*/short-?"))

    wait_until(is_gone)
    wait_until(lambda: "short" not in confluent_client.list_topics(servers))
