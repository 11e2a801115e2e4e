"""TK-4: brokers that stand still, in a thread and in a process, alone and in a cluster."""

from __future__ import annotations

import select
from collections.abc import Iterator

import pytest

from barnabas import Broker, Cluster
from barnabas.errors import ConfigError, NotLeaderOrFollower
from barnabas.protocol.api import PRODUCE
from tests.kit.broker.produces import produce_request
from tests.kit.raw_client import RawClient, batch
from tests.kit.waiting import wait_until

SESSION_MS = 1000
STILL_S = 0.2


def is_silent(client: RawClient) -> bool:
    """Whether nothing has come; a broker that goes on would have answered long before."""
    return select.select([client.socket], [], [], STILL_S)[0] == []


@pytest.mark.parametrize("process", [False, True])
def test_tk_4_a_paused_broker_answers_when_it_is_resumed(process: bool) -> None:
    with Broker(process=process) as broker:
        topic = broker.topic("t")
        topic.send(b"before")
        with RawClient(broker.bootstrap_servers) as early, broker.pause():
            early.send(PRODUCE, 9, produce_request("t", {0: batch(b"open")}))
            with RawClient(broker.bootstrap_servers) as late:
                late.send(PRODUCE, 9, produce_request("t", {0: batch(b"new")}))
                assert is_silent(early) and is_silent(late)
                with pytest.raises(ConfigError, match="is already paused"):
                    broker.pause()
                broker.resume()
                broker.resume()
                for client in (early, late):
                    client.receive(PRODUCE, 9)
        assert set(topic.values()) == {b"before", b"new", b"open"}
        broker.pause()
        broker.stop()
        broker.start()
        assert len(topic.values()) == 3
        broker.pause()  # which the end of the block ends
    with pytest.raises(ConfigError, match="not running"):
        broker.pause()


def test_tk_4_a_rule_that_is_added_during_a_pause_holds_after_it() -> None:
    with Broker() as broker:
        topic = broker.topic("t")
        with broker.pause():
            rule = broker.faults.add(api="Produce", error="NOT_LEADER_OR_FOLLOWER", count=1)
        topic.send(b"a")
        rule.wait(hits=1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    config = {"zookeeper.session.timeout.ms": SESSION_MS, "replica.lag.time.max.ms": 1500}
    with Cluster(config=config, own_threads=True) as made:
        yield made


def test_tk_4_a_leader_that_stands_still_is_replaced_and_comes_back(cluster: Cluster) -> None:
    topic = cluster.topic("replaced", partitions=1, replication_factor=3)
    leader = topic.wait_for_leader(timeout_s=60)
    topic.send(b"before")
    with RawClient(f"127.0.0.1:{cluster.server(leader).port}") as client:
        with cluster.pause(leader):
            client.send(PRODUCE, 9, produce_request("replaced", {0: batch(b"lost")}))
            topic.wait_for_leader(other_than=leader, timeout_s=60)
            topic.send(b"meanwhile", timeout_s=60)
            assert is_silent(client)
        # It handles the request before it hears that it leads no more: so it waits for acks that
        # never come, until it is told.
        refused = client.receive(PRODUCE, 9)[1].responses[0].partition_responses[0]
        assert refused.error_code == NotLeaderOrFollower.code
    topic.wait_for_isr(0, cluster.broker_ids, timeout_s=60)
    assert topic.values() == [b"before", b"meanwhile"]


def test_tk_4_a_short_standstill_costs_no_session(cluster: Cluster) -> None:
    topic = cluster.topic("kept", partitions=1, replication_factor=3)
    leader = topic.wait_for_leader(timeout_s=60)
    before = cluster.session(leader).session_id
    with cluster.faults.pause(leader):
        pass
    topic.send(b"a")
    assert topic.wait_for_leader(timeout_s=60) == leader
    assert cluster.session(leader).session_id == before


def test_tk_4_a_follower_that_stands_still_falls_behind_and_catches_up(cluster: Cluster) -> None:
    topic = cluster.topic("behind", partitions=1, replication_factor=3)
    leader = topic.wait_for_leader(timeout_s=60)
    follower = next(each for each in cluster.broker_ids if each != leader)
    cluster.pause(follower)
    topic.send(b"a", timeout_s=60)
    topic.wait_for_isr(0, set(cluster.broker_ids) - {follower}, timeout_s=60)
    cluster.resume(follower)
    topic.wait_for_isr(0, cluster.broker_ids, timeout_s=60)
    with cluster.pause(follower):
        with pytest.raises(ConfigError, match="is already paused"):
            cluster.pause(follower)
        cluster.stop_broker(follower)  # which ends the pause
    cluster.start_broker(follower)
    topic.wait_for_isr(0, cluster.broker_ids, timeout_s=60)


def test_tk_4_brokers_with_threads_of_their_own_know_the_other_faults(cluster: Cluster) -> None:
    topic = cluster.topic("isolated", partitions=1, replication_factor=3)
    leader = topic.wait_for_leader(timeout_s=60)
    topic.send(b"before")
    with cluster.faults.isolate(leader):
        topic.send(b"cut off", timeout_s=60)
        topic.wait_for_leader(other_than=leader, timeout_s=60)
    topic.wait_for_isr(0, cluster.broker_ids, timeout_s=60)
    leader = topic.wait_for_leader(timeout_s=60)
    cluster.faults.kill(leader)
    topic.send(b"killed", timeout_s=60)
    cluster.start_broker(leader)
    topic.wait_for_isr(0, cluster.broker_ids, timeout_s=60)
    assert topic.values() == [b"before", b"cut off", b"killed"]


def test_tk_4_a_broker_of_a_cluster_with_a_process_stands_still() -> None:
    config = {"zookeeper.session.timeout.ms": SESSION_MS}
    with Cluster(2, config=config, process=True, own_threads=True) as cluster:
        topic = cluster.topic("t", partitions=1, replication_factor=2)
        leader = topic.wait_for_leader(timeout_s=60)
        with cluster.pause(leader):
            other = topic.wait_for_leader(other_than=leader, timeout_s=60)
        topic.wait_for_isr(0, [leader, other], timeout_s=60)
        cluster.stop()
        cluster.start()
        wait_until(lambda: topic.send(b"a") is not None)


def test_tk_4_who_shares_a_thread_cannot_stand_still_alone() -> None:
    cluster = Cluster(2)
    for pause in (cluster.pause, cluster.resume, cluster.faults.pause):
        with pytest.raises(ConfigError, match=r"own_threads=True.*isolate\(2\)"):
            pause(2)
