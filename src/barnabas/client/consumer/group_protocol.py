"""Encodes the messages that a coordinator relays between a group's members and its leader. Pure.

    member -> leader: subscription    leader -> member: assignment

The layout is defined in `protocol.consumer_protocol`. This module defines the user data of a sticky
member, which lists the member's former partitions. The eager protocol revokes all partitions before
a join, so an eager member leaves the list of owned partitions in its subscription empty. A
cooperative member keeps its partitions while it joins, and lists them in the subscription
(KIP-429).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from barnabas.errors import CorruptData
from barnabas.protocol.codec import decode_prefix, encode_after
from barnabas.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartitions,
    decode_consumer_protocol,
    encode_consumer_protocol,
)
from barnabas.protocol.message import Message, field
from barnabas.protocol.messages.join_group import JoinGroupResponseMember
from barnabas.protocol.wire import INT32, Array
from barnabas.types import TopicPartition, by_topic

STICKY: Final = "sticky"
"""The name of the sticky assignor, whose members list their former partitions in the user data."""


class GroupMember(NamedTuple):
    """A member of a group, as described to the group's leader."""

    member_id: str
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()  # the member's partitions before this rebalance
    generation: int = -1  # the generation that assigned `owned`; -1: unknown
    instance_id: str | None = None  # None unless the member is static

    @property
    def rank(self) -> tuple[bool, str]:
        """The sort key: static members come first, by the id that survives a restart (KIP-345)."""
        return self.instance_id is None, self.instance_id or self.member_id


class Held(NamedTuple):
    """The partitions that a joining member had before, and those that it still owns."""

    had: Sequence[TopicPartition] = ()  # the partitions of its last assignment
    generation: int = -1  # the generation of that assignment; -1: none
    owned: Sequence[TopicPartition] = ()  # empty with the eager protocol


GroupAssignment = dict[str, list[TopicPartition]]
"""The partitions of each member, by member id. The list is empty if the member has none."""


class StickyUserData(Message):
    """Kafka's StickyAssignorUserData. Its oldest form has no generation."""

    previous_assignment: list[TopicPartitions] = field(Array(TopicPartitions))
    generation: int = field(INT32, versions="1+", default=-1)


def encode_subscription(
    assignor: str,
    topics: Iterable[str],
    held: Held,
    rack_id: str | None = None,
) -> bytes:
    """Encode a subscription. For the sticky assignor, include the member's former partitions."""
    user_data = None
    if assignor == STICKY:
        out = bytearray()
        data = StickyUserData(previous_assignment=_by_topic(held.had), generation=held.generation)
        encode_after(out, data, 1)
        user_data = bytes(out)
    return encode_consumer_protocol(
        ConsumerProtocolSubscription(
            topics=sorted(topics),
            user_data=user_data,
            owned_partitions=_by_topic(held.owned),
            generation_id=held.generation,
            rack_id=rack_id,
        )
    )


def decode_member(assignor: str, member: JoinGroupResponseMember) -> GroupMember:
    """Decode a member in a join response. Raises CorruptData if the subscription is unreadable."""
    _, subscription = decode_consumer_protocol(ConsumerProtocolSubscription, member.metadata)
    owned, generation = subscription.owned_partitions, subscription.generation_id
    if assignor == STICKY:
        # The eager sticky assignor puts the partitions in the user data (see the module's
        # docstring).
        had = _decode_user_data(subscription.user_data)
        owned, generation = had.previous_assignment, had.generation
    return GroupMember(
        member_id=member.member_id,
        topics=tuple(subscription.topics),
        owned=tuple(_partitions(owned)),
        generation=generation,
        instance_id=member.group_instance_id,
    )


def _decode_user_data(data: bytes | None) -> StickyUserData:
    """Decode the user data. If it is unreadable, there are no former partitions, as in Kafka."""
    # Version 1 added the generation (KIP-341). Try the longer form first, because the data carries
    # no version.
    for version in (1, 0):
        try:
            return decode_prefix(StickyUserData, data or b"", version)
        except CorruptData:
            continue
    return StickyUserData()


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    return encode_consumer_protocol(
        ConsumerProtocolAssignment(assigned_partitions=_by_topic(partitions), user_data=None)
    )


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """Decode a member's partitions. Empty data means no partitions. Raises CorruptData."""
    if not data:
        return []
    _, assignment = decode_consumer_protocol(ConsumerProtocolAssignment, data)
    return _partitions(assignment.assigned_partitions)


def _by_topic(partitions: Iterable[TopicPartition]) -> list[TopicPartitions]:
    topics = by_topic(partitions).items()
    return [TopicPartitions(topic=topic, partitions=numbers) for topic, numbers in topics]


def _partitions(topics: Iterable[TopicPartitions]) -> list[TopicPartition]:
    return [TopicPartition(each.topic, number) for each in topics for number in each.partitions]
