"""Answers to DescribeGroups and ListGroups. Reads state, changes none."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.coordinator.group import Group, GroupState
from barnabas.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from barnabas.protocol.messages.list_groups import ListedGroup, ListGroupsRequest

CLASSIC = "classic"
"""The type of all groups here; the other one is KIP-848's."""


def described(group_id: str, group: Group | None, *, with_events: bool) -> DescribedGroup:
    """The group's current state; None: an unknown group, which is not an error but "Dead".

    Subscriptions and assignments are included for a stable group alone: in a rebalance they are no
    longer, or not yet, true.
    """
    if group is None:
        return DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
    is_stable = group.state is GroupState.STABLE
    protocol = (group.protocol or "") if is_stable else ""
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol,
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.subscription(protocol) if is_stable else b"",
                member_assignment=member.assignment if is_stable else b"",
            )
            for member in group.members.values()
        ],
        events=list(group.events) if with_events else [],
    )


def listed(groups: Iterable[Group], wanted: ListGroupsRequest) -> list[ListedGroup]:
    """The groups that match the filters on state and type, ignoring case; no filter: all."""
    states = {state.lower() for state in wanted.states_filter}
    types = {kind.lower() for kind in wanted.types_filter}
    if types and CLASSIC not in types:
        return []
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=CLASSIC,
        )
        for group in groups
        if not states or group.state.value.lower() in states
    ]
