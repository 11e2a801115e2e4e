"""A partition moves to another broker no faster than it may (RE-13, KIP-73), as a client asked."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import barnabas
from barnabas.client import SyncAdmin, SyncProducer
from barnabas.types import TopicPartition
from tests.kit.clients import confluent_client
from tests.kit.clients.clients import Change, Resource
from tests.kit.effort import count_delays
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.secured

CONFIG = {
    "replica.fetch.max.bytes": "100000",
    "replica.fetch.wait.max.ms": "100",
    # One in sync that asks in the old leader epoch, while its leader is in the new one, waits so
    # long; a second would look as if the move held it up.
    "replica.fetch.backoff.ms": "100",
    "offsets.topic.num.partitions": "1",
}
RATE = 400_000
COUNT = 120  # records of 10 kB
"""At that rate three seconds, of which the first comes at once."""


@pytest.fixture
def cluster() -> Iterator[barnabas.Cluster]:
    with barnabas.Cluster(brokers=3, config=CONFIG) as cluster:
        yield cluster


def change(servers: str, resource: Resource, **settings: str) -> None:
    changes = [Change("SET", name.replace("_", "."), text) for name, text in settings.items()]
    confluent_client.change_configs(servers, resource, changes)


def move(cluster: barnabas.Cluster, topic: str, *replicas: int) -> None:
    with SyncAdmin(cluster.bootstrap_servers) as admin:
        admin.alter_partition_reassignments({TopicPartition(topic, 0): replicas})


def is_moved(cluster: barnabas.Cluster, topic: str, *replicas: int) -> bool:
    with SyncAdmin(cluster.bootstrap_servers) as admin:
        if admin.list_partition_reassignments():
            return False
    [partition] = confluent_client.describe_topic(cluster.bootstrap_servers, topic)
    return sorted(partition.isr) == sorted(partition.replicas) == sorted(replicas)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["leader", "follower", None])
def test_re_13_a_move_keeps_to_its_rate(cluster: barnabas.Cluster, side: str | None) -> None:
    """And producing with acks=all goes on at its own: those in sync are not held up."""
    servers = cluster.bootstrap_servers
    confluent_client.create_topic(servers, "moves", 1, {}, replicas=2)
    [before] = confluent_client.describe_topic(servers, "moves")
    [comes] = {1, 2, 3} - set(before.replicas)
    with SyncProducer(servers, acks=-1) as producer:
        for _ in range(COUNT):
            producer.send("moves", b"x" * 10_000, partition=0)
        producer.flush()
        if side is not None:
            listed = f"0:{before.leader}" if side == "leader" else f"0:{comes}"
            topic_setting = {f"{side}_replication_throttled_replicas": listed}
            change(servers, Resource("topic", "moves"), **topic_setting)
            for broker_id in cluster.broker_ids:
                broker_setting = {f"{side}_replication_throttled_rate": str(RATE)}
                change(servers, Resource("broker", str(broker_id)), **broker_setting)
        delays_s: list[float] = []
        counting = cluster.thread.submit(count_delays(delays_s))
        began = time.monotonic()
        move(cluster, "moves", *before.replicas, comes)
        slowest = 0.0
        while time.monotonic() - began < 1:
            at = time.monotonic()
            producer.send("moves", b"x", partition=0).result()
            slowest = max(slowest, time.monotonic() - at)
        counting.cancel()
        assert slowest - sum(delays_s) < 1
        if side is not None:
            is_soon = is_moved(cluster, "moves", *before.replicas, comes)
            assert not is_soon or time.monotonic() - began > 1.8
    wait_until(lambda: is_moved(cluster, "moves", *before.replicas, comes))
    seconds = time.monotonic() - began
    print(f"moved in {seconds:.1f} s, throttled at {side}")
    if side is None:
        assert seconds < 60
    else:
        assert 1.8 < seconds < 60


@pytest.mark.slow
def test_re_13_a_throttle_is_taken_back_under_way(cluster: barnabas.Cluster) -> None:
    servers = cluster.bootstrap_servers
    confluent_client.create_topic(servers, "freed", 1, {}, replicas=2)
    [before] = confluent_client.describe_topic(servers, "freed")
    [comes] = {1, 2, 3} - set(before.replicas)
    with SyncProducer(servers, acks=-1) as producer:
        for _ in range(COUNT):
            producer.send("freed", b"x" * 10_000, partition=0)
    change(servers, Resource("topic", "freed"), leader_replication_throttled_replicas="*")
    everybody = [Resource("broker", str(broker_id)) for broker_id in cluster.broker_ids]
    for each in everybody:
        change(servers, each, leader_replication_throttled_rate="1000")
    move(cluster, "freed", *before.replicas, comes)
    time.sleep(1)
    assert not is_moved(cluster, "freed", *before.replicas, comes)
    for each in everybody:
        taken_back = [Change("DELETE", "leader.replication.throttled.rate")]
        confluent_client.change_configs(servers, each, taken_back)
    wait_until(lambda: is_moved(cluster, "freed", *before.replicas, comes))  # not 20 minutes


def test_what_a_topic_sets_counts_for_a_replica_that_comes_later(
    cluster: barnabas.Cluster,
) -> None:
    """TP-5, RE-13: changed after the topic's creation, and no request of the controller says it."""
    servers = cluster.bootstrap_servers
    confluent_client.create_topic(servers, "later", 1, {}, replicas=2)
    [before] = confluent_client.describe_topic(servers, "later")
    [comes] = {1, 2, 3} - set(before.replicas)
    change(servers, Resource("topic", "later"), retention_ms="12345")
    move(cluster, "later", *before.replicas, comes)
    wait_until(lambda: is_moved(cluster, "later", *before.replicas, comes))
    for broker_id in cluster.broker_ids:
        log = cluster.server(broker_id).node.replicas.replica_of(("later", 0)).log
        wait_until(lambda log=log: log.config.retention_ms == 12345)  # type: ignore[misc]
