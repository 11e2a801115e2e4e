"""The operations that a client may do on a topic, a group or the cluster, as one number (KIP-430).

Bit n stands for the ACL operation of code n. Clients display it; nothing is decided by it.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from barnabas.security.acl import Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.context import Context

_POSSIBLE = MappingProxyType(
    {
        ResourceType.TOPIC: (
            Operation.READ,
            Operation.WRITE,
            Operation.CREATE,
            Operation.DELETE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        ),
        ResourceType.GROUP: (Operation.READ, Operation.DELETE, Operation.DESCRIBE),
        ResourceType.CLUSTER: (
            Operation.CREATE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.CLUSTER_ACTION,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
            Operation.IDEMPOTENT_WRITE,
        ),
    }
)


def authorized_operations(context: Context, resource_type: ResourceType, name: str) -> int:
    """The bits of the operations that the client may do on this topic, group or cluster."""
    return sum(
        1 << operation
        for operation in _POSSIBLE[resource_type]
        if context.could(operation, resource_type, name)
    )
