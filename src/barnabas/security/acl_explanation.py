"""Which rule decides about an operation, and why: for people, from the rules alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.security.acl import Operation, ResourceType
from barnabas.security.acl_binding import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclEntry,
    AclFilter,
    PatternType,
    PermissionType,
    pascal_name,
)
from barnabas.security.acl_rules import IMPLIED_BY


class Question(NamedTuple):
    """Who wants to do what."""

    principal: str
    host: str
    operation: Operation
    resource_type: ResourceType
    name: str

    def __str__(self) -> str:
        what = f"{pascal_name(self.resource_type).lower()} {self.name}"
        return f"{self.principal} from {self.host}: {pascal_name(self.operation)} on {what}"


class Explanation(NamedTuple):
    """The decision, the rules that make it, and the reason in words."""

    is_allowed: bool
    rules: tuple[AclBinding, ...]
    reason: str


def explained(question: Question, rules: Iterable[AclBinding]) -> Explanation:
    """The decision of a broker with these rules, which has no super users and does not allow what
    has no rules: it cannot be seen from outside whether it does."""
    about = AclFilter(question.resource_type, question.name, PatternType.MATCH)
    ours = sorted(rule for rule in rules if about.matches_pattern(rule.pattern))
    if not ours:
        return Explanation(False, (), "no rule is about this resource")
    denying = _matching(ours, question, PermissionType.DENY, (question.operation, Operation.ALL))
    if denying:
        return Explanation(False, denying, "a rule that denies comes before all that allow")
    operations = (question.operation, Operation.ALL, *IMPLIED_BY.get(question.operation, ()))
    allowing = _matching(ours, question, PermissionType.ALLOW, operations)
    if not allowing:
        return Explanation(False, (), "rules are about this resource, and none allows this")
    if any(each.entry.operation in (question.operation, Operation.ALL) for each in allowing):
        return Explanation(True, allowing, "a rule allows it, and none denies it")
    implied = pascal_name(allowing[0].entry.operation)
    return Explanation(True, allowing, f"who may {implied} may {pascal_name(question.operation)}")


def shown(rule: AclBinding) -> str:
    """A rule in one line."""
    (resource_type, name, pattern_type), (principal, host, operation, permission) = rule
    verb = "may" if permission is PermissionType.ALLOW else "may not"
    names = "all" if name == WILDCARD else name
    begin = " those that begin with" if pattern_type is PatternType.PREFIXED else ""
    where = "" if host == WILDCARD else f" from {host}"
    kind = pascal_name(resource_type).lower()
    return f"{principal}{where} {verb} {pascal_name(operation)}: {kind}{begin} {names}"


def _matching(
    rules: Iterable[AclBinding],
    question: Question,
    permission: PermissionType,
    operations: Iterable[Operation],
) -> tuple[AclBinding, ...]:
    wanted = frozenset(operations)
    return tuple(rule for rule in rules if _is_of(rule.entry, question, permission, wanted))


def _is_of(
    entry: AclEntry, question: Question, permission: PermissionType, wanted: frozenset[Operation]
) -> bool:
    return (
        entry.permission is permission
        and entry.operation in wanted
        and entry.principal in (question.principal, WILDCARD_PRINCIPAL)
        and entry.host in (question.host, WILDCARD)
    )
