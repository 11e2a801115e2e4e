"""Explains why a request is allowed or denied by rules that were read from a cluster. Pure.

`AclRules` makes the decision; members of `super.users` are not in the rules.
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
    """An operation that a client wants to do."""

    principal: str  # User:alice
    operation: Operation
    resource: Pattern  # LITERAL
    host: str = WILDCARD  # its address; the wildcard stands for an address that no rule names


class Explanation(NamedTuple):
    """A decision and the reason for it."""

    is_allowed: bool | None
    """None: no rule covers the resource, so `allow.everyone.if.no.acl.found` decides."""
    rule: AclBinding | None
    """The rule that decides; None if the decision is due to no rule matching."""
    about: tuple[AclBinding, ...]
    """All rules that cover the resource."""


def explain(access: Access, rules: Iterable[AclBinding]) -> Explanation:
    """Decide by the rules, and name the first rule that decides: a DENY before any ALLOW."""
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
