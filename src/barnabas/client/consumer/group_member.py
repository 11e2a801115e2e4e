"""A group's members as its leader sees them, and what it hands out to them. Pure values."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.types import TopicPartition


class GroupMember(NamedTuple):
    member_id: str
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()  # what it had before this rebalance
    generation: int = -1  # in which it had that; -1: it does not say
    instance_id: str | None = None  # of a static member

    @property
    def rank(self) -> tuple[bool, str]:
        """Members in order: static ones first, by the name that outlives a restart (KIP-345)."""
        return self.instance_id is None, self.instance_id or self.member_id


GroupAssignment = dict[str, list[TopicPartition]]
"""Each member's partitions, by member id; a member without any has an empty list."""
