"""Removes unusable partitions from a request about offsets. These are unknown partitions and
partitions of topics that the client is not authorized to read. The rest of the request is processed
normally.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from barnabas.errors import NONE, TopicAuthorizationFailed, UnknownTopicOrPartition
from barnabas.security.acl import Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.context import Context

Refused = dict[str, list[tuple[int, int]]]
"""The rejected partitions of each topic, with their error codes."""


class _Topic(Protocol):
    """A topic in a request or response of OffsetCommit, TxnOffsetCommit or OffsetDelete."""

    name: str
    partitions: list[Any]


T = TypeVar("T", bound=_Topic)


def screen(context: Context, topics: Sequence[T]) -> tuple[list[T], Refused]:
    """Return the topics with their usable partitions, and the partitions that were rejected."""
    refused: Refused = {}
    kept = []
    for topic in topics:
        code = _refusal(context, topic.name)
        known = () if code else context.node.image.topics[topic.name].partitions
        missing = [one for one in topic.partitions if one.partition_index not in known]
        if not missing:
            kept.append(topic)
            continue
        code = code or UnknownTopicOrPartition.code
        refused.setdefault(topic.name, []).extend((one.partition_index, code) for one in missing)
        if len(missing) < len(topic.partitions):
            topic.partitions = [one for one in topic.partitions if one.partition_index in known]
            kept.append(topic)
    return kept, refused


def _refusal(context: Context, topic: str) -> int:
    """Return the error code that applies to the whole topic, or 0 if there is none."""
    # Check the authorization before looking up the topic, because an unauthorized client must not
    # learn whether it exists.
    if not context.allowed_to(Operation.READ, ResourceType.TOPIC, topic):
        return TopicAuthorizationFailed.code
    return NONE if topic in context.node.image.topics else UnknownTopicOrPartition.code


def add_refused(answered: list[T], refused: Refused, topic: type[T], partition: type[Any]) -> None:
    """Add the partitions that were rejected by `screen` to the response."""
    by_name = {one.name: one for one in answered}
    for name, refusals in refused.items():
        if name not in by_name:
            by_name[name] = topic()
            by_name[name].name = name
            answered.append(by_name[name])
        by_name[name].partitions += [
            partition(partition_index=index, error_code=code) for index, code in refusals
        ]
