"""DeleteGroups on the wire: several groups of several shards, each with its own answer."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.errors import (
    CoordinatorLoadInProgress,
    GroupAuthorizationFailed,
    GroupIdNotFound,
    NonEmptyGroup,
)
from barnabas.protocol.api import DELETE_GROUPS
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from tests.kit.broker.group_calls import allowing, describe, leave, loading, settle
from tests.kit.broker.offsets import commit
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient

LATEST = DELETE_GROUPS.max_version


def delete(client: RawClient, *groups: str, version: int = LATEST) -> dict[str, int]:
    request = DeleteGroupsRequest(groups_names=list(groups))
    answer = client.call(DELETE_GROUPS, version, request)
    return {result.group_id: result.error_code for result in answer.results}


@pytest.mark.parametrize("version", range(LATEST + 1))
def test_each_group_has_its_answer(member: RawClient, group: str, version: int) -> None:
    live, empty, missing = (f"{group}-{kind}" for kind in ("live", "empty", "missing"))
    settle(member, live)
    leave(member, empty, settle(member, empty).member_id)
    codes = delete(member, live, empty, missing, empty, version=version)
    assert codes == {live: NonEmptyGroup.code, empty: 0, missing: GroupIdNotFound.code}
    assert describe(member, empty).group_state == "Dead"
    assert describe(member, live).group_state == "Stable"


def test_a_group_without_a_name_is_one(member: RawClient) -> None:
    """As in Kafka: by the oldest commits it may be there, so it can be deleted."""
    assert delete(member, "") == {"": GroupIdNotFound.code}
    topic = "of-the-nameless"
    create(member, topic)
    assert commit(member, "", {(topic, 0): 5}) == {(topic, 0): 0}
    assert delete(member, "") == {"": 0}
    assert delete(member, "") == {"": GroupIdNotFound.code}


def test_refusals(group_node: Broker, member: RawClient, group: str) -> None:
    with allowing(group_node, "another"):
        codes = delete(member, group, "another")
    assert codes == {group: GroupAuthorizationFailed.code, "another": GroupIdNotFound.code}
    with loading(group_node, group):
        assert delete(member, group) == {group: CoordinatorLoadInProgress.code}
    assert delete(member) == {}
