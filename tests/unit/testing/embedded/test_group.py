"""A group as a test sees it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from barnabas import Broker
from barnabas.errors import ConfigError
from barnabas.testing.embedded.waiting import WaitTimeout
from barnabas.types import TopicPartition
from tests.kit.raw_client import PATIENCE_S
from tests.kit.waiting import wait_until


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config={"log.cleaner.backoff.ms": 50}) as running:
        yield running


def test_tk_3_offsets_lag_and_state_of_a_group(broker: Broker) -> None:
    topic = broker.topic("read", partitions=2)
    topic.send_many([b"a", b"b", b"c"], partition=1)
    group = broker.group("readers")
    assert (group.state(), group.offsets(), group.lag()) == ("Dead", {}, 0)
    with broker.consumer("read", group_id="readers", max_poll_records=2) as consumer:
        read = 0
        while not read:
            read = len(consumer.poll(1000))
        consumer.commit_sync()
        described = broker.wait_for(group="readers", state="Stable", members=1)
        assert described.members[0].topics == ("read",)
        assert group.offsets()[TopicPartition("read", 1)] == read
        assert group.lag() == group.lag_by_partition()[TopicPartition("read", 1)] == 3 - read
        with pytest.raises(
            WaitTimeout,
            match=r"group 'readers' with state Empty and lag 0, .*state Stable, 1 member, lag 1",
        ):
            group.wait_for(state="Empty", lag=0, timeout_s=0.3)
        while read < 3:
            read += len(consumer.poll(1000))
        consumer.commit_sync()
        group.wait_for(lag=0)
    group.wait_for(state="Empty", members=0)


def test_tk_3_what_cannot_be_waited_for_is_refused(broker: Broker) -> None:
    with pytest.raises(ValueError, match=r"^state: 'stable' is not one of PreparingRebalance, "):
        broker.wait_for(group="g", state="stable")
    with pytest.raises(ValueError, match=r"needs at least one of"):
        broker.group("g").wait_for()


def test_tk_3_a_group_without_offsets_is_not_level(broker: Broker) -> None:
    with pytest.raises(WaitTimeout, match=r"saw instead: state Dead, 0 members, no committed"):
        broker.wait_for(group="nobody", lag=0, timeout_s=0.3)


def _commit(broker: Broker, group: str, offset: int, topic: str, partition: int = 0) -> None:
    with broker.consumer(group_id=group) as consumer:
        consumer.commit_sync({TopicPartition(topic, partition): offset})


def test_tk_3_lag_counts_records_and_neither_markers_nor_aborted_ones(broker: Broker) -> None:
    """A client that commits its last record plus one is level, whatever stands behind it."""
    topic = broker.topic("transactional", partitions=2)
    with broker.producer(transactional_id="one") as producer:
        producer.init_transactions()
        for _ in range(3):  # offsets 0, 2, 4 and markers between
            with producer.transaction():
                producer.send(topic.name, b"kept", partition=0)
        producer.begin_transaction()
        producer.send(topic.name, b"aborted", partition=0).result()  # 6, and its marker 7
        producer.send(topic.name, b"aborted", partition=1).result()
        producer.abort_transaction()
        _commit(broker, "level", 5, topic.name)
        _commit(broker, "level", 0, topic.name, partition=1)
        group = broker.group("level")
        assert group.lag() == 0
        assert group.lag(isolation_level="read_uncommitted") == 2
        broker.wait_for(group="level", lag=0)
        with pytest.raises(WaitTimeout, match="lag 2"):
            group.wait_for(lag=1, isolation_level="read_uncommitted", timeout_s=0.3)
        _commit(broker, "level", 1, topic.name)
        assert group.lag_by_partition() == {
            TopicPartition(topic.name, 0): 2,
            TopicPartition(topic.name, 1): 0,
        }
        producer.begin_transaction()
        producer.send(topic.name, b"open", partition=0).result()
        assert (group.lag(), group.lag(isolation_level="read_uncommitted")) == (2, 5)
        producer.commit_transaction()
        assert group.lag() == 3


def test_tk_3_lag_counts_no_record_that_compaction_or_deletion_removed(broker: Broker) -> None:
    configs = {"cleanup.policy": "compact", "max.compaction.lag.ms": 1, "segment.ms": 1}
    topic = broker.topic("compacted", partitions=1, config=configs)
    for number in range(6):
        topic.send(b"%d" % number, key=b"one")
    wait_until(lambda: len(topic.records()) < 3)
    _commit(broker, "compacted", 0, topic.name)
    group = broker.group("compacted")
    assert group.lag() == len(topic.records())
    deleted = broker.topic("deleted", partitions=1)
    deleted.send_many([b"a", b"b", b"c"])
    _commit(broker, "deleted", 0, deleted.name)
    with broker.admin() as admin:
        admin.delete_records({TopicPartition("deleted", 0): 2})
    assert broker.group("deleted").lag() == 1


def test_tk_3_a_wait_counts_no_more_than_it_needs(broker: Broker) -> None:
    broker.topic("many", partitions=1).send_many([b"x"] * 3000)
    _commit(broker, "far-behind", 0, "many")
    with pytest.raises(WaitTimeout, match=r"lag \d+ or more"):
        broker.wait_for(group="far-behind", lag=0, timeout_s=0.3)
    assert broker.group("far-behind").lag() == 3000
    with pytest.raises(ValueError, match=r"^isolation_level: 'commited' is not one of read_comm"):
        broker.group("far-behind").lag(isolation_level="commited")


def test_tk_3_a_second_member_is_noticed(broker: Broker) -> None:
    """And times that are given are the consumer's, under Kafka's names too."""
    broker.topic("shared", partitions=2)
    joined = threading.Event()

    def join() -> None:
        with broker.consumer("shared", group_id="both") as second:
            while not joined.is_set():
                second.poll(20)

    with broker.consumer("shared", group_id="both") as first:
        first.poll(0)
        thread = threading.Thread(target=join)
        thread.start()
        try:
            while len(first.assignment()) != 1:
                first.poll(20)
            broker.wait_for(group="both", state="Stable", members=2)
        finally:
            joined.set()
            thread.join(PATIENCE_S)
    given = {"session.timeout.ms": 200, "auto.offset.reset": "none", "group.id": "none"}
    with pytest.raises(ConfigError, match=r"heartbeat\.interval\.ms: 3000 is not less"):
        broker.consumer("shared", **given)  # type: ignore[arg-type]
