"""A group as a test sees it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from barnabas import Broker
from barnabas.broker.embedded.waiting import WaitTimeout
from barnabas.errors import ConfigError
from barnabas.types import TopicPartition
from tests.kit.raw_client import PATIENCE_S


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
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
            match=r"group 'readers' with state Empty and lag 0, .*state Stable, 1 members, lag 1",
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
    with pytest.raises(ValueError, match=r"name what to wait for"):
        broker.group("g").wait_for()


def test_tk_3_a_group_without_offsets_is_not_level(broker: Broker) -> None:
    with pytest.raises(WaitTimeout, match=r"saw instead: state Dead, 0 members, no committed"):
        broker.wait_for(group="nobody", lag=0, timeout_s=0.3)


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
