"""The controller's decision: operations to commit, the image after them, requests to brokers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from barnabas.cluster.controller_requests import ControlRequest
from barnabas.cluster.image import ClusterImage
from barnabas.cluster.store import Check, Create, Operation, Set
from barnabas.types import TopicPartition

_BYTES_BESIDE = 60
"""The most that an operation takes beside path and data: its type, lengths, version."""


class Send(NamedTuple):
    """A request to one broker."""

    broker_id: int
    request: ControlRequest


class Decision(NamedTuple):
    """Commit `operations` (there may be none), apply, then send `requests` in their order.

    `notes` go to the log as warnings. `unclean_elections`: how many may have lost records.
    """

    operations: tuple[Operation, ...]
    image: ClusterImage
    requests: tuple[Send, ...]
    unclean_elections: int = 0
    notes: tuple[str, ...] = ()
    departing: Mapping[TopicPartition, tuple[int, ...]] = MappingProxyType({})
    """Names the brokers that have yet to delete their logs, by partition, where that changes."""


def split(operations: Sequence[Operation], max_bytes: int = 500_000) -> list[tuple[Operation, ...]]:
    """A decision's operations in several commits, in their order, each fenced by the first one,
    the check of the controller's epoch.

    For decisions on more partitions than a store takes at once. By their order, a controller that
    finds some of them done can go on from there. A node is not separated from its first child, as
    the child's absence means that neither was created.
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
