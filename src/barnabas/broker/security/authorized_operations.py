"""Returns the operations that a client may do on a topic, a group or the cluster, as one number
(KIP-430).

Bit n stands for the ACL operation with code n. Clients display the number; it decides nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.security.acl import SUPPORTED_OPERATIONS, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.context import Context


def authorized_operations(context: Context, resource_type: ResourceType, name: str) -> int:
    """Return the bits of the operations that the client may do on this topic, group or cluster."""
    return sum(
        1 << operation
        for operation in SUPPORTED_OPERATIONS[resource_type]
        if context.could(operation, resource_type, name)
    )
