"""Rules of access control (ACLs): the pattern of a resource, the entry, and filters of both.

    pattern    TOPIC, "orders", LITERAL: the topic `orders`
               TOPIC, "orders-", PREFIXED: the topics whose names begin so
               TOPIC, "*", LITERAL: all topics
    entry      "User:alice" from the host "*" may (ALLOW) or may not (DENY) READ it

Nothing here decides anything: see `acl_rules`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple, TypeVar

from barnabas.security.acl import Operation, Principal, ResourceType
from barnabas.security.acl_host import java_host

WILDCARD = "*"
"""The literal name that stands for all resources of a type, and the host that stands for all."""

WILDCARD_PRINCIPAL = "User:*"
"""The principal that stands for all."""

C = TypeVar("C", bound=IntEnum)


class PatternType(IntEnum):
    """How a pattern's name is read. ANY and MATCH are for filters."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class PermissionType(IntEnum):
    """Types of entries. ANY is for filters."""

    ANY = 1
    DENY = 2
    ALLOW = 3


class Pattern(NamedTuple):
    """The resources that a rule is about."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL

    def __str__(self) -> str:
        return f"{pascal_name(self.resource_type)}:{self.pattern_type.name}:{self.name}"


class AclEntry(NamedTuple):
    """Allows or denies a principal an operation; `principal` and `host` may be wildcards."""

    principal: str
    host: str
    operation: Operation
    permission: PermissionType


class AclBinding(NamedTuple):
    """One rule."""

    pattern: Pattern
    entry: AclEntry


class AclFilter(NamedTuple):
    """Rules of which each given part matches; None and ANY match all.

    The pattern type MATCH selects the patterns that are about the resource `name`: those with that
    name, the wildcard, and prefixes of the name.
    """

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: PermissionType = PermissionType.ANY

    def matches_pattern(self, pattern: Pattern) -> bool:
        """Return whether it matches rules of this pattern, whatever their entries are."""
        if self.resource_type not in (ResourceType.ANY, pattern.resource_type):
            return False
        # KIP-290: rules are selected by a resource, whose name has to be known; without one, all
        # are.
        if self.pattern_type is PatternType.MATCH:
            return self.name is None or _is_about(pattern, self.name)
        if self.pattern_type not in (PatternType.ANY, pattern.pattern_type):
            return False
        return self.name in (None, pattern.name)

    def matches_entry(self, entry: AclEntry) -> bool:
        """Return whether it matches rules with this entry, whatever their pattern is."""
        return (
            self.principal in (None, entry.principal)
            # Two texts may be one address.
            and (self.host in (None, entry.host) or java_host(self.host) == java_host(entry.host))
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (PermissionType.ANY, entry.permission)
        )

    def matches(self, binding: AclBinding) -> bool:
        """Return whether it matches this rule."""
        return self.matches_pattern(binding.pattern) and self.matches_entry(binding.entry)

    def named_patterns(self) -> tuple[Pattern, ...]:
        """The patterns that this filter names, whether there are rules of them or not; none if it
        leaves something open."""
        if (
            self.resource_type is ResourceType.ANY
            or self.name is None
            or self.pattern_type is PatternType.MATCH
        ):
            return ()
        types = (
            (PatternType.LITERAL, PatternType.PREFIXED)
            if self.pattern_type is PatternType.ANY
            else (self.pattern_type,)
        )
        return tuple(Pattern(self.resource_type, self.name, each) for each in types)


def _is_about(pattern: Pattern, name: str) -> bool:
    if pattern.pattern_type is PatternType.PREFIXED:
        return name.startswith(pattern.name)
    return pattern.name in (name, WILDCARD)


def by_pattern(bindings: Iterable[AclBinding]) -> dict[Pattern, list[AclEntry]]:
    """The entries of each pattern, both in the given order."""
    grouped: dict[Pattern, list[AclEntry]] = {}
    for pattern, entry in bindings:
        grouped.setdefault(pattern, []).append(entry)
    return grouped


def pascal_name(code: IntEnum) -> str:
    """`ClusterAction`, as Kafka writes it into its tree and its log."""
    return code.name.title().replace("_", "")


def parse_code(kind: type[C], text: str) -> C:
    """The member that `ClusterAction`, `CLUSTERACTION` or `CLUSTER_ACTION` names.

    Raises ValueError for anything else.
    """
    wanted = text.replace("_", "").upper()
    for code in kind:
        if code.name.replace("_", "") == wanted:
            return code
    names = ", ".join(map(pascal_name, kind))
    raise ValueError(f"{text!r} is not one of {names}")


def parse_principal(text: str) -> Principal:
    """`User:alice` as a principal; raises ValueError for what has no type."""
    kind, colon, name = text.partition(":")
    if not colon:
        raise ValueError(f"{text!r} is not a principal: write it as User:name")
    return Principal(kind, name)
