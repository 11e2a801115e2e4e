"""Divides a request into the part that a rule matches and the rest. This module is pure.

Both parts are requests of the same class, so the broker handles the rest like any other request,
and the response to the matched part is built from that part (`refusal`). A part without rows is
None, because a request without names may refer to everything, as in Metadata. The request itself is
never changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from barnabas.protocol.message import Message
from barnabas.testing.faults.rows import (
    OUTER_LISTS,
    PARTITION_LISTS,
    TOPIC_LISTS,
    partition_of,
    topic_of,
)

M = TypeVar("M", bound=Message)


class Narrowed(NamedTuple):
    """The topic and partition to which a rule is limited."""

    topic: str | None = None
    partition: int | None = None

    def has(self, topic: str | None, partition: int) -> bool:
        """Return whether the partition is covered."""
        return topic == self.topic and self.partition in (None, partition)


class Selection(NamedTuple):
    """The two parts of a request: the part that a rule matches, and the rest. None represents an
    empty part.
    """

    chosen: Message | None
    rest: Message | None


def select(request: Message, to: Narrowed, topic_names: Mapping[bytes, str]) -> Selection:
    """Divide a request. `topic_names` maps topic ids to names."""
    if to.topic is None:
        return Selection(request, None)
    chosen, rest = copy(request), copy(request)
    has_chosen = has_rest = False
    for made in request.fields:
        rows = getattr(request, made.name)
        if not rows or made.name not in (*TOPIC_LISTS, *OUTER_LISTS):
            continue
        taken, left = [], []
        for row in rows:
            # In requests for groups and transactions, the topics are one level deeper.
            divide = select if made.name in OUTER_LISTS else _of_topic
            of_rule, others = divide(row, to, topic_names)
            taken += [] if of_rule is None else [of_rule]
            left += [] if others is None else [others]
        setattr(chosen, made.name, taken)
        setattr(rest, made.name, left)
        has_chosen, has_rest = has_chosen or bool(taken), has_rest or bool(left)
    # Use the original request instead of a copy, because it does not have to be split.
    if not has_chosen:
        return Selection(None, request)
    return Selection(chosen, rest if has_rest else None)


def _of_topic(row: Any, to: Narrowed, topic_names: Mapping[bytes, str]) -> tuple[Any, Any]:
    """Divide the row of a topic."""
    if topic_of(row, topic_names) != to.topic:
        return None, row
    if to.partition is None:
        return row, None
    chosen, rest = copy(row), copy(row)
    for name in PARTITION_LISTS:
        partitions = getattr(row, name, None)
        if partitions is None:
            continue
        taken = [each for each in partitions if partition_of(each) == to.partition]
        left = [each for each in partitions if partition_of(each) != to.partition]
        setattr(chosen, name, taken)
        setattr(rest, name, left)
        return chosen if taken else None, rest if left else None
    return None, row


def copy(message: M) -> M:
    """Return a separate message with the same values."""
    return type(message)(**{made.name: getattr(message, made.name) for made in message.fields})
