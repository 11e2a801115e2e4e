"""FindCoordinator (key 10): returns the coordinator of a group or a transactional id.

Version 1 distinguishes groups from transactional ids, version 3 is flexible, version 4 accepts
several keys (KIP-699), and version 6 has the same format as version 4 and supports share groups
(KIP-932).
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT8, INT16, INT32, STRING, Array


class FindCoordinatorRequest(Message, flexible="3+"):
    key: str = field(STRING, versions="0-3")
    # KIP-98: 0 is a group, and 1 is a transactional id.
    key_type: int = field(INT8, versions="1+")
    # KIP-699: a request can contain several keys.
    coordinator_keys: list[str] = field(Array(STRING), versions="4+")


class Coordinator(Message):
    key: str = field(STRING, versions="4+")
    node_id: int = field(INT32, versions="4+")
    host: str = field(STRING, versions="4+")
    port: int = field(INT32, versions="4+")
    error_code: int = field(INT16, versions="4+")
    error_message: str | None = field(STRING, versions="4+", nullable="4+", ignorable=True)


class FindCoordinatorResponse(Message, flexible="3+"):
    throttle_time_ms: int = field(INT32, versions="1+", ignorable=True)
    error_code: int = field(INT16, versions="0-3")
    error_message: str | None = field(STRING, versions="1-3", nullable="1-3", ignorable=True)
    node_id: int = field(INT32, versions="0-3")
    host: str = field(STRING, versions="0-3")
    port: int = field(INT32, versions="0-3")
    coordinators: list[Coordinator] = field(Array(Coordinator), versions="4+")
