"""Which replicas of topics that go are still there: the books that a controller keeps of it."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.controller.topic_deletion import TopicDeletions
from barnabas.cluster.controller_requests import WHILE_DELETING, StopReplica
from barnabas.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from barnabas.errors import KafkaStorageError, NotController
from barnabas.types import TopicPartition

LED = PartitionImage(1, 0, (1, 2), (1, 2), 0, 1)
TOPIC = TopicImage("t", b"\1" * 16, {0: LED, 1: LED}, {})
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def stop(topic: TopicImage, leader_epoch: int = WHILE_DELETING) -> StopReplica:
    epochs = dict.fromkeys((T0, T1), leader_epoch)
    return StopReplica(1, 1, (T0, T1), True, epochs, dict.fromkeys((T0, T1), topic.topic_id))


STOP = stop(TOPIC)


def image(*live: int, topic: TopicImage = TOPIC) -> ClusterImage:
    brokers = {broker_id: BrokerImage(broker_id, (), None, 1) for broker_id in live}
    return ClusterImage("c", 1, 1, brokers, {"t": topic}, {})


def test_a_topic_is_gone_when_every_broker_has_said_so_of_every_partition() -> None:
    """ZK-4"""
    deletions = TopicDeletions()
    deletions.begin("t", TOPIC)
    assert "t" in deletions and list(deletions) == ["t"]
    deletions.on_answer(1, STOP, {T0: 0, T1: 0, TopicPartition("other", 0): 0})
    deletions.on_answer(2, STOP, {T0: 0})
    assert deletions.without_replicas() == []
    assert not deletions.is_blocked("t", image(1, 2))
    assert deletions.is_blocked("t", image(1))
    assert not deletions.is_blocked("t", image(2))
    deletions.on_answer(2, STOP, {T1: 0})
    assert deletions.without_replicas() == ["t"]
    deletions.on_removed(["t"])
    assert "t" not in deletions


def test_who_has_lost_a_replica_is_believed_about_what_is_there() -> None:
    """ST-10: its directory may be back one day, or it was another topic's of that name."""
    deletions = TopicDeletions()
    deletions.begin("t", TOPIC)
    lost = TOPIC._replace(partitions={0: LED._replace(offline_replicas=(2,)), 1: LED})
    deletions.on_answer(1, STOP, {T0: 0, T1: 0})
    deletions.on_answer(2, STOP, {T0: KafkaStorageError.code, T1: 0})
    assert deletions.without_replicas() == []
    assert deletions.is_blocked("t", image(1, 2, topic=lost))
    deletions.on_answer(2, STOP, {T0: 0})
    assert deletions.without_replicas() == ["t"]


def test_who_cannot_reach_a_replica_says_so_before_anybody_knows_it() -> None:
    """ST-10: the caller is answered, and the nodes stay until it is deleted."""
    deletions = TopicDeletions()
    deletions.begin("t", TOPIC)
    deletions.on_answer(1, STOP, {T0: 0, T1: 0})
    deletions.on_answer(2, STOP, {T0: 0, T1: KafkaStorageError.code})
    assert deletions.without_replicas() == []
    assert deletions.is_blocked("t", image(1, 2))
    deletions.on_answer(2, STOP, {T1: 0})
    assert deletions.without_replicas() == ["t"]
    assert not deletions.is_blocked("t", image(1, 2))


def test_a_late_answer_about_an_earlier_topic_of_the_name_does_not_count() -> None:
    """The request was sent twice, the first answer was enough, and the topic was made again."""
    deletions = TopicDeletions()
    deletions.begin("t", TOPIC)
    for broker_id in (1, 2):
        deletions.on_answer(broker_id, STOP, {T0: 0, T1: 0})
    deletions.on_removed(["t"])
    again = TOPIC._replace(topic_id=b"\2" * 16)
    deletions.begin("t", again)
    deletions.on_answer(1, stop(again), {T0: 0, T1: 0})
    deletions.on_answer(2, STOP, {T0: 0, T1: 0})
    assert deletions.without_replicas() == []
    deletions.on_answer(2, stop(again), {T0: 0, T1: 0})
    assert deletions.without_replicas() == ["t"]


def test_a_late_answer_about_a_reassignment_does_not_count() -> None:
    """The replica was given back to the broker in the meantime, and is there again."""
    deletions = TopicDeletions()
    deletions.begin("t", TOPIC)
    deletions.on_answer(1, STOP, {T0: 0, T1: 0})
    deletions.on_answer(2, stop(TOPIC, leader_epoch=4), {T0: 0, T1: 0})
    assert deletions.without_replicas() == []


def test_a_request_without_a_topic_is_completed_at_once() -> None:
    deletions = TopicDeletions()
    deletions.begin("t", None)
    assert deletions.without_replicas() == ["t"]


def test_every_caller_learns_how_it_ended() -> None:
    async def scenario() -> None:
        deletions = TopicDeletions()
        await deletions.until_removed("t")  # it is not being deleted
        deletions.begin("t", TOPIC)
        first, second = (asyncio.ensure_future(deletions.until_removed("t")) for _ in range(2))
        await asyncio.sleep(0)
        second.cancel()
        deletions.on_removed(["t"])
        await first
        deletions.begin("t", TOPIC)
        third = asyncio.ensure_future(deletions.until_removed("t"))
        await asyncio.sleep(0)
        deletions.close(NotController("resigned"))
        with pytest.raises(NotController):
            await third
        with pytest.raises(NotController):
            await deletions.until_removed("t")

    asyncio.run(scenario())
