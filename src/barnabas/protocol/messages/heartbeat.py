"""Heartbeat (key 12): extends a member's session, and tells the member about a rebalance.

Version 3 introduced static members (KIP-345), and version 4 is flexible.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, STRING


class HeartbeatRequest(Message, flexible="4+"):
    group_id: str = field(STRING)
    generation_id: int = field(INT32)
    member_id: str = field(STRING)
    # KIP-345: if a static member has been replaced, it is fenced at its next heartbeat.
    group_instance_id: str | None = field(STRING, versions="3+", nullable="3+", default=None)


class HeartbeatResponse(Message, flexible="4+"):
    throttle_time_ms: int = field(INT32, versions="1+", ignorable=True)
    error_code: int = field(INT16)
