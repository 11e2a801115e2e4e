"""LeaveGroup on the wire: one member in old versions, several in new ones."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.errors import GroupAuthorizationFailed, InvalidGroupId, UnknownMemberId
from barnabas.protocol.api import LEAVE_GROUP
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.kit.broker.group_calls import allowing, describe, join, leave, settle
from tests.kit.raw_client import RawClient


@pytest.mark.parametrize("version", range(3))
def test_one_member(member: RawClient, group: str, version: int) -> None:
    """GC-2"""
    joined = settle(member, group)
    request = LeaveGroupRequest(group_id=group, member_id=joined.member_id)
    assert member.call(LEAVE_GROUP, version, request).error_code == 0
    assert describe(member, group).group_state == "Empty"
    assert member.call(LEAVE_GROUP, version, request).error_code == UnknownMemberId.code


@pytest.mark.parametrize("version", range(3, LEAVE_GROUP.max_version + 1))
def test_several_members(member: RawClient, group: str, version: int) -> None:
    """KIP-345: each has its own answer; a static one can be named by its instance alone."""
    joined = join(member, group, group_instance_id="one")
    leaving = [
        MemberIdentity(member_id="nobody"),
        MemberIdentity(member_id="", group_instance_id="one"),
        MemberIdentity(member_id=joined.member_id, group_instance_id="one"),
    ]
    request = LeaveGroupRequest(group_id=group, members=leaving)
    answer = member.call(LEAVE_GROUP, version, request)
    assert answer.error_code == 0
    codes = [one.error_code for one in answer.members]
    assert codes == [UnknownMemberId.code, 0, UnknownMemberId.code]
    assert [one.group_instance_id for one in answer.members] == [None, "one", "one"]
    assert describe(member, group).members == []


def test_refusals(group_node: Broker, member: RawClient, group: str) -> None:
    assert leave(member, "", "a").error_code == InvalidGroupId.code
    (left,) = leave(member, "unheard-of", "a").members
    assert left.error_code == UnknownMemberId.code
    assert leave(member, group).members == []
    with allowing(group_node, "another"):
        assert leave(member, group, "a").error_code == GroupAuthorizationFailed.code
