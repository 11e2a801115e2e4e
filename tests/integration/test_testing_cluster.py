"""TK-3: a cluster in the hands of a test, and a broker that runs elsewhere."""

from __future__ import annotations

import pytest

from barnabas import Broker, Cluster
from barnabas.errors import ConfigError
from barnabas.testing import RemoteBroker, WaitTimeout
from barnabas.types import TopicPartition
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.secured


def test_tk_3_leader_and_isr_of_a_cluster_are_waited_for() -> None:
    with Cluster(3) as cluster:
        topic = cluster.topic("t", partitions=2, replication_factor=3)
        cluster.wait_for_isr("t", 0, [3, 2, 1])
        topic.send(b"a", partition=0)
        leader = cluster.wait_for_leader("t")
        cluster.stop_broker(leader)
        successor = cluster.wait_for_leader("t", other_than=leader)
        assert successor in {1, 2, 3} - {leader}
        cluster.wait_for_isr("t", 0, {1, 2, 3} - {leader})
        with pytest.raises(WaitTimeout, match=rf"broker {leader} as the leader.*ISR \["):
            cluster.wait_for_leader("t", 0, leader, timeout_s=0.3)
        cluster.start_broker(leader)
        cluster.wait_for_isr("t", 0, [1, 2, 3])
        topic.send(b"b", partition=0)
        assert topic.values() == [b"a", b"b"]


def test_tk_5_a_cluster_is_saved_and_restored() -> None:
    """TK-1: its data survives a stop; each internal topic has a partition for each broker."""
    with Cluster(2) as cluster:
        topic = cluster.topic("t", replication_factor=2)
        topic.send(b"a")
        with cluster.consumer("t", group_id="g") as consumer:
            while not consumer.poll(1000):
                pass
            consumer.commit_sync()
        with cluster.admin() as admin:
            (offsets,) = admin.describe_topics(["__consumer_offsets"])
        assert len(offsets.partitions) == 2
        cluster.stop()
        cluster.start()
        assert topic.values() == [b"a"]
        with cluster.snapshot() as snapshot, Cluster(2, snapshot=snapshot) as copy:
            copy.topic("t").send(b"in the copy")
            assert copy.topic("t").values() == [b"a", b"in the copy"]
            copy.restore(snapshot)
            assert copy.topic("t").values() == topic.values() == [b"a"]
            assert copy.group("g").lag() == 0 and copy.group("g").offsets()


def test_tk_3_lines_and_waits_at_any_broker(servers: str) -> None:
    """Barnabas's and Kafka's."""
    with RemoteBroker(servers) as broker:
        topic = broker.topic("lines-and-waits", partitions=2)
        topic.send_many([b"a", {"key": "key", "value": "b"}], partition=1)
        assert [record.value for record in topic.wait_for_records(2)] == [b"a", b"b"]
        assert broker.wait_for_leader(topic.name, 1) >= 0
        with broker.consumer(topic.name, group_id="lines-and-waits") as consumer:
            received = 0
            while received < 2:
                received += len(consumer.poll(1000))
            consumer.commit_sync()
            broker.wait_for(group="lines-and-waits", state="Stable", members=1, lag=0)
        assert broker.group("lines-and-waits").offsets()[TopicPartition(topic.name, 1)] == 2
        topic.delete()
        wait_until(lambda: topic.name not in broker.topics())


def test_tk_3_a_broker_elsewhere_is_used_alike() -> None:
    with Broker() as broker, RemoteBroker(broker.bootstrap_servers) as remote:
        remote.topic("t").send(b"a")
        assert broker.topic("t").wait_for_records(1)[0].value == b"a"
        with remote.consumer("t", group_id="g") as consumer:
            while not consumer.poll(1000):
                pass
            remote.wait_for(group="g", state="Stable")
        broker.stop()
        with pytest.raises(WaitTimeout, match=r"saw instead: .*refused"):
            remote.wait_for_topic("t", timeout_s=1)
        broker.start()
        assert remote.wait_for_topic("t").values() == [b"a"]
    with pytest.raises(ConfigError, match=r"'nowhere' is not HOST:PORT"):
        RemoteBroker("nowhere")
