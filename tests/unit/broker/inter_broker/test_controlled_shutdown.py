"""A broker takes its leave: what it led is led by others before its connections are closed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas import Cluster
from barnabas.broker.server import Server
from barnabas.cluster import layout
from barnabas.cluster.store import Delete, MetadataStore, SessionState
from barnabas.controller.topics import NewTopic
from tests.kit.raw_client import PATIENCE_S
from tests.kit.waiting import wait_until


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    config = {
        "controlled.shutdown.retry.backoff.ms": "100",
        "auto.leader.rebalance.enable": "false",
    }
    with Cluster(3, config=config) as made:
        yield made


def make(cluster: Cluster, topic: NewTopic) -> None:
    (controller,) = [
        cluster.server(n) for n in (1, 2, 3) if cluster.server(n).node.controller.is_active
    ]
    cluster.thread.run(controller.node.controller.create_topic(topic))


def make_alone(cluster: Cluster, leader: int, outsider: int) -> None:
    """A partition with a replica that copies nothing, so it is out of sync by now."""
    others = cluster.server(outsider).parts.partitions.others
    assert others is not None
    cluster.thread.run(others.fetchers.stop())
    make(cluster, NewTopic("t", assignment={0: [leader, outsider]}))
    node = cluster.server(leader).node
    wait_until(lambda: "t" in node.image.topics)
    wait_until(lambda: node.image.topics["t"].partitions[0].isr == (leader,))


def leaders(server: Server, topic: str = "t") -> list[int]:
    described = server.node.image.topics.get(topic)  # UpdateMetadata may be on its way
    return [each.leader for each in described.partitions.values()] if described else []


def until_led(server: Server, expected: list[int], topic: str = "t") -> None:
    wait_until(lambda: leaders(server, topic) == expected)


def until_said(caplog: pytest.LogCaptureFixture, words: str) -> None:
    wait_until(lambda: words in caplog.text)


def test_its_partitions_have_other_leaders_when_it_is_gone(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """RE-13: and its death, which follows, costs no partition its leader."""
    caplog.set_level("INFO", "barnabas.broker")
    make(cluster, NewTopic("t", assignment={0: [3, 1], 1: [3, 2], 2: [2, 3]}))
    cluster.stop_broker(3)
    assert "this broker no longer leads any partition" in caplog.text
    until_led(cluster.server(1), [1, 2, 2])
    until_led(cluster.server(2), [1, 2, 2])
    until_said(caplog, "broker 3 has failed: partitions with a new leader: 0, with none: 0")
    cluster.start_broker(3)
    until_led(cluster.server(3), [1, 2, 2])


def test_the_controller_itself_leaves_in_the_same_way(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """RE-13, ZK-3"""
    caplog.set_level("INFO", "barnabas.broker")
    make(cluster, NewTopic("t", assignment={0: [1, 3], 1: [1, 2]}))
    assert cluster.server(1).node.controller.is_active
    cluster.stop_broker(1)
    until_led(cluster.server(2), [3, 2])
    until_led(cluster.server(3), [3, 2])
    assert "broker 1 is dead" not in caplog.text, "nothing was left to elect"


def test_partitions_without_another_leader_are_left_after_some_attempts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """RE-13: the other replica lives, and does not come into sync meanwhile."""
    config = {"controlled.shutdown.retry.backoff.ms": "100", "replica.lag.time.max.ms": "500"}
    with Cluster(3, config=config) as cluster:
        make_alone(cluster, leader=3, outsider=2)
        make(cluster, NewTopic("alone", assignment={0: [3]}))
        cluster.stop_broker(3)
        assert caplog.text.count("this broker still leads 1 partition ") == 3
        assert "the controlled shutdown attempts failed (3 attempts)" in caplog.text
        until_led(cluster.server(1), [-1])
        until_led(cluster.server(1), [-1], "alone")


def test_no_wait_for_a_broker_that_could_not_take_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """RE-13: two brokers stop, a third one stays that has no replica of what they lead."""
    caplog.set_level("INFO", "barnabas.broker")
    with Cluster(3, config={"controlled.shutdown.retry.backoff.ms": "3600000"}) as cluster:
        make(cluster, NewTopic("t", assignment={0: [2, 3], 1: [3, 2]}))
        stopping = [threading.Thread(target=cluster.stop_broker, args=[each]) for each in (2, 3)]
        for each in stopping:
            each.start()
        for each in stopping:
            each.join(PATIENCE_S)
            assert not each.is_alive()
        until_led(cluster.server(1), [-1, -1])
        assert "this broker no longer leads any partition" in caplog.text, (
            "the first one had an heir"
        )
        assert caplog.text.count("no other live broker has a replica of the partitions") == 1


def test_it_asks_again_when_there_is_no_controller_at_the_moment(cluster: Cluster) -> None:
    make(cluster, NewTopic("t", assignment={0: [3, 2]}))

    async def remove() -> None:
        await cluster.server(3).node.store.commit([Delete(layout.CONTROLLER)])
        await asyncio.sleep(0)

    cluster.thread.run(remove())
    cluster.stop_broker(3)
    until_led(cluster.server(2), [2])


def test_the_last_broker_does_not_wait(caplog: pytest.LogCaptureFixture) -> None:
    """RE-13: while it waits to ask again, the last broker that could take over goes, too."""
    caplog.set_level("INFO", "barnabas.broker")
    config = {"controlled.shutdown.retry.backoff.ms": "3600000", "replica.lag.time.max.ms": "500"}
    with Cluster(3, config=config) as cluster:
        make_alone(cluster, leader=3, outsider=1)
        cluster.stop_broker(2)
        stopping = threading.Thread(target=cluster.stop_broker, args=[3])
        stopping.start()
        until_said(caplog, "this broker still leads 1 partition ")
        cluster.stop_broker(1)
        stopping.join(PATIENCE_S)
        assert not stopping.is_alive()
    assert "no other broker is live to take over partitions" in caplog.text


class CutOff:
    """A metadata store that does not answer at the moment."""

    session_state = SessionState.SUSPENDED

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_no_controller_is_asked_that_could_not_write_it(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Without the metadata store no leader can be elected: it stops all the same, and soon."""
    make(cluster, NewTopic("t", assignment={0: [3, 2]}))
    shutdown = cluster.server(3).parts.control.shutdown
    assert shutdown is not None
    cut_off = shutdown._replace(store=CutOff(shutdown.store))
    began_at = time.monotonic()
    cluster.thread.run(cut_off.run())
    assert time.monotonic() - began_at < 25, "controller.socket.timeout.ms is 30 s"
    assert caplog.text.count("the metadata store does not answer") == 3
    assert "the controlled shutdown attempts failed (3 attempts)" in caplog.text
