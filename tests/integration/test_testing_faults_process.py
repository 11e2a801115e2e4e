"""TK-4: the same fault rules for brokers in a process of their own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas import Broker, Cluster
from barnabas.errors import ConfigError, NotLeaderOrFollower
from barnabas.testing.faults import RuleNotHit
from tests.kit.waiting import wait_until

REFUSED: Any = {"api": "Produce", "topic": "orders", "error": "NOT_LEADER_OR_FOLLOWER"}


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker(process=True) as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Iterator[Broker]:
    yield shared
    shared.faults.clear()
    assert shared.faults.rules == ()


def test_tk_4_a_rule_is_hit_counted_and_removed_in_another_process(broker: Broker) -> None:
    orders = broker.topic("orders")
    with broker.faults.add(**REFUSED, count=2) as rule:
        waiter = threading.Thread(target=rule.wait, args=(2, 60))
        waiter.start()
        orders.send(b"tea")
        waiter.join(60)
        assert not waiter.is_alive()
        assert rule.hits == 2 and rule.is_spent and broker.faults.rules == (rule,)
        with pytest.raises(RuleNotHit, match="can never be reached"):
            rule.wait(hits=3)
    assert orders.values() == [b"tea"]
    assert rule.hits == 2 and not broker.faults.rules
    with broker.faults.add(**REFUSED, after=1) as rule:
        orders.send(b"passes")
        with pytest.raises(
            RuleNotHit, match=r"0 times in 0\.01 s, not 1; 1 matching request passed"
        ):
            rule.wait(timeout_s=0.01)
        lost = broker.faults.add(api="Produce", drop=True, count=1)
        rule.remove()
        orders.send(b"arrives once")
        lost.wait()
    assert orders.values()[1:] == [b"passes", b"arrives once"]


def test_tk_4_the_first_rule_that_matches_is_applied_there_too(broker: Broker) -> None:
    first = broker.faults.add(**REFUSED, count=1)
    second = broker.faults.add(**REFUSED, count=1)
    broker.topic("orders").send(b"a")
    assert (first.hits, second.hits) == (1, 1)
    assert broker.faults.rules == (first, second)


def test_tk_4_what_is_misspelt_is_refused_and_leaves_nothing(broker: Broker) -> None:
    for wrong, reason in (
        ({"api": "Prodce", "cut": True}, "did you mean Produce?"),
        ({"api": "Produce", "listener": "PLAIN", "cut": True}, "the listeners are PLAINTEXT"),
        ({"api": "Produce", "broker": 7, "cut": True}, "the brokers are 0"),
    ):
        arguments: Any = wrong
        with pytest.raises(ConfigError, match=reason):
            broker.faults.add(**arguments)
    with pytest.raises(ConfigError, match="does nothing"):
        broker.faults.disk()
    assert broker.faults.rules == ()


def test_tk_4_disk_and_clock_of_another_process(broker: Broker) -> None:
    topic = broker.topic("time")
    offset_ms = -86_400_000
    with broker.faults.clock(offset_ms=offset_ms), broker.faults.disk(delay_ms=1):
        topic.send(b"a")
    append_time = {"message.timestamp.type": "LogAppendTime"}
    stamped = broker.topic("stamped", config=append_time)
    with broker.faults.clock(offset_ms=offset_ms):
        stamped.send(b"yesterday")
    stamped.send(b"today")
    yesterday, today = (record.timestamp_ms for record in stamped.records())
    assert today - yesterday > -offset_ms / 2


def test_tk_4_rules_are_there_before_the_start_and_after_a_restart() -> None:
    broker = Broker(process=True)
    rule = broker.faults.add(**REFUSED, count=3)
    with broker:
        orders = broker.topic("orders")
        producer = broker.producer(retries=0)
        for _ in range(2):
            with pytest.raises(NotLeaderOrFollower):
                producer.send("orders", b"refused").result(60)
        assert rule.hits == 2
        producer.close()
        broker.stop()
        assert rule.hits == 2 and not rule.is_spent
        broker.start()
        orders.send(b"refused once more")
        assert rule.hits == 3 and rule.is_spent
        broker.kill()
        assert rule.hits == 3
        broker.start()
        orders.send(b"a")
        with broker.pause():
            with pytest.raises(
                ConfigError, match=r"is paused and cannot accept faults; call resume\(\)"
            ):
                broker.faults.add(**REFUSED)
            assert rule.hits == 3
        assert broker.faults.rules == (rule,)
    assert rule.hits == 3


def test_tk_4_a_full_disk_ends_a_broker_in_a_process() -> None:
    broker = Broker(process=True).start()
    topic = broker.topic("orders")
    broker.faults.disk(full=True)
    with pytest.raises(TimeoutError):
        topic.send(b"a", timeout_s=0.5)
    with pytest.raises(OSError, match="all log directories have failed"):
        broker.stop()
    broker.faults.clear()
    with broker:
        topic.send(b"a")
        assert topic.values()[-1:] == [b"a"]


def test_tk_4_a_cluster_in_a_process_knows_all_faults() -> None:
    with Cluster(3, process=True) as cluster:
        topic = cluster.topic("orders", partitions=1, replication_factor=3)
        leader = topic.wait_for_leader(timeout_s=60)
        other = next(each for each in cluster.broker_ids if each != leader)
        rule = cluster.faults.add(**REFUSED, broker=leader, count=1)
        elsewhere = cluster.faults.add(api="Produce", broker=other, cut=True)
        with cluster.faults.disk(delay_ms=1, broker=leader):
            topic.send(b"a", timeout_s=60)
        assert (rule.hits, elsewhere.hits) == (1, 0)
        elsewhere.remove()
        with cluster.faults.isolate(leader):
            topic.wait_for_leader(other_than=leader, timeout_s=60)
            topic.send(b"b", timeout_s=60)
        topic.wait_for_isr(0, cluster.broker_ids, timeout_s=60)
        leader = topic.wait_for_leader(timeout_s=60)
        cluster.faults.kill(leader)
        assert leader not in cluster.running_broker_ids
        topic.wait_for_leader(other_than=leader, timeout_s=60)
        cluster.start_broker(leader)
        topic.wait_for_isr(0, cluster.broker_ids, timeout_s=60)
        with pytest.raises(ConfigError, match="broker 7 is not running"):
            cluster.faults.kill(7)
        cluster.faults.clear()
        wait_until(lambda: topic.values() == [b"a", b"b"])
