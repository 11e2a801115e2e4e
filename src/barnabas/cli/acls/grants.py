"""Builds access control rules from command-line options. Pure.

--producer               WRITE, DESCRIBE and CREATE on topics;
                         WRITE and DESCRIBE on transactional ids
--producer --idempotent  the same, and IDEMPOTENT_WRITE on the cluster
--consumer               READ and DESCRIBE on topics; READ on groups
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.errors import BarnabasError
from barnabas.security.acl import CLUSTER_NAME, SUPPORTED_OPERATIONS, Operation, ResourceType
from barnabas.security.acl_binding import (
    AclBinding,
    AclEntry,
    AclFilter,
    Pattern,
    PatternType,
    PermissionType,
    pascal_name,
)

CLUSTER: Final = Pattern(ResourceType.CLUSTER, CLUSTER_NAME)

_AS_PRODUCER: Final = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
_AS_CONSUMER: Final = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}


class BadGrant(BarnabasError):
    """Raised if the options do not form a rule; the message gives the reason."""


class Deeds(NamedTuple):
    """Holds the actions to allow or deny, given as roles (producer, consumer) or as operations."""

    is_producer: bool = False
    is_consumer: bool = False
    is_idempotent: bool = False
    operations: tuple[Operation, ...] = ()

    @property
    def is_role(self) -> bool:
        return self.is_producer or self.is_consumer


class Clients(NamedTuple):
    """Holds the users and hosts to which rules apply."""

    principals: tuple[str, ...]
    hosts: tuple[str, ...]
    permission: PermissionType


def check_deeds(deeds: Deeds, patterns: Iterable[Pattern]) -> None:
    """Raise BadGrant if a role lacks a resource that it needs."""
    types = {each.resource_type for each in patterns}
    if deeds.is_role and deeds.operations:
        raise BadGrant("--producer and --consumer already imply operations: leave out --operation")
    if deeds.is_producer and ResourceType.TOPIC not in types:
        raise BadGrant("With --producer you must specify a --topic")
    if deeds.is_idempotent and not deeds.is_producer:
        raise BadGrant("The --idempotent option is only available if --producer is set")
    if deeds.is_consumer and not {ResourceType.TOPIC, ResourceType.GROUP} <= types:
        raise BadGrant("With --consumer you must specify a --topic and a --group")


def operations_by_pattern(
    deeds: Deeds, patterns: Iterable[Pattern]
) -> dict[Pattern, tuple[Operation, ...]]:
    """Map each resource to its operations, omitting resources that a role does not use.

    Raises BadGrant if an operation is not valid for a resource.
    """
    found: dict[Pattern, dict[Operation, None]] = {}
    given = tuple(patterns)
    roles = [
        role
        for role, is_wanted in (
            (_AS_PRODUCER, deeds.is_producer),
            (_AS_CONSUMER, deeds.is_consumer),
        )
        if is_wanted
    ]
    for pattern in given:
        if not deeds.is_role:
            _check_operations(pattern.resource_type, deeds.operations)
            found[pattern] = dict.fromkeys(deeds.operations)
        for role in roles:
            # A role gets no rules for resources that it does not use. For example, with both
            # --producer and --consumer, a group applies only to the consumer.
            operations = role.get(pattern.resource_type, ())
            if operations:
                found.setdefault(pattern, {}).update(dict.fromkeys(operations))
    # Since KIP-679, WRITE on any topic implies IDEMPOTENT_WRITE, but older brokers need the rule on
    # the cluster.
    if deeds.is_idempotent:
        found.setdefault(CLUSTER, {})[Operation.IDEMPOTENT_WRITE] = None
    return {pattern: tuple(operations) for pattern, operations in found.items()}


def entries(clients: Clients, operations: Iterable[Operation]) -> list[AclEntry]:
    """Return an entry for each combination of principal, operation and host."""
    return [
        AclEntry(principal, host, operation, clients.permission)
        for operation in operations
        for principal in clients.principals
        for host in clients.hosts
    ]


def bindings(clients: Clients, deeds: Deeds, patterns: Iterable[Pattern]) -> list[AclBinding]:
    """Return all rules that the options describe. Raises BadGrant."""
    return [
        AclBinding(pattern, entry)
        for pattern, operations in operations_by_pattern(deeds, patterns).items()
        for entry in entries(clients, operations)
    ]


def filter_of(rule: AclBinding) -> AclFilter:
    """Return the filter that selects only this rule."""
    pattern, entry = rule
    return AclFilter(
        *pattern,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission=entry.permission,
    )


def is_specific(pattern_type: PatternType) -> bool:
    """Return whether this pattern type is valid in a rule, and not only in a filter."""
    return pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)


def _check_operations(resource_type: ResourceType, operations: Iterable[Operation]) -> None:
    # ALL is valid for every resource type.
    valid = (*SUPPORTED_OPERATIONS[resource_type], Operation.ALL)
    for each in operations:
        if each not in valid:
            raise BadGrant(
                f"--operation {pascal_name(each)}: ResourceType {resource_type.name} only supports "
                f"operations {', '.join(map(pascal_name, valid))}"
            )
