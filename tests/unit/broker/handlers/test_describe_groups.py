"""DescribeGroups on the wire: every version, groups that are not there, and rebalances."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.errors import CoordinatorLoadInProgress, GroupAuthorizationFailed
from barnabas.protocol.api import DESCRIBE_GROUPS
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from tests.kit.broker.group_calls import (
    allowing,
    describe,
    join,
    leave,
    loading,
    settle,
    sync,
)
from tests.kit.raw_client import RawClient

NOT_REQUESTED = -(1 << 31)


@pytest.mark.parametrize("version", range(DESCRIBE_GROUPS.max_version + 1))
def test_every_version(member: RawClient, group: str, version: int) -> None:
    joined = join(member, group, group_instance_id="one")
    described = describe(member, group, version=version)
    assert (described.group_state, described.protocol_data) == ("CompletingRebalance", "")
    assert described.members[0].member_metadata == described.members[0].member_assignment == b""
    sync(member, group, joined, {joined.member_id: b"all"}, group_instance_id="one")
    described = describe(member, group, version=version)
    assert (described.error_code, described.group_state) == (0, "Stable")
    assert (described.protocol_type, described.protocol_data) == ("consumer", "range")
    (one,) = described.members
    assert (one.member_id, one.member_assignment) == (joined.member_id, b"all")
    assert one.member_metadata and one.group_instance_id == ("one" if version >= 4 else None)
    assert described.authorized_operations == NOT_REQUESTED and described.events == []


def test_what_is_not_there_is_dead(member: RawClient, group: str) -> None:
    described = describe(member, group, "")
    assert (described.error_code, described.group_state, described.members) == (0, "Dead", [])


def test_operations_are_returned_on_request(member: RawClient, group: str) -> None:
    """KIP-430: the very number that a real broker without an authorizer returns."""
    assert describe(member, group, include_authorized_operations=True).authorized_operations == 328


def test_rebalances_are_returned_on_request(member: RawClient, group: str) -> None:
    joined = settle(member, group)
    leave(member, group, joined.member_id)
    joined, left = describe(member, group, include_events=True).events
    assert (joined.generation_id, joined.member_count, joined.is_harmless) == (1, 1, True)
    assert (left.generation_id, left.member_count, left.is_harmless) == (2, 0, True)
    assert left.ended_at_ms >= joined.ended_at_ms > 1_600_000_000_000
    assert left.duration_ms >= 0
    assert joined.story.startswith(f"group {group}: generation 0 -> 1 in ")
    assert " (/127.0.0.1) left; " in left.story


def test_refusals(group_node: Broker, member: RawClient, group: str) -> None:
    with allowing(group_node, "another"):
        described = describe(member, group, "another", include_authorized_operations=True)
    assert (described.error_code, described.group_state) == (GroupAuthorizationFailed.code, "")
    assert described.authorized_operations == NOT_REQUESTED
    with loading(group_node, group):
        assert describe(member, group).error_code == CoordinatorLoadInProgress.code


def test_a_group_named_twice_is_described_once(member: RawClient, group: str) -> None:
    request = DescribeGroupsRequest(groups=[group, "other", group])
    described = member.call(DESCRIBE_GROUPS, 5, request).groups
    assert [one.group_id for one in described] == [group, "other"]
