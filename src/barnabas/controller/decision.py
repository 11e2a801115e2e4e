"""Defines the controller's decision: operations to commit, the resulting image, and requests.

The module also splits a large decision into commits, and determines which partitions to send to
each broker.
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
"""The maximum size of an operation besides path and data: its type, lengths and version."""


Changed = dict[str, tuple[TopicImage, dict[int, PartitionImage]]]
"""The drafted topics by name, with their partitions as drafted so far."""

New = dict[TopicPartition, Container[int]]
"""The new replicas of a partition, which cannot have records yet."""

Causes = Mapping[TopicPartition, Sequence[str]]
"""Why a decision changes each partition."""


class Send(NamedTuple):
    """A request to one broker."""

    broker_id: int
    request: ControlRequest


class PartitionChange(NamedTuple):
    """A partition whose leader, ISR or replicas a decision changes, with the reasons."""

    name: TopicPartition
    was: PartitionImage
    became: PartitionImage
    cause: str
    is_unclean: bool
    """The new leader was not in sync."""


class Decision(NamedTuple):
    """A decision: commit `operations` (if any), apply, then send `requests` in order.

    `notes` are logged as warnings. `unclean_elections` counts elections that may have lost records.
    """

    operations: tuple[Operation, ...]
    image: ClusterImage
    requests: tuple[Send, ...]
    unclean_elections: int = 0
    notes: tuple[str, ...] = ()
    departing: Mapping[TopicPartition, tuple[int, ...]] = MappingProxyType({})
    """Changes to the set of brokers that still have to delete their logs, by partition."""
    changes: tuple[PartitionChange, ...] = ()
    losses: Mapping[int, str] = MappingProxyType({})
    """Why brokers are no longer live, by broker id."""


def split(operations: Sequence[Operation], max_bytes: int = 500_000) -> list[tuple[Operation, ...]]:
    """Split a decision's operations into several commits, in order.

    Each commit is fenced by the first operation, the check of the controller's epoch. This is
    needed for decisions about more partitions than one commit can contain. Because the order is
    kept, another controller that finds some of the commits done can continue after them. A node
    stays in the same commit as its first child, because a missing child must mean that neither was
    created.
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
        # ZooKeeper rejects a multi-request larger than jute.maxbuffer, which is one megabyte by
        # default.
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
    """Return, for each broker, its states among these partitions."""
    hosted: dict[int, list[PartitionState]] = {broker_id: [] for broker_id in brokers}
    for name in names:
        topic, partitions = changed[name.topic]
        partition = partitions[name.partition]
        cause = _cause(causes, name)
        state = PartitionState(name, topic.topic_id, partition, topic.config, False, cause)
        beginners = new.get(name)
        for replica in partition.replicas:
            # `hosted` omits brokers that are not live or are sent everything anyway.
            if replica in hosted:
                is_new = beginners is not None and replica in beginners
                hosted[replica].append(state._replace(is_new=True) if is_new else state)
    return hosted


def all_roles(
    topics: Iterable[TopicImage], new: New, causes: Causes, brokers: AbstractSet[int]
) -> dict[int, list[PartitionState]]:
    """Return, for each broker, the states of the partitions of these topics that it hosts."""
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
    """Address the same update to each broker."""
    return [Send(broker_id, update) for broker_id in broker_ids]


def note(what: str, names: Sequence[TopicPartition]) -> str:
    """Return a note with the number of partitions and the first few names."""
    shown = ", ".join(map(str, names[:_NAMED_AT_MOST]))
    more = f" and {len(names) - _NAMED_AT_MOST} more" if len(names) > _NAMED_AT_MOST else ""
    return f"{len(names)} partition{'s' * (len(names) > 1)} {what}: {shown}{more}"
