"""DescribeGroups (key 15): returns the state, members and assignments of groups.

Version 3 adds the authorized operations (KIP-430), version 4 adds static members (KIP-345), and
version 5 is flexible. Barnabas extends version 5: if a request contains the tagged field 10000, the
response contains the group's latest rebalances in another tagged field. Other clients do not
receive them, and other brokers skip the field in the request (KIP-482). Tags from 10000 up do not
collide with Kafka's tags, which start at 0.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, BYTES, INT16, INT32, INT64, STRING, Array

EVENTS_TAG: Final = 10000
EVENTS_FROM: Final = 5
"""The first version with tagged fields, which are needed for events."""


class DescribeGroupsRequest(Message, flexible="5+"):
    groups: list[str] = field(Array(STRING))
    # KIP-430: whether to return the operations that the client may perform on each group.
    include_authorized_operations: bool = field(BOOLEAN, versions="3+")
    include_events: bool = field(BOOLEAN, versions="5+", tag=EVENTS_TAG, ignorable=True)


class DescribedGroupMember(Message):
    member_id: str = field(STRING)
    # KIP-345: the name of a static member.
    group_instance_id: str | None = field(
        STRING, versions="4+", nullable="4+", ignorable=True, default=None
    )
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    member_metadata: bytes = field(BYTES)
    member_assignment: bytes = field(BYTES)


class RebalanceEvent(Message):
    """A rebalance that has ended.

    Times are in milliseconds. The end is the time since the Unix epoch.
    """

    ended_at_ms: int = field(INT64, versions="5+", default=-1)
    duration_ms: int = field(INT64, versions="5+")
    generation_id: int = field(INT32, versions="5+", default=-1)
    member_count: int = field(INT32, versions="5+")
    moved_partitions: int = field(INT32, versions="5+", default=-1)
    """The number of partitions that moved to another member, or -1 if it is unknown."""
    is_harmless: bool = field(BOOLEAN, versions="5+")
    story: str = field(STRING, versions="5+")
    """The line in the coordinator's log for this rebalance."""


class DescribedGroup(Message):
    error_code: int = field(INT16)
    group_id: str = field(STRING)
    group_state: str = field(STRING)
    protocol_type: str = field(STRING)
    protocol_data: str = field(STRING)
    members: list[DescribedGroupMember] = field(Array(DescribedGroupMember))
    authorized_operations: int = field(INT32, versions="3+", default=-0x80000000, ignorable=True)
    events: list[RebalanceEvent] = field(
        Array(RebalanceEvent), versions="5+", tag=EVENTS_TAG, ignorable=True
    )


class DescribeGroupsResponse(Message, flexible="5+"):
    throttle_time_ms: int = field(INT32, versions="1+", ignorable=True)
    groups: list[DescribedGroup] = field(Array(DescribedGroup))
