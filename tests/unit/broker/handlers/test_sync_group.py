"""SyncGroup on the wire: every version, an assignment that is waited for, and refusals."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.errors import (
    GroupAuthorizationFailed,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidGroupId,
    RebalanceInProgress,
    UnknownMemberId,
)
from barnabas.protocol.api import JOIN_GROUP, SYNC_GROUP
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from tests.kit.broker.group_calls import (
    allowing,
    join,
    join_as_well,
    loading,
    settle,
    sync,
)
from tests.kit.raw_client import RawClient


@pytest.mark.parametrize("version", range(SYNC_GROUP.max_version + 1))
def test_the_leader_assigns(member: RawClient, group: str, version: int) -> None:
    """GC-2"""
    joined = join(member, group)
    answer = sync(member, group, joined, {joined.member_id: b"mine"}, version)
    assert (answer.error_code, answer.assignment) == (0, b"mine")
    named = ("consumer", "range") if version >= 5 else (None, None)
    assert (answer.protocol_type, answer.protocol_name) == named
    again = sync(member, group, joined, None, version)
    assert again.assignment == b"mine"


def test_the_others_wait_for_the_leader(member: RawClient, other: RawClient, group: str) -> None:
    first = settle(member, group)
    join_as_well(other, member, group)
    leader = join(member, group, member_id=first.member_id)
    _, second = other.receive(JOIN_GROUP, 3)
    request = SyncGroupRequest(
        group_id=group, generation_id=second.generation_id, member_id=second.member_id
    )
    other.send(SYNC_GROUP, 3, request)
    given = {leader.member_id: b"first", second.member_id: b"second"}
    assert sync(member, group, leader, given).assignment == b"first"
    assert other.receive(SYNC_GROUP, 3)[1].assignment == b"second"


def test_a_member_means_the_protocol_that_was_chosen(member: RawClient, group: str) -> None:
    """KIP-559"""
    joined = join(member, group)
    for fields in (
        {"protocol_name": "sticky"},
        {"protocol_type": "connect"},
        {"protocol_name": None},
        {"protocol_type": None},
    ):
        answer = sync(member, group, joined, **fields)
        assert answer.error_code == InconsistentGroupProtocol.code


def test_refusals(member: RawClient, group: str) -> None:
    joined = settle(member, group)
    assert sync(member, group, joined, generation_id=7).error_code == IllegalGeneration.code
    assert sync(member, group, joined, member_id="nobody").error_code == UnknownMemberId.code
    assert sync(member, "unheard-of", joined).error_code == UnknownMemberId.code
    assert sync(member, "", joined).error_code == InvalidGroupId.code


def test_not_allowed(group_node: Broker, member: RawClient, group: str) -> None:
    joined = settle(member, group)
    with allowing(group_node, "another"):
        assert sync(member, group, joined).error_code == GroupAuthorizationFailed.code


def test_while_it_is_loading_members_join_again(
    group_node: Broker, member: RawClient, group: str
) -> None:
    joined = settle(member, group)
    with loading(group_node, group):
        assert sync(member, group, joined).error_code == RebalanceInProgress.code
