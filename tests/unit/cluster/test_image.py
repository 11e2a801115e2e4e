"""The image changes by the controller's updates alone, and what it was stays as it was."""

from __future__ import annotations

from barnabas.cluster.controller_requests import UpdateMetadata
from barnabas.cluster.image import (
    BrokerImage,
    ClusterImage,
    Endpoint,
    PartitionImage,
    TopicImage,
)

BROKER = BrokerImage(0, (Endpoint("PLAINTEXT", "h", 9092, "PLAINTEXT"),), None, 5)


def _topic(name: str, topic_id: bytes) -> TopicImage:
    return TopicImage(name, topic_id, {0: PartitionImage(0, 0, (0,), (0,), 0, 1)}, {})


def _update(*topics: TopicImage, epoch: int = 1, removed: tuple[str, ...] = ()) -> UpdateMetadata:
    return UpdateMetadata(0, epoch, "cluster", (BROKER,), topics, removed)


def test_topics_come_and_go_by_name_and_by_id() -> None:
    """ZK-4"""
    first = ClusterImage.empty().apply(_update(_topic("a", b"A" * 16), _topic("b", b"B" * 16)))
    assert list(first.topics) == ["a", "b"]
    assert first.topic_names == {b"A" * 16: "a", b"B" * 16: "b"}
    assert first.brokers == {0: BROKER}
    assert (first.cluster_id, first.controller_id, first.controller_epoch) == ("cluster", 0, 1)

    second = first.apply(_update(removed=("a",)))
    assert list(second.topics) == ["b"]
    assert second.topic_names == {b"B" * 16: "b"}
    assert list(first.topics) == ["a", "b"], "an image that is held never changes"


def test_a_topic_that_comes_back_has_another_id() -> None:
    first = ClusterImage.empty().apply(_update(_topic("a", b"A" * 16)))
    second = first.apply(_update(_topic("a", b"Z" * 16)))
    assert second.topic_names == {b"Z" * 16: "a"}


def test_a_deposed_controller_changes_nothing() -> None:
    """ZK-3"""
    image = ClusterImage.empty().apply(_update(_topic("a", b"A" * 16), epoch=4))
    assert image.apply(_update(removed=("a",), epoch=3)) is image
