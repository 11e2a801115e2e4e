"""Reads and writes the nodes of ACLs in the metadata tree, in the format of AclAuthorizer.

    /kafka-acl/<Type>/<name>                          rules of a literal pattern
    /kafka-acl-extended/prefixed/<Type>/<name>        rules of a prefixed pattern
        {"acls":[{"principal":"User:alice","permissionType":"Allow","host":"*",
                  "operation":"Read"}],"version":1}
    /kafka-acl-changes/acl_changes_<n>                TOPIC:orders
    /kafka-acl-extended-changes/acl_changes_<n>
        {"version":1,"resourceType":"TOPIC","name":"orders-","patternType":"PREFIXED"}

A change node only tells the brokers to read the node of its pattern again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from barnabas.errors import CorruptData
from barnabas.security.acl import Operation, ResourceType
from barnabas.security.acl_binding import (
    AclEntry,
    Pattern,
    PatternType,
    PermissionType,
    parse_code,
    parse_principal,
    pascal_name,
)

ROOTS = {
    PatternType.LITERAL: "/kafka-acl",
    PatternType.PREFIXED: "/kafka-acl-extended/prefixed",
}
CHANGES = {
    PatternType.LITERAL: "/kafka-acl-changes",
    PatternType.PREFIXED: "/kafka-acl-extended-changes",
}
RESOURCE_TYPES = tuple(each for each in ResourceType if each is not ResourceType.ANY)


def type_path(pattern_type: PatternType, resource_type: ResourceType) -> str:
    """Return the node under which all patterns of a type are stored."""
    return f"{ROOTS[pattern_type]}/{pascal_name(resource_type)}"


def pattern_path(pattern: Pattern) -> str:
    return f"{type_path(pattern.pattern_type, pattern.resource_type)}/{pattern.name}"


def change_path(pattern_type: PatternType) -> str:
    """Return the path at which a sequential change node is created, without the number."""
    return f"{CHANGES[pattern_type]}/acl_changes_"


BASE_PATHS = (
    "/kafka-acl-extended",
    *(
        path
        for pattern_type, root in ROOTS.items()
        for path in (root, *(type_path(pattern_type, each) for each in RESOURCE_TYPES))
    ),
    *CHANGES.values(),
)
"""The nodes that a broker with an authorizer creates at startup if they are missing. Parents come
before their children.
"""


def encode_entries(entries: Iterable[AclEntry]) -> bytes:
    """Return the data for the node of a pattern. The entries are sorted."""
    acls = [
        {
            "principal": entry.principal,
            "permissionType": pascal_name(entry.permission),
            "host": entry.host,
            "operation": pascal_name(entry.operation),
        }
        for entry in sorted(entries)
    ]
    return _encode({"acls": acls, "version": 1})


def decode_entries(path: str, data: bytes | None) -> frozenset[AclEntry]:
    """Return the entries in the node of a pattern. A node without data has no entries.

    Raises CorruptData if any part cannot be read, because that part may be a deny rule.
    """
    if not data:
        return frozenset()
    try:
        node = json.loads(data)
        # In a later version, there may be fields that restrict a rule. If they were ignored, too
        # much would be allowed.
        if node["version"] != 1:
            raise ValueError(f"version {node['version']}")
        return frozenset(map(_entry, node["acls"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptData(f"{path} cannot be read ({error!r}): {data!r}") from None


def _entry(node: Any) -> AclEntry:
    operation = parse_code(Operation, node["operation"])
    permission = parse_code(PermissionType, node["permissionType"])
    if operation is Operation.ANY or permission is PermissionType.ANY:
        raise ValueError("Any is for filters")
    return AclEntry(
        str(parse_principal(node["principal"])), str(node["host"]), operation, permission
    )


def encode_change(pattern: Pattern) -> bytes:
    # Brokers older than KIP-290 (Kafka 2.0) watch these nodes and understand only this form.
    if pattern.pattern_type is PatternType.LITERAL:
        return f"{pattern.resource_type.name}:{pattern.name}".encode()
    return _encode(
        {
            "version": 1,
            "resourceType": pattern.resource_type.name,
            "name": pattern.name,
            "patternType": pattern.pattern_type.name,
        }
    )


def decode_change(path: str, data: bytes | None) -> Pattern:
    """Return the pattern whose rules have changed.

    Raises CorruptData with the path if the node is malformed.
    """
    try:
        text = (data or b"").decode()
        if path.startswith(f"{CHANGES[PatternType.LITERAL]}/"):
            kind, colon, name = text.partition(":")
            if not colon:
                raise ValueError("no colon")
            return Pattern(parse_code(ResourceType, kind), name)
        node = json.loads(text)
        if node["version"] > 1:
            raise ValueError(f"version {node['version']}")
        pattern_type = parse_code(PatternType, node["patternType"])
        if pattern_type not in ROOTS:
            raise ValueError(f"pattern type {pattern_type.name}")
        return Pattern(
            parse_code(ResourceType, node["resourceType"]), str(node["name"]), pattern_type
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptData(f"{path} cannot be read ({error!r}): {data!r}") from None


def _encode(node: Any) -> bytes:
    return json.dumps(node, separators=(",", ":"), ensure_ascii=False).encode()
