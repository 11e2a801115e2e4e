"""Represents a member of a group of the classic protocol.

A member consists of the settings from its JoinGroup, its assignment, and its requests that are
waiting for the rest of the group. A static member (KIP-345) has an instance id, and keeps its place
and its assignment when it returns with a new member id.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.coordinator.timers import Timer

if TYPE_CHECKING:
    from barnabas.coordinator.records import MemberMetadata
    from barnabas.protocol.messages.join_group import JoinGroupRequestProtocol

Protocols = tuple[tuple[str, bytes], ...]
"""A member's protocols, in order of preference. Each has a name and the member's subscription."""

_UUID_CHARACTERS, _UUID_SHOWN = 36, 8
_NAME_SHOWN = 80


class Parked(NamedTuple):
    """A request that is waiting, with the version to use for its response."""

    ticket: int
    version: int


class Member:
    """A member of a group, with all of its state."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "joining",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "syncing",
        "timer",
    )

    def __init__(
        self, group_id: str, member_id: str, instance_id: str | None, protocols: Protocols
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = ""
        self.client_host = ""
        self.rebalance_timeout_ms = 0
        self.session_timeout_ms = 0
        self.protocols = protocols
        self.assignment = b""
        self.timer = Timer(group_id, member_id)
        """The session timer. Each heartbeat extends it."""
        self.joining: Parked | None = None
        self.syncing: Parked | None = None
        self.is_new = False
        """True until the member's first generation.

        Until then, it has no member id to send heartbeats with.
        """

    @classmethod
    def of_record(cls, group_id: str, protocol: str, stored: MemberMetadata) -> Member:
        """Restore a member from its record, which contains only one protocol."""
        subscription = bytes(stored.subscription)
        instance_id = stored.group_instance_id
        member = cls(group_id, stored.member_id, instance_id, ((protocol, subscription),))
        member.client_id = stored.client_id
        member.client_host = stored.client_host
        return member

    @property
    def name(self) -> str:
        """The member's name, which a static member keeps when its member id changes."""
        return self.member_id if self.instance_id is None else self.instance_id

    def subscription(self, protocol: str) -> bytes:
        """Return the member's subscription for this protocol, or empty bytes if it has none."""
        return next((data for name, data in self.protocols if name == protocol), b"")

    def vote(self, candidates: Container[str]) -> str:
        """Return the member's most preferred protocol among the candidates."""
        return next(name for name, _ in self.protocols if name in candidates)

    def rename(self, member_id: str) -> None:
        """Give a static member a new member id."""
        self.member_id = self.timer.member_id = member_id


def protocols_of(wanted: Iterable[JoinGroupRequestProtocol]) -> Protocols:
    """Copy the protocols from a request, ignoring any name that is repeated."""
    named: dict[str, bytes] = {}
    for protocol in wanted:
        # Copy the bytes, because a view would keep the whole frame in memory for as long as the
        # member exists.
        named.setdefault(protocol.name, bytes(protocol.metadata))
    return tuple(named.items())


def short_name(name: str) -> str:
    """Shorten a member's name for logging by cutting off most of its random UUID."""
    head, uuid = name[:-_UUID_CHARACTERS], name[-_UUID_CHARACTERS:]
    is_uuid = len(uuid) == _UUID_CHARACTERS and all(uuid[place] == "-" for place in (8, 13, 18, 23))
    return head[:_NAME_SHOWN] + uuid[:_UUID_SHOWN] if is_uuid else name[:_NAME_SHOWN]
