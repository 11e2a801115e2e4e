"""PR-9: what a client makes of Metadata's answers."""

from __future__ import annotations

from barnabas.client.channel import BrokerAddress
from barnabas.client.view import ClusterView
from barnabas.errors import LeaderNotAvailable, UnknownTopicOrPartition
from barnabas.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.types import TopicPartition

BROKERS = [MetadataResponseBroker(node_id=n, host=f"b{n}", port=9092) for n in (1, 2)]


def partition(number: int, leader: int, epoch: int) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        partition_index=number,
        leader_id=leader,
        leader_epoch=epoch,
        replica_nodes=[1, 2],
        isr_nodes=[leader],
    )


def answer(*partitions: MetadataResponsePartition, topic_id: bytes = b"i" * 16) -> MetadataResponse:
    topic = MetadataResponseTopic(name="t", topic_id=topic_id, partitions=list(partitions))
    return MetadataResponse(brokers=BROKERS, controller_id=1, cluster_id="c", topics=[topic])


def test_leaders_are_found_by_partition() -> None:
    view = ClusterView().after(answer(partition(1, 2, 0), partition(0, 1, 0)))
    assert view.leader(TopicPartition("t", 0)) == BrokerAddress(1, "b1", 9092)
    assert view.leader(TopicPartition("t", 1)) == BrokerAddress(2, "b2", 9092)
    assert view.leader(TopicPartition("t", 2)) is None
    assert view.leader(TopicPartition("u", 0)) is None
    assert list(view.topics["t"].partitions) == [0, 1], "ascending, however they came"
    assert view.topics["t"].choice == (2, (0, 1), 1)


def test_a_leaderless_partition_is_not_available() -> None:
    view = ClusterView().after(answer(partition(0, -1, 3), partition(1, 2, 0)))
    assert view.leader(TopicPartition("t", 0)) is None
    assert view.topics["t"].choice.available == (1,)


def test_an_older_leader_epoch_does_not_undo_a_newer_one() -> None:
    """KIP-320: a broker that lags behind would send us back to a deposed leader."""
    view = ClusterView().after(answer(partition(0, 2, 5)))
    lagging = view.after(answer(partition(0, 1, 4)))
    assert lagging.topics["t"].partitions[0].leader == 2
    assert lagging.generation == 2
    newer = lagging.after(answer(partition(0, 1, 6)))
    assert newer.topics["t"].partitions[0].leader == 1
    silent = newer.after(answer(partition(0, 2, -1)))
    assert silent.topics["t"].partitions[0].leader == 2, "an old broker says no epoch: believe it"


def test_a_recreated_topic_starts_over() -> None:
    view = ClusterView().after(answer(partition(0, 2, 5)))
    recreated = view.after(answer(partition(0, 1, 0), topic_id=b"j" * 16))
    assert recreated.topics["t"].partitions[0].leader == 1


def test_an_error_takes_the_place_of_a_topic_and_the_other_way_round() -> None:
    view = ClusterView().after(answer(partition(0, 1, 0)))
    gone = view.after(MetadataResponse(topics=[MetadataResponseTopic(name="t", error_code=3)]))
    assert "t" not in gone.topics
    assert isinstance(gone.topic_error("t"), UnknownTopicOrPartition)
    back = gone.after(answer(partition(0, 1, 0)))
    assert back.topic_error("t") is None and "t" in back.topics
    other = back.after(MetadataResponse(topics=[MetadataResponseTopic(name="u", error_code=5)]))
    assert isinstance(other.topic_error("u"), LeaderNotAvailable)
    assert "t" in other.topics, "what is not mentioned stays"
