"""Heartbeat on the wire: every version, and what a member can hear."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.errors import (
    GroupAuthorizationFailed,
    IllegalGeneration,
    InvalidGroupId,
    RebalanceInProgress,
    UnknownMemberId,
)
from barnabas.protocol.api import HEARTBEAT
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from tests.kit.broker.group_calls import allowing, join_as_well, loading, settle
from tests.kit.raw_client import RawClient

LATEST = HEARTBEAT.max_version


def beat(
    client: RawClient, group_id: str, member_id: str, generation: int = 1, version: int = LATEST
) -> int:
    request = HeartbeatRequest(group_id=group_id, generation_id=generation, member_id=member_id)
    return int(client.call(HEARTBEAT, version, request).error_code)


@pytest.mark.parametrize("version", range(LATEST + 1))
def test_a_member_lives(member: RawClient, group: str, version: int) -> None:
    """GC-2"""
    joined = settle(member, group)
    assert beat(member, group, joined.member_id, version=version) == 0
    assert beat(member, group, joined.member_id, 0, version) == IllegalGeneration.code
    assert beat(member, group, "nobody", version=version) == UnknownMemberId.code
    assert beat(member, "unheard-of", "nobody", version=version) == UnknownMemberId.code
    assert beat(member, "", "nobody", version=version) == InvalidGroupId.code


def test_it_hears_of_a_rebalance(member: RawClient, other: RawClient, group: str) -> None:
    joined = settle(member, group)
    join_as_well(other, member, group)
    assert beat(member, group, joined.member_id) == RebalanceInProgress.code


def test_not_allowed(group_node: Broker, member: RawClient, group: str) -> None:
    with allowing(group_node, "another"):
        assert beat(member, group, "anybody") == GroupAuthorizationFailed.code


def test_while_it_is_loading_everybody_lives(
    group_node: Broker, member: RawClient, group: str
) -> None:
    with loading(group_node, group):
        assert beat(member, group, "anybody") == 0
