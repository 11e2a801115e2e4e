"""DeleteGroups (key 42): deletes groups that have no members, including their offsets (KIP-229).

Version 2 is flexible.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, STRING, Array


class DeleteGroupsRequest(Message, flexible="2+"):
    # Kafka uses this name.
    groups_names: list[str] = field(Array(STRING))


class DeletableGroupResult(Message):
    group_id: str = field(STRING)
    error_code: int = field(INT16)


class DeleteGroupsResponse(Message, flexible="2+"):
    throttle_time_ms: int = field(INT32)
    results: list[DeletableGroupResult] = field(Array(DeletableGroupResult))
