"""Tests with the fixtures of Barnabas, and nothing else to install or to start.

pip install '.[test]'
pytest examples/testing_with_fixtures.py
"""

from __future__ import annotations

import pytest

import barnabas
from barnabas.client import SyncConsumer, SyncProducer
from barnabas.testing import Broker, Cluster, Snapshot, Topic, WaitTimeout


def test_what_was_sent_is_there(barnabas_topic: Topic) -> None:
    barnabas_topic.send("one", key="anna")
    barnabas_topic.send("two")
    assert barnabas_topic.values() == [b"one", b"two"]


def test_a_group_reads_all(
    barnabas_producer: SyncProducer, barnabas_topic: Topic, barnabas_consumer: SyncConsumer
) -> None:
    for number in range(10):
        barnabas_producer.send(barnabas_topic.name, b"%d" % number)
    values: list[bytes | None] = []
    while len(values) < 10:
        values += [record.value for record in barnabas_consumer.poll(timeout_ms=1000)]
    assert values == [b"%d" % number for number in range(10)]


def test_the_broker_may_restart(barnabas_broker: Broker) -> None:
    orders = barnabas_broker.topic("orders", partitions=3)
    orders.send("before")
    barnabas_broker.stop()
    barnabas_broker.start()  # on the same port, with the same data
    assert orders.values() == [b"before"]


def test_a_wait_says_what_it_saw(barnabas_topic: Topic) -> None:
    barnabas_topic.send("one")
    with pytest.raises(WaitTimeout, match=r"for 2 records in topic .* 1 record .* value b'one'"):
        barnabas_topic.wait_for_records(2, timeout_s=0.2)


@pytest.mark.barnabas(brokers=3)
def test_a_leader_stops(barnabas_cluster: Cluster) -> None:
    orders = barnabas_cluster.topic("orders", replication_factor=3)
    orders.send("one")
    leader = orders.wait_for_leader()
    barnabas_cluster.stop_broker(leader)
    orders.wait_for_leader(other_than=leader)
    assert orders.values() == [b"one"]


@pytest.fixture(scope="module")
def loaded() -> Snapshot:
    """What takes long to make is made once."""
    with barnabas.Broker() as broker:
        broker.topic("orders").send_many(f"order {number}" for number in range(1000))
        return broker.snapshot()


@pytest.mark.parametrize("attempt", range(3))
def test_each_begins_with_the_same_data(loaded: Snapshot, attempt: int) -> None:
    with barnabas.Broker(snapshot=loaded) as broker:
        orders = broker.topic("orders")
        assert len(orders.values()) == 1000
        orders.send(f"changed by {attempt}")
