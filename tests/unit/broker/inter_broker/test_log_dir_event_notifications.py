"""The node by which a broker informs a controller elsewhere that it has lost a log directory."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.inter_broker.log_dir_event_notifications import (
    PATH,
    announce,
    everything_hosted,
    take,
)
from barnabas.cluster.controller_requests import LeaderAndIsr
from barnabas.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from barnabas.cluster.store import BadVersion, Create
from barnabas.errors import RequestTimedOut
from barnabas.types import TopicPartition
from tests.kit.broker.brokers import (
    T0,
    Brokers,
    assigned,
    delete_topic,
    empty_tree,
    made,
    scenario,
)
from tests.kit.waiting import until


def test_what_was_announced_is_taken_once(caplog: pytest.LogCaptureFixture) -> None:
    """KIP-112: Kafka's node; what is not understood is said, and removed like the others."""

    async def scenario() -> None:
        store = await empty_tree()
        for broker_id in (2, 3, 2):
            await announce(store, broker_id)
        node = await store.read(f"{PATH}/log_dir_event_0000000001")
        assert node is not None and node.data == b'{"version":1,"broker":3,"event":1}'
        await store.commit([Create(f"{PATH}/log_dir_event_x", b"{}")])
        assert await take(store, 0) == [2, 3]
        assert "log_dir_event_x (" in caplog.text
        assert await take(store, 0) == []
        await store.close()

    asyncio.run(scenario())


def test_a_deposed_controller_takes_nothing() -> None:
    """ZK-3: its successor would never hear of it."""

    async def scenario() -> None:
        store = await empty_tree()
        await announce(store, 2)
        with pytest.raises(BadVersion):
            await take(store, 7)
        assert await take(store, 0) == [2]
        await store.close()

    asyncio.run(scenario())


def test_a_broker_is_asked_for_all_that_it_hosts_and_nothing_else() -> None:
    here = PartitionImage(2, 4, (2, 3), (2, 3), 5, 1)
    elsewhere = here._replace(leader=3, isr=(3,), replicas=(3,))
    topic = TopicImage("t", b"\1" * 16, {0: here, 1: elsewhere}, {"retention.ms": "5"})
    brokers = {each: BrokerImage(each, (), None, 1) for each in (2, 3)}
    image = ClusterImage("c", 3, 9, brokers, {"t": topic}, {})
    broker_id, request = everything_hosted(image, 2)
    assert broker_id == 2
    assert isinstance(request, LeaderAndIsr)
    assert (request.controller_id, request.controller_epoch) == (3, 9)
    (state,) = request.partitions
    assert state == (TopicPartition("t", 0), topic.topic_id, here, topic.config, False, "")


def test_zk_4_who_loses_a_directory_is_not_asked_to_host_what_it_has_deleted() -> None:
    """While the deletion waits for a dead broker: it would not be deleted a second time."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(2, 3))
        await made(them, assigned(2, 3, name="stays"))
        await them[3].die()
        await until(lambda: 3 not in them[1].image.brokers)
        with pytest.raises(RequestTimedOut, match="failed broker"):
            await delete_topic(them[1].runner, "t")
        await until(lambda: T0 not in them[2].hosted)
        before = len(them[2].received)
        await announce(them[2].store, 2)
        await until(lambda: len(them[2].received) > before)
        assert them[2].hosted.keys() == {TopicPartition("stays", 0)}

    scenario(play)
