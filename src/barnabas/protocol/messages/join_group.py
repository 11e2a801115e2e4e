"""JoinGroup (key 11): a member joins a rebalance.

The response contains the result of the rebalance.

Version 1 introduced a separate rebalance timeout (KIP-62), version 4 an initial rejection that
assigns a member id (KIP-394), and version 5 static members (KIP-345). Version 6 is flexible,
version 7 adds the protocol type (KIP-559), version 8 adds the reason for joining (KIP-800), and
version 9 lets the leader skip the assignment (KIP-814).
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, BYTES, INT16, INT32, STRING, Array


class JoinGroupRequestProtocol(Message):
    name: str = field(STRING)
    metadata: bytes = field(BYTES)


class JoinGroupRequest(Message, flexible="6+"):
    group_id: str = field(STRING)
    session_timeout_ms: int = field(INT32)
    # KIP-62: how long members have to rejoin. Earlier versions use the session timeout.
    rebalance_timeout_ms: int = field(INT32, versions="1+", ignorable=True, default=-1)
    member_id: str = field(STRING)
    # KIP-345: the id of a static member, which stays the same when the member restarts.
    group_instance_id: str | None = field(STRING, versions="5+", nullable="5+", default=None)
    protocol_type: str = field(STRING)
    protocols: list[JoinGroupRequestProtocol] = field(Array(JoinGroupRequestProtocol))
    # KIP-800: written to the coordinator's log.
    reason: str | None = field(STRING, versions="8+", nullable="8+", ignorable=True, default=None)


class JoinGroupResponseMember(Message):
    member_id: str = field(STRING)
    group_instance_id: str | None = field(
        STRING, versions="5+", nullable="5+", ignorable=True, default=None
    )
    metadata: bytes = field(BYTES)


class JoinGroupResponse(Message, flexible="6+"):
    throttle_time_ms: int = field(INT32, versions="2+", ignorable=True)
    error_code: int = field(INT16)
    generation_id: int = field(INT32, default=-1)
    # KIP-559: clients compare the protocol type of the group with their own.
    protocol_type: str | None = field(
        STRING, versions="7+", nullable="7+", ignorable=True, default=None
    )
    protocol_name: str | None = field(STRING, nullable="7+")
    leader: str = field(STRING)
    # KIP-814: when a static leader returns, it keeps the existing assignment.
    skip_assignment: bool = field(BOOLEAN, versions="9+")
    member_id: str = field(STRING)
    members: list[JoinGroupResponseMember] = field(Array(JoinGroupResponseMember))
