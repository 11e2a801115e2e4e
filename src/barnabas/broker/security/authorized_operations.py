"""Computes the operations that a client is authorized for, as a bit field (KIP-430).

Bit n is the ACL operation with code n. Clients only display the bit field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.security.acl import SUPPORTED_OPERATIONS, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.context import Context


def authorized_operations(context: Context, resource_type: ResourceType, name: str) -> int:
    """Return the operations for which the client is authorized, as a bit field."""
    return sum(
        1 << operation
        for operation in SUPPORTED_OPERATIONS[resource_type]
        if context.could(operation, resource_type, name)
    )
