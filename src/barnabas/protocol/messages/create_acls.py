"""CreateAcls (key 30): adds access control rules (KIP-140).

Version 1 adds pattern types (KIP-290), version 2 is flexible, and version 3 supports rules about
users (KIP-373).
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT8, INT16, INT32, STRING, Array


class AclCreation(Message):
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    # KIP-290: the pattern type is either literal or prefixed.
    resource_pattern_type: int = field(INT8, versions="1+", default=3)
    principal: str = field(STRING)
    host: str = field(STRING)
    operation: int = field(INT8)
    permission_type: int = field(INT8)


class CreateAclsRequest(Message, flexible="2+"):
    creations: list[AclCreation] = field(Array(AclCreation))


class AclCreationResult(Message):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")


class CreateAclsResponse(Message, flexible="2+"):
    throttle_time_ms: int = field(INT32)
    results: list[AclCreationResult] = field(Array(AclCreationResult))
