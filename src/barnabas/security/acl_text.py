"""Describes ACLs in words, for tools and for causes in events. This module is pure."""

from __future__ import annotations

from typing import Final

from barnabas.security.acl import ResourceType
from barnabas.security.acl_binding import (
    WILDCARD,
    AclBinding,
    Pattern,
    PatternType,
    pascal_name,
)

_NOUNS: Final = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.TRANSACTIONAL_ID: "transactional id",
    ResourceType.DELEGATION_TOKEN: "delegation token",
    ResourceType.USER: "user",
}


def noun_of(resource_type: ResourceType) -> str:
    """Return the noun for a resource, such as `topic`."""
    return _NOUNS[resource_type]


def resource_text(pattern: Pattern) -> str:
    """Return a description such as `topic orders`, `every topic`, `each topic that begins with ord`
    or `the cluster`."""
    if pattern.resource_type is ResourceType.CLUSTER:
        return "the cluster"
    noun = noun_of(pattern.resource_type)
    if pattern.pattern_type is PatternType.PREFIXED:
        return f"each {noun} that begins with {pattern.name}"
    return f"every {noun}" if pattern.name == WILDCARD else f"{noun} {pattern.name}"


def host_text(host: str) -> str:
    return "from any host" if host == WILDCARD else f"from {host}"


def rule_text(rule: AclBinding) -> str:
    """Return a description such as `allow User:alice Read on topic orders, from any host`."""
    pattern, entry = rule
    return (
        f"{entry.permission.name.lower()} {entry.principal} {pascal_name(entry.operation)} on "
        f"{resource_text(pattern)}, {host_text(entry.host)}"
    )
