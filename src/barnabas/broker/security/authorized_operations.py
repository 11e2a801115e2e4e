"""Computes a bit field of the operations that a client is authorized to perform (KIP-430).

Bit n represents the ACL operation with the code n. Clients use the bit field only for display.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.security.acl import SUPPORTED_OPERATIONS, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.context import Context


def authorized_operations(context: Context, resource_type: ResourceType, name: str) -> int:
    """Return the operations that the client is authorized to perform, as a bit field."""
    return sum(
        1 << operation
        for operation in SUPPORTED_OPERATIONS[resource_type]
        if context.could(operation, resource_type, name)
    )
