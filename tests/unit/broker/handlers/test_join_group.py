"""JoinGroup on the wire: every version, two members that wait for each other, and refusals."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    GroupAuthorizationFailed,
    InvalidGroupId,
    MemberIdRequired,
    UnknownMemberId,
)
from barnabas.protocol.api import JOIN_GROUP
from tests.kit.broker.group_calls import (
    allowing,
    describe,
    join,
    join_as_well,
    join_request,
    loading,
    settle,
)
from tests.kit.raw_client import RawClient

VERSIONS = range(JOIN_GROUP.max_version + 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_first_member_leads(member: RawClient, group: str, version: int) -> None:
    """GC-2"""
    answer = join(member, group, version)
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (0, 1, "range")
    assert answer.leader == answer.member_id == answer.members[0].member_id
    assert answer.member_id.startswith("raw-") and len(answer.member_id) == len("raw-") + 36
    assert answer.protocol_type == ("consumer" if version >= 7 else None)
    (described,) = describe(member, group).members
    assert (described.client_id, described.client_host) == ("raw", "/127.0.0.1")


@pytest.mark.parametrize("version", range(4, JOIN_GROUP.max_version + 1))
def test_an_id_comes_first(member: RawClient, group: str, version: int) -> None:
    """KIP-394"""
    answer = member.call(JOIN_GROUP, version, join_request(group, version))
    assert answer.error_code == MemberIdRequired.code and answer.member_id
    assert (answer.generation_id, answer.leader, answer.members) == (-1, "", [])
    assert answer.protocol_name == (None if version >= 7 else "")


def test_members_wait_for_each_other(member: RawClient, other: RawClient, group: str) -> None:
    first = settle(member, group)
    join_as_well(other, member, group)
    again = join(member, group, member_id=first.member_id)
    _, answer = other.receive(JOIN_GROUP, 3)
    assert again.generation_id == answer.generation_id == 2
    assert again.leader == answer.leader == first.member_id
    ids = [one.member_id for one in again.members]
    assert ids == [first.member_id, answer.member_id] and answer.members == []


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_member_gets_an_error(member: RawClient, group: str, version: int) -> None:
    answer = join(member, group, version, member_id="nobody")
    assert (answer.error_code, answer.member_id) == (UnknownMemberId.code, "nobody")


def test_a_group_has_a_name(member: RawClient) -> None:
    assert join(member, "").error_code == InvalidGroupId.code


def test_an_enormous_client_id_makes_no_enormous_member_id(member: RawClient, group: str) -> None:
    answer = join(member, group, group_instance_id="i" * 32_000)
    assert answer.error_code == 0 and len(answer.member_id) < 10_000


def test_not_allowed(group_node: Broker, member: RawClient, group: str) -> None:
    with allowing(group_node, "another"):
        assert join(member, group).error_code == GroupAuthorizationFailed.code


def test_while_it_is_loading(group_node: Broker, member: RawClient, group: str) -> None:
    with loading(group_node, group):
        assert join(member, group).error_code == CoordinatorLoadInProgress.code


def test_before_there_is_an_offsets_topic(client: RawClient, group: str) -> None:
    assert join(client, group).error_code == CoordinatorNotAvailable.code
