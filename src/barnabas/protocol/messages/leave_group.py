"""LeaveGroup (key 13): members leave, or an administrator removes them by instance id.

Version 3 accepts several members and returns a result for each of them (KIP-345), version 4 is
flexible, and version 5 adds the reason (KIP-800).
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, STRING, Array

REMOVED_BY_ADMIN: Final = "member was removed by an admin"
"""The reason that Kafka's admin client sends. If the administrator gives a reason, it follows this
text.
"""


class MemberIdentity(Message):
    member_id: str = field(STRING, versions="3+")
    group_instance_id: str | None = field(STRING, versions="3+", nullable="3+", default=None)
    # KIP-800: written to the coordinator's log.
    reason: str | None = field(STRING, versions="5+", nullable="5+", ignorable=True, default=None)


class LeaveGroupRequest(Message, flexible="4+"):
    group_id: str = field(STRING)
    member_id: str = field(STRING, versions="0-2")
    # KIP-345: there can be several members, so that an administrator can remove static members.
    members: list[MemberIdentity] = field(Array(MemberIdentity), versions="3+")


class MemberResponse(Message):
    member_id: str = field(STRING, versions="3+")
    group_instance_id: str | None = field(STRING, versions="3+", nullable="3+")
    error_code: int = field(INT16, versions="3+")


class LeaveGroupResponse(Message, flexible="4+"):
    throttle_time_ms: int = field(INT32, versions="1+", ignorable=True)
    error_code: int = field(INT16)
    members: list[MemberResponse] = field(Array(MemberResponse), versions="3+")
