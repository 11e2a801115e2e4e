"""Brokers with an authorizer whose only client so far is the administrator, and simple rules."""

from __future__ import annotations

from barnabas.client import (
    AclBinding,
    AclEntry,
    Operation,
    Pattern,
    PermissionType,
    ResourceType,
)

AUTHORIZER = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
ADMIN = {**AUTHORIZER, "super.users": "User:ANONYMOUS"}


def rule(
    name: str, operation: Operation = Operation.READ, kind: ResourceType = ResourceType.TOPIC
) -> AclBinding:
    """That alice may do this."""
    return AclBinding(
        Pattern(kind, name), AclEntry("User:alice", "*", operation, PermissionType.ALLOW)
    )
