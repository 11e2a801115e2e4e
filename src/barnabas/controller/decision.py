"""Defines a decision of the controller: operations to commit, the resulting image, and requests.

This module also splits a large decision into several commits, and determines which partitions are
sent to which broker.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType

from barnabas.cluster.controller_requests import ControlRequest, PartitionState, UpdateMetadata
from barnabas.cluster.image import ClusterImage, PartitionImage, TopicImage
from barnabas.cluster.store import Check, Create, Operation, Set
from barnabas.named_tuple import NamedTuple
from barnabas.types import TopicPartition

_NAMED_AT_MOST = 5
_BYTES_BESIDE = 60
"""The maximum size of an operation without its path and data: the type, lengths and version."""


Changed = dict[str, tuple[TopicImage, dict[int, PartitionImage]]]
"""Topics by name, together with their partitions, as drafted so far."""

New = dict[TopicPartition, Container[int]]
"""For each partition, the new replicas, which cannot have any records yet."""

Causes = Mapping[TopicPartition, Sequence[str]]
"""For each partition, the reasons why a decision changes it."""


class Send(NamedTuple):
    """A request and the broker that it is sent to."""

    broker_id: int
    request: ControlRequest


class PartitionChange(NamedTuple):
    """A partition whose leader, ISR or replicas are changed by a decision, with the reasons."""

    name: TopicPartition
    was: PartitionImage
    became: PartitionImage
    cause: str
    is_unclean: bool
    """Whether the new leader was not in sync."""


class Decision(NamedTuple):
    """A decision.

    Commit `operations` (if there are any), apply it, and then send `requests` in order.

    The `notes` are logged as warnings. `unclean_elections` is the number of elections that may have
    lost records.
    """

    operations: tuple[Operation, ...]
    image: ClusterImage
    requests: tuple[Send, ...]
    unclean_elections: int = 0
    notes: tuple[str, ...] = ()
    departing: Mapping[TopicPartition, tuple[int, ...]] = MappingProxyType({})
    """The brokers that still have to delete their logs, for each partition whose entry changed."""
    changes: tuple[PartitionChange, ...] = ()
    losses: Mapping[int, str] = MappingProxyType({})
    """The reasons why brokers are no longer live, by broker id."""


def split(operations: Sequence[Operation], max_bytes: int = 500_000) -> list[tuple[Operation, ...]]:
    """Split the operations of a decision into several commits, without changing their order.

    Each commit starts with the first operation, which checks the controller's epoch. Splitting is
    needed if a decision affects more partitions than fit into one commit. If another controller
    takes over after some of the commits, it can continue, because the order is preserved. A node
    and its first child are always in the same commit, because a missing child must mean that the
    node was not created either.
    """
    if not operations:
        return []
    fence, *rest = operations
    assert isinstance(fence, Check)
    return [(fence, *some) for some in _chunks(rest, max_bytes)] or [(fence,)]


def _chunks(operations: list[Operation], max_bytes: int) -> Iterator[list[Operation]]:
    chunk: list[Operation] = []
    size = 0
    for operation in operations:
        added = _size(operation)
        # ZooKeeper rejects a multi-request that is larger than jute.maxbuffer (by default, one
        # megabyte).
        if chunk and size + added > max_bytes and not _is_below(operation, chunk[-1]):
            yield chunk
            chunk, size = [], 0
        chunk.append(operation)
        size += added
    if chunk:
        yield chunk


def _size(operation: Operation) -> int:
    data = operation.data if isinstance(operation, Create | Set) else None
    return len(operation.path) + len(data or b"") + _BYTES_BESIDE


def _is_below(operation: Operation, other: Operation) -> bool:
    return operation.path.startswith(f"{other.path}/")


# --- recipients ----------------------------------------------------------------------------------


def roles(
    changed: Changed,
    names: Iterable[TopicPartition],
    new: New,
    causes: Causes,
    brokers: Iterable[int],
) -> dict[int, list[PartitionState]]:
    """Return the states to send to each broker for these partitions."""
    hosted: dict[int, list[PartitionState]] = {broker_id: [] for broker_id in brokers}
    for name in names:
        topic, partitions = changed[name.topic]
        partition = partitions[name.partition]
        cause = _cause(causes, name)
        state = PartitionState(name, topic.topic_id, partition, topic.config, False, cause)
        beginners = new.get(name)
        for replica in partition.replicas:
            # `hosted` contains only live brokers, and none that are sent everything anyway.
            if replica in hosted:
                is_new = beginners is not None and replica in beginners
                hosted[replica].append(state._replace(is_new=True) if is_new else state)
    return hosted


def all_roles(
    topics: Iterable[TopicImage], new: New, causes: Causes, brokers: AbstractSet[int]
) -> dict[int, list[PartitionState]]:
    """Return the states to send to each broker for all partitions of these topics that it hosts."""
    hosted: dict[int, list[PartitionState]] = {broker_id: [] for broker_id in brokers}
    for topic in topics:
        for number, partition in topic.partitions.items():
            if brokers.isdisjoint(partition.replicas):
                continue
            name = TopicPartition(topic.name, number)
            beginners = new.get(name, ())
            cause = _cause(causes, name)
            state = PartitionState(name, topic.topic_id, partition, topic.config, False, cause)
            for replica in brokers & set(partition.replicas):
                hosted[replica].append(state._replace(is_new=replica in beginners))
    return hosted


def _cause(causes: Causes, name: TopicPartition) -> str:
    return ", ".join(causes.get(name, ()))


def to_all(broker_ids: Iterable[int], update: UpdateMetadata) -> list[Send]:
    """Return requests that send the same update to each broker."""
    return [Send(broker_id, update) for broker_id in broker_ids]


def note(what: str, names: Sequence[TopicPartition]) -> str:
    """Return a note that contains the number of partitions and the names of the first few."""
    shown = ", ".join(map(str, names[:_NAMED_AT_MOST]))
    more = f" and {len(names) - _NAMED_AT_MOST} more" if len(names) > _NAMED_AT_MOST else ""
    return f"{len(names)} partition{'s' * (len(names) > 1)} {what}: {shown}{more}"
