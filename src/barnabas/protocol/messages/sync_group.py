"""SyncGroup (key 14): the leader sends all assignments, and each member receives its own.

Version 3 introduced static members (KIP-345), and version 4 is flexible. Version 5 adds the
protocol, so that a mismatch with the member's protocol can be detected (KIP-559).
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BYTES, INT16, INT32, STRING, Array


class SyncGroupRequestAssignment(Message):
    member_id: str = field(STRING)
    assignment: bytes = field(BYTES)


class SyncGroupRequest(Message, flexible="4+"):
    group_id: str = field(STRING)
    generation_id: int = field(INT32)
    member_id: str = field(STRING)
    # KIP-345: the id of a static member.
    group_instance_id: str | None = field(STRING, versions="3+", nullable="3+", default=None)
    protocol_type: str | None = field(
        STRING, versions="5+", nullable="5+", ignorable=True, default=None
    )
    protocol_name: str | None = field(
        STRING, versions="5+", nullable="5+", ignorable=True, default=None
    )
    # Assignments are sent only by the leader of the group. All other members send an empty list.
    assignments: list[SyncGroupRequestAssignment] = field(Array(SyncGroupRequestAssignment))


class SyncGroupResponse(Message, flexible="4+"):
    throttle_time_ms: int = field(INT32, versions="1+", ignorable=True)
    error_code: int = field(INT16)
    protocol_type: str | None = field(
        STRING, versions="5+", nullable="5+", ignorable=True, default=None
    )
    protocol_name: str | None = field(
        STRING, versions="5+", nullable="5+", ignorable=True, default=None
    )
    assignment: bytes = field(BYTES)
