"""Implements the part of `Admin` that reads and changes groups and their offsets.

A group's offsets can be changed only while the group has no members, because its members would not
notice the change.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client import arguments
from barnabas.client.admin import admin_arguments
from barnabas.client.admin.admin_arguments import Names
from barnabas.client.admin.admin_calls import AdminCalls
from barnabas.client.arguments import Partitions
from barnabas.client.channel import BrokerAddress
from barnabas.client.consumer.committed import (
    GroupMetadata,
    OffsetAndMetadata,
    as_offsets,
    commit_offsets,
    fetch_committed,
    raise_first,
    unknown_partitions,
)
from barnabas.client.consumer.group_protocol import decode_assignment
from barnabas.client.coordinator import CoordinatorFinder
from barnabas.errors import (
    CoordinatorLoadInProgress,
    CorruptData,
    error_for_code,
)
from barnabas.protocol.api import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    LEAVE_GROUP,
    LIST_GROUPS,
    OFFSET_DELETE,
)
from barnabas.protocol.consumer_protocol import (
    CONSUMER_PROTOCOL,
    ConsumerProtocolSubscription,
    decode_consumer_protocol,
)
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas.protocol.messages.leave_group import (
    REMOVED_BY_ADMIN,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.protocol.messages.offset_delete import (
    OffsetDeletePartition,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteTopic,
)
from barnabas.types import TopicPartition, by_topic


class GroupListing(NamedTuple):
    """A group as it appears in a list of groups."""

    group_id: str
    protocol_type: str  # "consumer", "connect" ...; "": a simple consumer's offsets only
    # "Stable", "PreparingRebalance", "CompletingRebalance", "Empty", "Dead"; "": unknown
    state: str
    group_type: str  # "Classic" ...; "": unknown


class MemberDescription(NamedTuple):
    """A member of a group."""

    member_id: str
    instance_id: str | None  # None unless the member is static
    client_id: str
    host: str  # as the broker reports it, such as "/127.0.0.1"
    topics: tuple[str, ...]  # the subscribed topics; empty unless the protocol type is "consumer"
    partitions: tuple[TopicPartition, ...]  # the assigned partitions, sorted; empty as above


class RebalanceEvent(NamedTuple):
    """A completed rebalance, as recorded by Barnabas brokers."""

    ended_at_ms: int
    duration_ms: int
    generation: int
    member_count: int
    moved_partitions: int  # -1: unknown
    is_harmless: bool
    story: str  # a one-line summary of the rebalance


class GroupDescription(NamedTuple):
    """A group and its members."""

    group_id: str
    state: str  # as in GroupListing; "Dead": the group does not exist
    protocol_type: str
    assignor: str  # the assignor that the members voted for
    coordinator: BrokerAddress
    members: tuple[MemberDescription, ...]
    events: tuple[RebalanceEvent, ...]  # oldest first; empty unless requested


class GroupAdmin(AdminCalls):
    """Reads and changes groups and their offsets through the group coordinators."""

    _groups: CoordinatorFinder

    async def list_groups(self, *, states: Names = (), types: Names = ()) -> list[GroupListing]:
        """Return the groups of the cluster, sorted by name and filtered by `states` and `types`.

        Raises CoordinatorLoadInProgress if a broker has not loaded its groups within
        `default.api.timeout.ms`.
        """
        request = ListGroupsRequest(
            states_filter=admin_arguments.names(states, "states"),
            types_filter=admin_arguments.names(types, "types"),
        )
        # Each broker lists the groups whose partition of __consumer_offsets it leads (GC-1).
        found: dict[str, GroupListing] = {}

        async def ask(node: BrokerAddress) -> None:
            answer = await self._cluster.call(node, LIST_GROUPS, request, ListGroupsResponse)
            # Ask this broker again, because otherwise its groups would be missing from the list.
            if answer.error_code == CoordinatorLoadInProgress.code:
                raise CoordinatorLoadInProgress(f"listing groups of {node}: still loading")
            self._groups.check("", answer.error_code, f"listing groups of {node}")
            for group in answer.groups:
                found[group.group_id] = GroupListing(
                    group.group_id, group.protocol_type, group.group_state, group.group_type
                )

        await self._ask_each_broker(ask)
        return [listing for _, listing in sorted(found.items())]

    async def describe_groups(
        self, group_ids: Names, *, include_events: bool = False
    ) -> dict[str, GroupDescription]:
        """Return the state and the members of each group. A group that does not exist is "Dead".

        `include_events` adds the group's recent rebalances (Barnabas brokers only). Raises the
        first KafkaError, such as GroupAuthorizationFailed.
        """
        described: dict[str, GroupDescription] = {}

        async def describe(group_ids: Sequence[str]) -> dict[str, int]:
            request = DescribeGroupsRequest(groups=list(group_ids), include_events=include_events)
            answer = await self._groups.call(
                group_ids[0], DESCRIBE_GROUPS, request, DescribeGroupsResponse
            )
            at = await self._groups.broker(group_ids[0])
            for group in answer.groups:
                described[group.group_id] = _description(group, at)
            return {group.group_id: group.error_code for group in answer.groups}

        wanted = list(dict.fromkeys(admin_arguments.names(group_ids, "group_ids")))
        await self._at_coordinators(wanted, describe)
        return {group_id: described[group_id] for group_id in wanted}

    async def delete_groups(self, group_ids: Names) -> None:
        """Delete groups that have no members, together with their offsets.

        Raises the first KafkaError, such as NonEmptyGroup or GroupIdNotFound; the other groups are
        still deleted.
        """

        async def delete(group_ids: Sequence[str]) -> dict[str, int]:
            request = DeleteGroupsRequest(groups_names=list(group_ids))
            answer = await self._groups.call(
                group_ids[0], DELETE_GROUPS, request, DeleteGroupsResponse
            )
            return {result.group_id: result.error_code for result in answer.results}

        await self._at_coordinators(admin_arguments.names(group_ids, "group_ids"), delete)

    async def remove_members(
        self, group_id: str, *, instance_ids: Names = (), member_ids: Names = ()
    ) -> None:
        """Remove static members by instance id, or any members by member id (KIP-345).

        Raises UnknownMemberId if any member is unknown; the other members are still removed.
        """
        arguments.text(group_id, "group_id")
        instances = admin_arguments.names(instance_ids, "instance_ids")
        members = [
            *(
                MemberIdentity(group_instance_id=name, reason=REMOVED_BY_ADMIN)
                for name in instances
            ),
            *(
                MemberIdentity(member_id=name, reason=REMOVED_BY_ADMIN)
                for name in admin_arguments.names(member_ids, "member_ids")
            ),
        ]

        async def leave() -> None:
            request = LeaveGroupRequest(group_id=group_id, members=members)
            answer = await self._groups.call(group_id, LEAVE_GROUP, request, LeaveGroupResponse)
            self._groups.check(group_id, answer.error_code)
            for member in answer.members:
                name = member.group_instance_id or member.member_id
                subject = f"member {name!r} of group {group_id!r}"
                self._groups.check(group_id, member.error_code, subject)

        await self._persist(leave)

    # ---- offsets ----

    async def list_group_offsets(
        self,
        group_id: str,
        partitions: Partitions | None = None,
        *,
        require_stable: bool = False,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the group's committed offsets for these partitions (or for all), sorted.

        Partitions without a committed offset are omitted, so the result is empty for a group that
        does not exist. `require_stable` waits for any transaction that may still change an offset
        (KIP-447). Raises GroupAuthorizationFailed.

            for partition, committed in (await admin.list_group_offsets("readers")).items():
                print(partition, committed.offset)
        """
        arguments.text(group_id, "group_id")
        wanted = None if partitions is None else admin_arguments.partitions(partitions)
        found = await self._persist(
            lambda: fetch_committed(self._groups, group_id, wanted, require_stable=require_stable)
        )
        return dict(sorted(found.items()))

    async def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata | int]
    ) -> None:
        """Set the offsets of a group without members. The group is created if it does not exist.

        Raises UnknownTopicOrPartition, or UnknownMemberId if the group has members.

            await admin.alter_group_offsets("readers", {TopicPartition("test", 0): 1_000})
        """
        arguments.text(group_id, "group_id")
        wanted = as_offsets(offsets)

        # Omit the member and generation; a coordinator accepts this only if the group is empty.
        who = GroupMetadata(group_id)
        unknown = await self._persist(lambda: commit_offsets(self._groups, who, wanted))
        if unknown:
            raise unknown_partitions(group_id, unknown)

    async def delete_group_offsets(self, group_id: str, partitions: Partitions) -> None:
        """Delete the group's offsets for these partitions (KIP-496).

        Raises GroupIdNotFound, or GroupSubscribedToTopic while a member is subscribed to the topic.
        """
        request = OffsetDeleteRequest(
            group_id=arguments.text(group_id, "group_id"),
            topics=[
                OffsetDeleteTopic(
                    name=name,
                    partitions=[OffsetDeletePartition(partition_index=each) for each in numbers],
                )
                for name, numbers in by_topic(admin_arguments.partitions(partitions)).items()
            ],
        )

        async def delete() -> None:
            answer = await self._groups.call(group_id, OFFSET_DELETE, request, OffsetDeleteResponse)
            self._groups.check(group_id, answer.error_code)
            raise_first(self._groups, group_id, answer.topics)

        await self._persist(delete)

    # ---- routing ----

    async def _at_coordinators(
        self, group_ids: Iterable[str], ask: Callable[[Sequence[str]], Awaitable[dict[str, int]]]
    ) -> None:
        """Call `ask`, which returns an error code for each group, with each coordinator's groups.

        Transient errors are retried, each time at the group's current coordinator. The first
        permanent error is raised once every group has a result.
        """
        left = dict.fromkeys(group_ids)
        failures: dict[str, int] = {}

        async def attempt() -> None:
            by_node: dict[BrokerAddress, list[str]] = {}
            for group_id, node in (await self._groups.nodes(left)).items():
                by_node.setdefault(node, []).append(group_id)
            # Each coordinator gets one request. Groups with a result are removed from `left`; a
            # retry asks only about the rest.
            again: dict[str, int] = {}
            for own in by_node.values():
                for group_id, code in (await ask(own)).items():
                    if code and error_for_code(code).retriable:
                        again[group_id] = code
                        continue
                    left.pop(group_id, None)
                    if code:
                        failures[group_id] = code
            for group_id, code in again.items():
                self._groups.check(group_id, code)

        if left:
            await self._persist(attempt)
        for group_id, code in failures.items():
            self._groups.check(group_id, code)


def _description(group: DescribedGroup, coordinator: BrokerAddress) -> GroupDescription:
    is_consumer = group.protocol_type == CONSUMER_PROTOCOL
    return GroupDescription(
        group_id=group.group_id,
        state=group.group_state,
        protocol_type=group.protocol_type,
        assignor=group.protocol_data,
        coordinator=coordinator,
        members=tuple(_member(member, is_consumer=is_consumer) for member in group.members),
        events=tuple(
            RebalanceEvent(
                ended_at_ms=event.ended_at_ms,
                duration_ms=event.duration_ms,
                generation=event.generation_id,
                member_count=event.member_count,
                moved_partitions=event.moved_partitions,
                is_harmless=event.is_harmless,
                story=event.story,
            )
            for event in group.events
        ),
    )


def _member(member: DescribedGroupMember, *, is_consumer: bool) -> MemberDescription:
    topics: tuple[str, ...] = ()
    partitions: list[TopicPartition] = []
    if is_consumer:
        try:
            if member.member_metadata:
                _, subscription = decode_consumer_protocol(
                    ConsumerProtocolSubscription, member.member_metadata
                )
                topics = tuple(sorted(subscription.topics))
            partitions = decode_assignment(member.member_assignment)
        except CorruptData:
            pass  # members write this data; it is omitted if it cannot be decoded
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host,
        topics=topics,
        partitions=tuple(sorted(partitions)),
    )
