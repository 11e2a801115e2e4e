"""Describes the ACLs and the users, and explains why the ACLs allow or deny a request. Pure.

`barnabas acls explain` and the console share the functions that explain a decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from barnabas.cli.acls.text import explanation_lines
from barnabas.console.problem import WebProblem, reason_of
from barnabas.console.query import Paging, choice, text
from barnabas.console.shapes import AccessExplanation, AclRow, Security, UserRow
from barnabas.errors import ClusterAuthorizationFailed, SecurityDisabled
from barnabas.security.acl import CLUSTER_NAME, SUPPORTED_OPERATIONS, Operation, ResourceType
from barnabas.security.acl_binding import (
    WILDCARD,
    AclBinding,
    AclFilter,
    Pattern,
    PatternType,
    PermissionType,
    parse_code,
    pascal_name,
)
from barnabas.security.acl_explanation import Access, explain
from barnabas.security.acl_host import java_host, matches_no_client

SORTS: Final[Mapping[str, Callable[[AclRow], tuple[str, ...]]]] = {
    "principal": lambda row: (row["principal"], *_resource(row), row["host"]),
    "resource": lambda row: (*_resource(row), row["principal"], row["host"]),
}
_MOST_USERS: Final = 500
_OPERATIONS: Final = {
    pascal_name(kind): [pascal_name(each) for each in operations]
    for kind, operations in SUPPORTED_OPERATIONS.items()
}


def security_page(
    rules: Iterable[AclBinding], users: Mapping[str, Iterable[str]], wanted: Paging, error: str
) -> Security:
    """Return a page of the ACLs and the users whose names contain the search text."""

    def is_wanted(*names: str) -> bool:
        return any(wanted.search in name.casefold() for name in names)

    rows = [row for row in map(acl_row, rules) if is_wanted(row["principal"], row["resource"])]
    rows.sort(key=SORTS[wanted.sort], reverse=wanted.descending)
    known = [
        UserRow(name=name, mechanisms=sorted(mechanisms))
        for name, mechanisms in sorted(users.items())
        if is_wanted(name, f"User:{name}")
    ]
    return Security(
        error=error,
        acls=list(wanted.rows(rows)),
        page=wanted.page,
        matching=len(rows),
        users=known[:_MOST_USERS],
        users_matching=len(known),
        operations=_OPERATIONS,
    )


def access_of(query: Mapping[str, str]) -> Access:
    """Return the request to explain. Raises a `WebProblem`."""
    kind = parse_code(ResourceType, choice(query, "type", tuple(_OPERATIONS)))
    operation = choice(query, "operation", _OPERATIONS[pascal_name(kind)])
    principal = text(query, "principal")
    if not principal:
        raise WebProblem(400, "principal: name a user, such as alice or User:alice")
    name = CLUSTER_NAME if kind is ResourceType.CLUSTER else text(query, "name")
    if not name:
        raise WebProblem(400, f"name: name the {pascal_name(kind)}")
    host = text(query, "host").strip() or WILDCARD
    if matches_no_client(host):
        raise WebProblem(
            400, f"host={host[:60]}: give the address of one client, not a host name or a range"
        )
    return Access(
        principal if ":" in principal else f"User:{principal}",
        parse_code(Operation, operation),
        Pattern(kind, name),
        java_host(host),
    )


def rules_about(access: Access) -> AclFilter:
    """Return the filter that matches every ACL that could decide: literal, prefixed and
    '*' ACLs.
    """
    return AclFilter(access.resource.resource_type, access.resource.name, PatternType.MATCH)


def explanation(access: Access, rules: Iterable[AclBinding]) -> AccessExplanation:
    """Return whether these ACLs allow a request, and why."""
    found = explain(access, rules)
    return AccessExplanation(
        error="",
        allowed=found.is_allowed,
        lines=explanation_lines(access, found),
        rule=None if found.rule is None else acl_row(found.rule),
    )


def no_explanation(error: Exception) -> AccessExplanation:
    """Return the answer for ACLs that cannot be read."""
    return AccessExplanation(error=why_hidden(error), allowed=None, lines=[], rule=None)


def why_hidden(error: Exception) -> str:
    """Return why the ACLs or the users cannot be shown."""
    if isinstance(error, ClusterAuthorizationFailed):
        return "the console's user lacks the permission Describe on the cluster"
    if isinstance(error, SecurityDisabled):
        return (
            "the brokers have no authorizer and therefore no rules: whoever can connect may do "
            "everything"
        )
    return reason_of(error)


def acl_row(rule: AclBinding) -> AclRow:
    """Return the description of an ACL in Kafka's terms."""
    pattern, entry = rule
    return AclRow(
        principal=entry.principal,
        permission="deny" if entry.permission is PermissionType.DENY else "allow",
        operation=pascal_name(entry.operation),
        resource_type=pascal_name(pattern.resource_type),
        pattern_type=pascal_name(pattern.pattern_type),
        resource=pattern.name,
        host=entry.host,
    )


def _resource(row: AclRow) -> tuple[str, str, str]:
    return row["resource_type"], row["resource"], row["pattern_type"]
