"""Brokers of an embedded cluster that are killed or cut off: what was acknowledged is not lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

from barnabas import Cluster
from barnabas.errors import ConfigError, NotLeaderOrFollower
from barnabas.protocol.api import FETCH
from tests.kit.broker.fetches import fetch_request, only
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until

CONFIG = {"min.insync.replicas": 2, "replica.lag.time.max.ms": 1500}


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with Cluster(brokers=3, config=CONFIG) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: Cluster) -> Iterator[Cluster]:
    yield shared
    shared.faults.clear()
    for broker_id in set(shared.broker_ids) - set(shared.running_broker_ids):
        shared.start_broker(broker_id)


class Sender:
    """A producer that waits for each record's acknowledgement."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.topic = topic
        self.acknowledged: list[bytes] = []
        self.producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "enable.idempotence": True,
                "retry.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "linger.ms": 0,
                "log_level": 0,
            }
        )

    def send(self, value: bytes) -> None:
        def reported(error: Any, message: Any) -> None:
            assert error is None, error
            self.acknowledged.append(message.value())

        self.producer.produce(self.topic, value, partition=0, on_delivery=reported)
        assert self.producer.flush(30) == 0


def leader_of(cluster: Cluster, topic: str) -> int:
    found = cluster.topic(topic, partitions=1, replication_factor=3).wait_for_leader(timeout_s=60)
    assert isinstance(found, int)
    return found


def test_tk_4_a_killed_leader_is_replaced_and_comes_back(cluster: Cluster) -> None:
    leader = leader_of(cluster, "killed")
    sender = Sender(cluster, "killed")
    sender.send(b"before")
    cluster.faults.kill(leader)
    assert leader not in cluster.running_broker_ids
    assert not (cluster.data_dir / f"broker-{leader}" / ".kafka_cleanshutdown").exists()
    sender.send(b"while it is away")
    cluster.topic("killed").wait_for_leader(other_than=leader, timeout_s=60)
    cluster.start_broker(leader)
    cluster.topic("killed").wait_for_isr(0, cluster.broker_ids, timeout_s=60)
    sender.send(b"after")
    assert cluster.topic("killed").values() == sender.acknowledged
    assert sender.acknowledged == [b"before", b"while it is away", b"after"]


def test_tk_4_an_isolated_leader_is_replaced_and_heals(cluster: Cluster) -> None:
    leader = leader_of(cluster, "isolated")
    sender = Sender(cluster, "isolated")
    sender.send(b"before")
    with cluster.faults.isolate(leader):
        sender.send(b"while it is cut off")
        cluster.topic("isolated").wait_for_leader(other_than=leader, timeout_s=60)
    cluster.topic("isolated").wait_for_isr(0, cluster.broker_ids, timeout_s=60)
    sender.send(b"after")
    assert cluster.topic("isolated").values() == sender.acknowledged
    assert sender.acknowledged == [b"before", b"while it is cut off", b"after"]


def test_tk_4_what_is_under_way_at_a_broker_is_lost_when_it_is_isolated(cluster: Cluster) -> None:
    leader = leader_of(cluster, "waiting")
    with RawClient(f"127.0.0.1:{cluster.server(leader).port}") as client:
        client.send(FETCH, 12, fetch_request("waiting", max_wait_ms=60_000))
        with cluster.faults.isolate(leader, outbound=False):
            assert client.is_closed_by_peer()
            with RawClient(f"127.0.0.1:{cluster.server(leader).port}") as another:
                another.send(FETCH, 12, fetch_request("waiting"))
                assert another.is_closed_by_peer()
    # On a busy machine the isolation outlasts the session, and another broker leads: the healed one
    # says so, and the leader serves.
    assert _fetch_code(cluster, leader) in (0, NotLeaderOrFollower.code)
    wait_until(lambda: _fetch_code(cluster, leader_of(cluster, "waiting")) == 0)


def test_tk_4_a_mute_follower_falls_behind_and_still_serves(cluster: Cluster) -> None:
    leader = leader_of(cluster, "mute")
    follower = next(each for each in cluster.broker_ids if each != leader)
    sender = Sender(cluster, "mute")
    sender.send(b"before")
    with cluster.faults.isolate(follower, inbound=False):
        sender.send(b"one")
        # Not by a client: it may ask the mute broker, which answers with what it knew.
        wait_until(lambda: follower not in isr_at(cluster, leader, "mute"))
        sender.send(b"two")
        assert log_end_offset(cluster, follower, "mute") == 1
    cluster.topic("mute").wait_for_isr(0, cluster.broker_ids, timeout_s=60)
    assert cluster.topic("mute").values() == [b"before", b"one", b"two"]
    wait_until(lambda: log_end_offset(cluster, follower, "mute") == 3)


def isr_at(cluster: Cluster, broker_id: int, topic: str) -> tuple[int, ...]:
    node = cluster.server(broker_id).node
    return cluster.thread.call(lambda: node.image.topics[topic].partitions[0].isr)


def log_end_offset(cluster: Cluster, broker_id: int, topic: str) -> int:
    replicas = cluster.server(broker_id).node.replicas
    return cluster.thread.call(lambda: replicas.replica_of((topic, 0)).log.log_end_offset)


def test_tk_4_a_rule_is_narrowed_to_one_broker(cluster: Cluster) -> None:
    leader = leader_of(cluster, "narrow")
    other = next(each for each in cluster.broker_ids if each != leader)
    at_leader = cluster.faults.add(
        api="Produce", broker=leader, error="NOT_LEADER_OR_FOLLOWER", count=2
    )
    elsewhere = cluster.faults.add(api="Produce", broker=other, cut=True)
    Sender(cluster, "narrow").send(b"one")
    assert (at_leader.hits, elsewhere.hits) == (2, 0)


def test_tk_4_a_follower_is_refused_only_if_the_rule_says_so(cluster: Cluster) -> None:
    leader_of(cluster, "followed")
    fetch = {"api": "Fetch", "topic": "followed", "error": "KAFKA_STORAGE_ERROR"}
    clients = cluster.faults.add(**fetch)
    followers = cluster.faults.add(**fetch, replicas=True, count=2)
    Sender(cluster, "followed").send(b"one")
    followers.wait(hits=2, timeout_s=60)
    assert clients.hits == 0
    clients.remove()
    wait_until(lambda: cluster.topic("followed").values() == [b"one"])


def test_tk_4_what_cannot_be_done_is_refused_with_what_can(cluster: Cluster) -> None:
    with pytest.raises(ConfigError, match=r"isolate\(2\)"):
        cluster.faults.pause(2)
    with pytest.raises(ConfigError, match="cuts off nothing"):
        cluster.faults.isolate(2, inbound=False, outbound=False)
    with pytest.raises(ConfigError, match="broker 7 is not running"):
        cluster.faults.isolate(7)
    with pytest.raises(ConfigError, match="broker 7 is not running"):
        cluster.faults.kill(7)
    with pytest.raises(ConfigError, match="the brokers are 1, 2, 3"):
        cluster.faults.add(api="Produce", broker=4, cut=True)


def _fetch_code(cluster: Cluster, broker_id: int) -> int:
    with RawClient(f"127.0.0.1:{cluster.server(broker_id).port}") as client:
        code: int = only(client.call(FETCH, 12, fetch_request("waiting"))).error_code
        return code
