"""The recipients of a decision: each broker's partitions, and updates for all brokers."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence, Set

from barnabas.cluster.controller_requests import PartitionState, UpdateMetadata
from barnabas.cluster.image import PartitionImage, TopicImage
from barnabas.controller.decision import Send
from barnabas.types import TopicPartition

Changed = dict[str, tuple[TopicImage, dict[int, PartitionImage]]]
"""Topics by name as they were taken up, and the current draft of their partitions."""

New = dict[TopicPartition, Container[int]]
"""The replicas that cannot have records of a partition yet."""

_NAMED_AT_MOST = 5


def roles(
    changed: Changed, names: Iterable[TopicPartition], new: New, brokers: Iterable[int]
) -> dict[int, list[PartitionState]]:
    """The states, among these partitions, that each of these brokers hosts."""
    hosted: dict[int, list[PartitionState]] = {broker_id: [] for broker_id in brokers}
    for name in names:
        topic, partitions = changed[name.topic]
        partition = partitions[name.partition]
        state = PartitionState(name, topic.topic_id, partition, topic.config, False)
        beginners = new.get(name)
        for replica in partition.replicas:
            if replica in hosted:
                is_new = beginners is not None and replica in beginners
                hosted[replica].append(state._replace(is_new=True) if is_new else state)
    return hosted


def all_roles(
    topics: Iterable[TopicImage], new: New, brokers: Set[int]
) -> dict[int, list[PartitionState]]:
    """The states of these topics' partitions that each of these brokers hosts."""
    hosted: dict[int, list[PartitionState]] = {broker_id: [] for broker_id in brokers}
    for topic in topics:
        for number, partition in topic.partitions.items():
            if brokers.isdisjoint(partition.replicas):
                continue
            name = TopicPartition(topic.name, number)
            beginners = new.get(name, ())
            state = PartitionState(name, topic.topic_id, partition, topic.config, False)
            for replica in brokers & set(partition.replicas):
                hosted[replica].append(state._replace(is_new=replica in beginners))
    return hosted


def to_all(broker_ids: Iterable[int], update: UpdateMetadata) -> list[Send]:
    """The same update for each broker."""
    return [Send(broker_id, update) for broker_id in broker_ids]


def note(what: str, names: Sequence[TopicPartition]) -> str:
    """A note on how many partitions it concerns, and the first few of them by name."""
    shown = ", ".join(map(str, names[:_NAMED_AT_MOST]))
    more = f" and {len(names) - _NAMED_AT_MOST} more" if len(names) > _NAMED_AT_MOST else ""
    return f"{len(names)} partition{'s' * (len(names) > 1)} {what}: {shown}{more}"
