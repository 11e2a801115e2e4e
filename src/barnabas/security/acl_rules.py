"""Defines AclRules, which holds a cluster's rules and decides like Kafka's AclAuthorizer.

    super user                      allowed
    no rule covers the resource     allow.everyone.if.no.acl.found decides
    a DENY that matches             denied
    an ALLOW that matches           allowed; READ, WRITE, DELETE and ALTER imply DESCRIBE,
                                    and ALTER_CONFIGS implies DESCRIBE_CONFIGS
    otherwise                       denied

For each resource, the operations are stored as bit masks by principal and host, so the time for a
decision does not depend on the number of rules.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain, product
from typing import Generic, NamedTuple, TypeVar

from barnabas.security.acl import Operation, ResourceType
from barnabas.security.acl_binding import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclEntry,
    AclFilter,
    Pattern,
    PatternType,
    PermissionType,
)
from barnabas.security.acl_host import java_host

_NO_ENTRIES: frozenset[AclEntry] = frozenset()
_ALL_BIT = 1 << Operation.ALL

IMPLIED_BY = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}


def allowing(operation: Operation) -> tuple[Operation, ...]:
    """Return the operations that imply this one if they are allowed."""
    return (operation, Operation.ALL, *IMPLIED_BY.get(operation, ()))


# `allowing(ALL)` contains ALL twice. The set removes the duplicate, because if the bit of ALL were
# added twice, the sum would be the bit of READ.
_ALLOWING = {each: sum(1 << other for other in {*allowing(each)}) for each in Operation}

_Masks = dict[tuple[str, str], tuple[int, int]]
"""Maps a principal and a host (`java_host`) to the operations that are allowed and denied."""

_Kind = tuple[ResourceType, PatternType, PermissionType, str, str, Operation]
"""The parts of a rule, except for the name of the resource."""


V = TypeVar("V")


class _Prefixes(Generic[V]):
    """Maps strings to values, and finds all keys that are a prefix of a given string.

        "a" <- "ab" <- "abc"      a key's parent is the longest other key that is a prefix of it
             \\ "ad"

    The longest key that is a prefix of a name is either the predecessor of the name in sorted order
    or an ancestor of that predecessor. All other keys that are prefixes are ancestors of the
    longest one. A search therefore takes one bisection and one step per ancestor. After a change,
    the next search sorts the keys again.
    """

    __slots__ = ("_keys", "_parents", "_values")

    def __init__(self) -> None:
        self._values: dict[str, V] = {}
        self._keys: list[str] | None = None
        self._parents: list[int] = []

    def get(self, prefix: str) -> V:
        """Return the value of a prefix. Raises KeyError if the prefix is not there."""
        return self._values[prefix]

    def put(self, prefix: str, value: V) -> None:
        if prefix not in self._values:
            self._keys = None
        self._values[prefix] = value

    def remove(self, prefix: str) -> None:
        """Remove the prefix, if present."""
        if self._values.pop(prefix, None) is not None:
            self._keys = None

    def of(self, name: str) -> list[V]:
        """Return the values of all keys that are prefixes of `name`, the longest key first."""
        values = self._values
        return [values[key] for key in self.keys_of(name)] if values else []

    def keys_of(self, name: str) -> list[str]:
        """Return all keys that are prefixes of `name`, the longest first."""
        keys = self._keys or self._sort()
        parents = self._parents
        at = bisect_right(keys, name) - 1
        while at >= 0 and not name.startswith(keys[at]):
            at = parents[at]
        found = []
        while at >= 0:
            found.append(keys[at])
            at = parents[at]
        return found

    def _sort(self) -> list[str]:
        keys = self._keys = sorted(self._values)
        parents = self._parents = []
        ancestors: list[int] = []
        for at, key in enumerate(keys):
            while ancestors and not key.startswith(keys[ancestors[-1]]):
                ancestors.pop()
            parents.append(ancestors[-1] if ancestors else -1)
            ancestors.append(at)
        return keys


class Denial(NamedTuple):
    """Describes why an operation is denied."""

    rule: AclBinding | None
    """The DENY rule that decided, or None if the operation was denied because no rule allows it."""
    about: int = 0
    """The number of rules that cover this resource."""


class AclRules:
    """Holds all rules of a cluster, and makes decisions based on them."""

    __slots__ = ("_entries", "_literal", "_names", "_prefixed", "allows_unruled", "super_users")

    def __init__(self, super_users: Iterable[str] = (), *, allows_unruled: bool = False) -> None:
        """`super_users` are principals, such as `User:alice`, who are allowed to do everything.

        If `allows_unruled` is set, all clients can access resources that have no rules.
        """
        self.super_users = frozenset(super_users)
        self.allows_unruled = allows_unruled
        self._entries: dict[Pattern, frozenset[AclEntry]] = {}
        self._literal: dict[tuple[ResourceType, str], _Masks] = {}
        self._prefixed: dict[ResourceType, _Prefixes[_Masks]] = {
            each: _Prefixes() for each in ResourceType
        }
        self._names: dict[_Kind, set[str]] = {}

    @classmethod
    def of(cls, bindings: Iterable[AclBinding], super_users: Iterable[str] = ()) -> AclRules:
        """Create an instance that contains exactly these rules."""
        rules = cls(super_users)
        for pattern, entry in bindings:
            rules.replace(pattern, rules.entries_of(pattern) | {entry})
        return rules

    # --- changing and listing rules ---

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    def patterns(self) -> Iterable[Pattern]:
        """Return all patterns that have rules."""
        return self._entries.keys()

    def entries_of(self, pattern: Pattern) -> frozenset[AclEntry]:
        return self._entries.get(pattern, _NO_ENTRIES)

    def bindings(self, wanted: AclFilter) -> Iterator[AclBinding]:
        """Yield the rules that match a filter."""
        for pattern, entries in self._entries.items():
            if wanted.matches_pattern(pattern):
                for entry in entries:
                    if wanted.matches_entry(entry):
                        yield AclBinding(pattern, entry)

    def about(self, resource_type: ResourceType, name: str) -> list[Pattern]:
        """Return patterns with rules that cover this resource: prefixes of its name, the wildcard,
        and the name itself.
        """
        wanted = AclFilter(resource_type, name, PatternType.MATCH)
        found = [pattern for pattern in self._entries if wanted.matches_pattern(pattern)]
        return sorted(found, key=lambda each: (-each.pattern_type, each.name == name, each.name))

    def replace(self, pattern: Pattern, entries: Iterable[AclEntry]) -> None:
        """Replace all rules of the pattern. An empty list removes the pattern."""
        after = frozenset(entries)
        # Compare kinds instead of entries, because two entries may differ only in how the host is
        # written.
        before_kinds = {_kind(pattern, entry) for entry in self.entries_of(pattern)}
        after_kinds = {_kind(pattern, entry) for entry in after}
        # With `_names`, `allows_somewhere` does not have to examine all patterns.
        for kind in before_kinds - after_kinds:
            names = self._names[kind]
            names.discard(pattern.name)
            if not names:
                del self._names[kind]
        for kind in after_kinds - before_kinds:
            self._names.setdefault(kind, set()).add(pattern.name)
        resource_type, name, pattern_type = pattern
        if after:
            self._entries[pattern] = after
        else:
            self._entries.pop(pattern, None)
        if pattern_type is PatternType.LITERAL:
            if after:
                self._literal[resource_type, name] = _masks(after)
            else:
                self._literal.pop((resource_type, name), None)
        elif after:
            self._prefixed[resource_type].put(name, _masks(after))
        else:
            self._prefixed[resource_type].remove(name)

    # --- decisions ---

    def allows(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        """Return whether the principal may perform the operation on the resource from this host."""
        if principal in self.super_users:
            return True
        found = self._prefixed[resource_type].of(name)
        literal = self._literal.get((resource_type, name))
        if literal is not None:
            found.append(literal)
        wildcard = self._literal.get((resource_type, WILDCARD))
        if wildcard is not None:
            found.append(wildcard)
        # As in Kafka, every rule that covers the resource counts, even if it is for another client.
        # For example, if the only rule of a topic is for bob, alice cannot access the topic.
        if not found:
            return self.allows_unruled
        clients = _clients(principal, host)
        allowed = denied = 0
        for masks in found:
            for client in clients:
                both = masks.get(client)
                if both is not None:
                    allowed |= both[0]
                    denied |= both[1]
        # A DENY of READ does not deny DESCRIBE, because only an ALLOW implies other operations.
        return not denied & (1 << operation | _ALL_BIT) and allowed & _ALLOWING[operation] != 0

    def denial(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> Denial:
        """Return why `allows` denies an operation.

        The time does not depend on how many rules other clients have.
        """
        patterns = [Pattern(resource_type, name), Pattern(resource_type, WILDCARD)]
        patterns += [
            Pattern(resource_type, each, PatternType.PREFIXED)
            for each in self._prefixed[resource_type].keys_of(name)
        ]
        about = 0
        for pattern in dict.fromkeys(patterns):
            rule = self._denying(pattern, (principal, host), operation)
            if rule is not None:
                return Denial(rule)
            about += len(self.entries_of(pattern))
        return Denial(None, about)

    def _denying(
        self, pattern: Pattern, client: tuple[str, str], operation: Operation
    ) -> AclBinding | None:
        """Return the rule of this pattern that denies the operation to a principal on a host."""
        resource_type, name, pattern_type = pattern
        if pattern_type is PatternType.LITERAL:
            masks = self._literal.get((resource_type, name), {})
        else:
            masks = self._prefixed[resource_type].get(name)
        for each in _clients(*client):
            _, denied = masks.get(each, (0, 0))
            for meant in (operation, Operation.ALL):
                if denied & 1 << meant:
                    return AclBinding(pattern, AclEntry(*each, meant, PermissionType.DENY))
        return None

    def denial_everywhere(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> Denial:
        """Return why `allows_somewhere` denies an operation."""
        return Denial(self._denying(Pattern(resource_type, WILDCARD), (principal, host), operation))

    def allows_somewhere(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Return whether the principal may perform the operation on any resource of this type
        (KIP-679).

        As in Kafka, a rule counts only if it is for exactly this operation or for ALL.
        """
        if principal in self.super_users:
            return True

        def names(permission: PermissionType, pattern_type: PatternType) -> list[set[str]]:
            kinds = (
                (resource_type, pattern_type, permission, *client, each)
                for client, each in product(_clients(principal, host), (operation, Operation.ALL))
            )
            return [self._names[kind] for kind in kinds if kind in self._names]

        denied = names(PermissionType.DENY, PatternType.LITERAL)
        # A DENY on the wildcard takes precedence over every ALLOW.
        if _has(denied, WILDCARD):
            return False
        # There are always some resources that have no rules.
        if self.allows_unruled:
            return True
        denied_prefixes = names(PermissionType.DENY, PatternType.PREFIXED)

        def is_open(name: str) -> bool:
            return not denied_prefixes or not any(
                _has(denied_prefixes, name[:length]) for length in range(1, len(name) + 1)
            )

        # An ALLOW has an effect unless everything that it covers is denied by a DENY on the same
        # name or on a prefix of the name.
        prefixes = chain.from_iterable(names(PermissionType.ALLOW, PatternType.PREFIXED))
        literals = chain.from_iterable(names(PermissionType.ALLOW, PatternType.LITERAL))
        return any(map(is_open, prefixes)) or any(
            name == WILDCARD or (not _has(denied, name) and is_open(name)) for name in literals
        )


def _has(sets: Iterable[set[str]], name: str) -> bool:
    return any(name in each for each in sets)


def _clients(principal: str, host: str) -> tuple[tuple[str, str], ...]:
    return (
        (principal, host),
        (principal, WILDCARD),
        (WILDCARD_PRINCIPAL, host),
        (WILDCARD_PRINCIPAL, WILDCARD),
    )


def _masks(entries: Iterable[AclEntry]) -> _Masks:
    masks: _Masks = {}
    for principal, written_host, operation, permission in entries:
        host = java_host(written_host)
        allowed, denied = masks.get((principal, host), (0, 0))
        bit = 1 << operation
        if permission is PermissionType.ALLOW:
            allowed |= bit
        else:
            denied |= bit
        masks[principal, host] = allowed, denied
    return masks


def _kind(pattern: Pattern, entry: AclEntry) -> _Kind:
    return (
        pattern.resource_type,
        pattern.pattern_type,
        entry.permission,
        entry.principal,
        java_host(entry.host),
        entry.operation,
    )
