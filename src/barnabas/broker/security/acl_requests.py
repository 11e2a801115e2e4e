"""Builds ACLs and filters from the codes contained in requests.

A request that contains the code 0 (unknown) closes its connection, because Kafka cannot parse such
a request either. A filter that contains an undefined code is valid but matches nothing.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol, TypeVar

from barnabas.errors import CorruptData, InvalidRequest, UnknownServerError
from barnabas.protocol.messages.create_acls import AclCreation
from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType
from barnabas.security.acl_binding import (
    AclBinding,
    AclEntry,
    AclFilter,
    Pattern,
    PatternType,
    PermissionType,
)

C = TypeVar("C", bound=IntEnum)


class FilterMessage(Protocol):
    """A filter's fields, which are the same in DescribeAcls and DeleteAcls."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def filter_of(message: FilterMessage) -> AclFilter | None:
    """Return the filter, or None if it cannot match anything because it contains an undefined code.

    Raises CorruptData if a code is 0.
    """
    codes = (
        message.resource_type_filter,
        message.pattern_type_filter,
        message.operation,
        message.permission_type,
    )
    _check_codes(codes)
    resource_type = _member(ResourceType, codes[0])
    pattern_type = _member(PatternType, codes[1])
    operation = _member(Operation, codes[2])
    permission = _member(PermissionType, codes[3])
    if resource_type is None or pattern_type is None or operation is None or permission is None:
        return None
    return AclFilter(
        resource_type,
        message.resource_name_filter,
        pattern_type,
        message.principal_filter,
        message.host_filter,
        operation,
        permission,
    )


def check_creations(creations: list[AclCreation]) -> None:
    """Raise CorruptData if a code is 0, or UnknownServerError if a code is valid only in filters.
    As in Kafka, either error fails the whole request.
    """
    for each in creations:
        codes = (
            each.resource_type,
            each.resource_pattern_type,
            each.operation,
            each.permission_type,
        )
        _check_codes(codes)
        # In each of the four enumerations, code 1 is ANY.
        if 1 in codes or each.resource_pattern_type == PatternType.MATCH:
            raise UnknownServerError("ANY and MATCH are allowed in filters, not in ACLs")


def binding_of(creation: AclCreation) -> AclBinding:
    """Return the ACL to be created. Raises InvalidRequest if the ACL is invalid."""
    # The only cluster resource is `kafka-cluster`. An ACL for any other name would never apply.
    if creation.resource_type == ResourceType.CLUSTER and creation.resource_name != CLUSTER_NAME:
        raise InvalidRequest(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not creation.resource_name:
        raise InvalidRequest("Invalid empty resource name")
    resource_type = _member(ResourceType, creation.resource_type)
    pattern_type = _member(PatternType, creation.resource_pattern_type)
    operation = _member(Operation, creation.operation)
    permission = _member(PermissionType, creation.permission_type)
    if resource_type is None or pattern_type is None or operation is None or permission is None:
        raise InvalidRequest("Failed to create ACL: it contains an unknown code")
    return AclBinding(
        Pattern(resource_type, creation.resource_name, pattern_type),
        AclEntry(creation.principal, creation.host, operation, permission),
    )


def _check_codes(codes: tuple[int, ...]) -> None:
    if 0 in codes:
        raise CorruptData(f"an ACL request contains code 0 (UNKNOWN): {codes}")


def _member(kind: type[C], code: int) -> C | None:
    try:
        return kind(code)
    except ValueError:
        return None
