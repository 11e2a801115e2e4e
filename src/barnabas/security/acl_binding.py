"""Defines access control rules (ACLs): resource patterns, entries, and filters for both.

    pattern    TOPIC, "orders", LITERAL: the topic `orders`
               TOPIC, "orders-", PREFIXED: the topics whose names start with `orders-`
               TOPIC, "*", LITERAL: all topics
    entry      "User:alice" from the host "*" may (ALLOW) or may not (DENY) READ it

This module does not decide anything; `acl_rules` does.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple, TypeVar

from barnabas.security.acl import Operation, Principal, ResourceType
from barnabas.security.acl_host import java_host

WILDCARD = "*"
"""The literal name that matches all resources of a type, and the host that matches all hosts."""

WILDCARD_PRINCIPAL = "User:*"
"""Matches all principals."""

C = TypeVar("C", bound=IntEnum)


class PatternType(IntEnum):
    """Lists the ways to match a pattern's name. ANY and MATCH are used only in filters."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class PermissionType(IntEnum):
    """Lists the types of entries. ANY is used only in filters."""

    ANY = 1
    DENY = 2
    ALLOW = 3


class Pattern(NamedTuple):
    """Describes the resources to which a rule applies."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL

    def __str__(self) -> str:
        return f"{pascal_name(self.resource_type)}:{self.pattern_type.name}:{self.name}"


class AclEntry(NamedTuple):
    """Allows or denies an operation to a principal. `principal` and `host` may be wildcards."""

    principal: str
    host: str
    operation: Operation
    permission: PermissionType


class AclBinding(NamedTuple):
    """A rule, which consists of a pattern and an entry."""

    pattern: Pattern
    entry: AclEntry


class AclFilter(NamedTuple):
    """Selects rules by their parts. A part that is None or ANY matches everything.

    The pattern type MATCH selects all patterns that cover the resource called `name`: the pattern
    with exactly that name, the wildcard, and all prefixes of the name.
    """

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: PermissionType = PermissionType.ANY

    def matches_pattern(self, pattern: Pattern) -> bool:
        """Return whether the filter matches rules with this pattern, whatever their entries are."""
        if self.resource_type not in (ResourceType.ANY, pattern.resource_type):
            return False
        # KIP-290: MATCH selects the rules that cover the named resource. If there is no name, all
        # rules match.
        if self.pattern_type is PatternType.MATCH:
            return self.name is None or _is_about(pattern, self.name)
        if self.pattern_type not in (PatternType.ANY, pattern.pattern_type):
            return False
        return self.name in (None, pattern.name)

    def matches_entry(self, entry: AclEntry) -> bool:
        """Return whether the filter matches rules with this entry, whatever their patterns are."""
        return (
            self.principal in (None, entry.principal)
            # The same address can be written in several ways.
            and (self.host in (None, entry.host) or java_host(self.host) == java_host(entry.host))
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (PermissionType.ANY, entry.permission)
        )

    def matches(self, binding: AclBinding) -> bool:
        """Return whether the filter matches this rule."""
        return self.matches_pattern(binding.pattern) and self.matches_entry(binding.entry)

    def named_patterns(self) -> tuple[Pattern, ...]:
        """The patterns that this filter names exactly, whether or not they have rules.

        It is empty if the filter leaves a part open.
        """
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
    """Group the entries by pattern, without changing the order of the patterns or entries."""
    grouped: dict[Pattern, list[AclEntry]] = {}
    for pattern, entry in bindings:
        grouped.setdefault(pattern, []).append(entry)
    return grouped


def pascal_name(code: IntEnum) -> str:
    """Return the name as Kafka writes it to its tree and its log, such as `ClusterAction`."""
    return code.name.title().replace("_", "")


def parse_code(kind: type[C], text: str) -> C:
    """Return the member named `ClusterAction`, `CLUSTERACTION` or `CLUSTER_ACTION`, for example.

    Raises ValueError if there is no such member.
    """
    wanted = text.replace("_", "").upper()
    for code in kind:
        if code.name.replace("_", "") == wanted:
            return code
    names = ", ".join(map(pascal_name, kind))
    raise ValueError(f"{text!r} is not one of {names}")


def parse_principal(text: str) -> Principal:
    """Parse a principal such as `User:alice`.

    Raises ValueError if the text does not contain a type.
    """
    kind, colon, name = text.partition(":")
    if not colon:
        raise ValueError(f"{text!r} is not a principal: write it as User:name")
    return Principal(kind, name)
