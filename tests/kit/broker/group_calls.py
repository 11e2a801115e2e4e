"""What a member of a group says, as raw requests, and what tools ask: for these APIs' tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from barnabas import Broker
from barnabas.broker.node import Node
from barnabas.broker.security.authorization import Needs
from barnabas.errors import MemberIdRequired
from barnabas.protocol.api import (
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    JOIN_GROUP,
    LEAVE_GROUP,
    SYNC_GROUP,
)
from barnabas.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from barnabas.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas.security.acl import Principal
from tests.kit.broker.authorizers import authorized_by
from tests.kit.raw_client import RawClient, once_found

# Few partitions of the offsets topic, too: each is a directory of files to make and to remove.
AT_ONCE = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5"}


def find_coordinator(client: RawClient) -> None:
    """The offsets topic is made when somebody looks for a coordinator."""
    request = FindCoordinatorRequest(key="any")
    answer = once_found(lambda: client.call(FIND_COORDINATOR, 3, request))
    assert answer.error_code == 0, answer


def join_request(group_id: str, version: int, **fields: object) -> JoinGroupRequest:
    values: dict[str, object] = {
        "group_id": group_id,
        "session_timeout_ms": 60_000,
        "rebalance_timeout_ms": 60_000 if version >= 1 else -1,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0")],
    }
    return JoinGroupRequest(**{**values, **fields})  # type: ignore[arg-type]


def join(client: RawClient, group_id: str, version: int = 9, **fields: object) -> JoinGroupResponse:
    """A JoinGroup; sent again with the assigned member id if the answer demands one."""
    request = join_request(group_id, version, **fields)
    answer: JoinGroupResponse = client.call(JOIN_GROUP, version, request)
    if answer.error_code == MemberIdRequired.code:
        request.member_id = answer.member_id
        answer = client.call(JOIN_GROUP, version, request)
    return answer


def sync(
    client: RawClient,
    group_id: str,
    joined: JoinGroupResponse,
    assigned: dict[str, bytes] | None = None,
    version: int = 5,
    **fields: object,
) -> SyncGroupResponse:
    values: dict[str, object] = {
        "group_id": group_id,
        "generation_id": joined.generation_id,
        "member_id": joined.member_id,
        "protocol_type": "consumer" if version >= 5 else None,
        "protocol_name": "range" if version >= 5 else None,
        "assignments": [
            SyncGroupRequestAssignment(member_id=member_id, assignment=data)
            for member_id, data in (assigned or {}).items()
        ],
    }
    request = SyncGroupRequest(**{**values, **fields})  # type: ignore[arg-type]
    answer: SyncGroupResponse = client.call(SYNC_GROUP, version, request)
    return answer


def settle(client: RawClient, group_id: str) -> JoinGroupResponse:
    """A stable group of one member."""
    joined = join(client, group_id)
    assert joined.error_code == 0, joined
    answer = sync(client, group_id, joined, {joined.member_id: b"all"})
    assert (answer.error_code, answer.assignment) == (0, b"all")
    return joined


def join_as_well(other: RawClient, client: RawClient, group_id: str) -> None:
    """A second connection asks to join, in version 3; returns when the group knows of it."""
    other.send(JOIN_GROUP, 3, join_request(group_id, 3))
    while describe(client, group_id).group_state == "Stable":
        pass  # it is on its way; the module's timeout bounds this


def leave(client: RawClient, group_id: str, *member_ids: str) -> LeaveGroupResponse:
    leaving = [MemberIdentity(member_id=member_id) for member_id in member_ids]
    request = LeaveGroupRequest(group_id=group_id, members=leaving)
    answer: LeaveGroupResponse = client.call(LEAVE_GROUP, 5, request)
    return answer


def describe(client: RawClient, *groups: str, version: int = 5, **fields: bool) -> DescribedGroup:
    """The first one described; for what is in common, all are asked for at once."""
    request = DescribeGroupsRequest(groups=list(groups), **fields)
    found: Sequence[DescribedGroup] = client.call(DESCRIBE_GROUPS, version, request).groups
    assert [one.group_id for one in found] == list(groups)
    return found[0]


def node_of(broker: Broker) -> Node:
    server = broker.server
    assert server is not None
    return server.node


class AllowGroups:
    """An authorizer that knows some groups, and nothing else."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def allows(
        self, principal: Principal, client_address: str, needs: Needs, resource_name: str
    ) -> bool:
        return resource_name in self.names


@contextmanager
def allowing(_broker: Broker, *names: str) -> Iterator[None]:
    with authorized_by(AllowGroups(*names)):
        yield


@contextmanager
def loading(broker: Broker, group_id: str) -> Iterator[None]:
    """The group's shard is being loaded, which here takes as long as the test wants."""
    groups = node_of(broker).groups
    shard = groups.shard_of(group_id)
    del groups._loaded[shard.partition]
    groups._loading.append(shard.replica)
    try:
        yield
    finally:
        groups._loading.remove(shard.replica)
        groups._loaded[shard.partition] = shard
