"""ListGroups on the wire: every version, its filters, and what one may see."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.errors import CoordinatorLoadInProgress
from barnabas.protocol.api import LIST_GROUPS
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.kit.broker.group_calls import allowing, leave, loading, settle
from tests.kit.raw_client import RawClient

LATEST = LIST_GROUPS.max_version


def ask(client: RawClient, version: int = LATEST, **filters: list[str]) -> ListGroupsResponse:
    answer: ListGroupsResponse = client.call(LIST_GROUPS, version, ListGroupsRequest(**filters))
    return answer


def names(client: RawClient, **filters: list[str]) -> set[str]:
    return {group.group_id for group in ask(client, **filters).groups}


@pytest.mark.parametrize("version", range(LATEST + 1))
def test_every_version(member: RawClient, group: str, version: int) -> None:
    settle(member, group)
    answer = ask(member, version)
    (found,) = [one for one in answer.groups if one.group_id == group]
    assert (answer.error_code, found.protocol_type) == (0, "consumer")
    assert found.group_state == ("Stable" if version >= 4 else "")
    assert found.group_type == ("classic" if version >= 5 else "")


def test_filters(member: RawClient, group: str) -> None:
    """KIP-518: states and types in whatever case; an unknown one matches nothing."""
    joined = settle(member, group)
    assert group in names(member, states_filter=["stable", "Empty"])
    assert group not in names(member, states_filter=["Empty"])
    leave(member, group, joined.member_id)
    assert group in names(member, states_filter=["EMPTY"], types_filter=["Classic"])
    assert names(member, types_filter=["consumer"]) == set()
    assert names(member, states_filter=["Lost"]) == set()


def test_who_may_see_what(group_node: Broker, member: RawClient, group: str) -> None:
    settle(member, group)
    settle(member, f"{group}-2")
    with allowing(group_node, group):
        assert names(member) == {group}
    with allowing(group_node, "kafka-cluster"):
        assert names(member) >= {group, f"{group}-2"}


def test_groups_that_are_being_loaded_are_an_error(
    group_node: Broker, member: RawClient, group: str
) -> None:
    settle(member, group)
    with loading(group_node, group):
        answer = ask(member)
    assert answer.error_code == CoordinatorLoadInProgress.code
    assert group not in {one.group_id for one in answer.groups}
