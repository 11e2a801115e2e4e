"""Explains why a request is allowed or denied by the rules of a cluster. This module is pure.

The decision itself is made by `AclRules`. The users in `super.users` are not part of the rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.security.acl import Operation
from barnabas.security.acl_binding import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclFilter,
    Pattern,
    PatternType,
    PermissionType,
)
from barnabas.security.acl_host import java_host
from barnabas.security.acl_rules import allowing


class Access(NamedTuple):
    """Describes an operation that a client wants to perform."""

    principal: str  # User:alice
    operation: Operation
    resource: Pattern  # LITERAL
    host: str = WILDCARD  # its address; the wildcard: an address that is not in any rule


class Explanation(NamedTuple):
    """A decision, with the reason for it."""

    is_allowed: bool | None
    """None if no rule covers the resource, so that `allow.everyone.if.no.acl.found` decides."""
    rule: AclBinding | None
    """The rule that decided, or None if no rule matches."""
    about: tuple[AclBinding, ...]
    """All rules that cover the resource."""


def explain(access: Access, rules: Iterable[AclBinding]) -> Explanation:
    """Apply the rules, and return the first rule that decides.

    A DENY takes precedence over any ALLOW."""
    resource, host = access.resource, java_host(access.host)
    wanted = AclFilter(resource.resource_type, resource.name, PatternType.MATCH)
    about = tuple(sorted(each for each in rules if wanted.matches(each)))
    if not about:
        return Explanation(None, None, ())
    granting = {
        PermissionType.DENY: (access.operation, Operation.ALL),
        PermissionType.ALLOW: allowing(access.operation),
    }
    for permission, operations in granting.items():
        for each in about:
            entry = each.entry
            if (
                entry.permission is permission
                and entry.operation in operations
                and entry.principal in (access.principal, WILDCARD_PRINCIPAL)
                and (entry.host == WILDCARD or java_host(entry.host) == host)
            ):
                return Explanation(permission is PermissionType.ALLOW, each, about)
    return Explanation(False, None, about)
