"""The rules that the options of `barnabas acls` stand for, as in `kafka-acls.sh`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType
from barnabas.security.acl_binding import (
    WILDCARD,
    AclBinding,
    AclEntry,
    Pattern,
    PatternType,
    PermissionType,
)

_PRODUCER_OF_TOPIC = (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE)
_PRODUCER_OF_ID = (Operation.WRITE, Operation.DESCRIBE)
_CONSUMER_OF_TOPIC = (Operation.READ, Operation.DESCRIBE)
_CONSUMER_OF_GROUP = (Operation.READ,)

OPERATIONS = {
    ResourceType.TOPIC: "Read Write Create Delete Alter Describe DescribeConfigs AlterConfigs",
    ResourceType.GROUP: "Read Delete Describe",
    ResourceType.CLUSTER: (
        "Create Alter Describe ClusterAction DescribeConfigs AlterConfigs IdempotentWrite"
    ),
    ResourceType.TRANSACTIONAL_ID: "Write Describe",
    ResourceType.DELEGATION_TOKEN: "Describe",
    ResourceType.USER: "CreateTokens DescribeTokens",
}
"""The operations that mean something for a type of resource."""


class Incomplete(Exception):
    """The options do not make a rule; the message says what is missing."""


class Options(NamedTuple):
    """Those of the command line."""

    principals: Sequence[str]  # User:alice
    hosts: Sequence[str]  # none: all
    resources: Sequence[tuple[ResourceType, str]]
    operations: Sequence[Operation]  # none: all
    pattern_type: PatternType = PatternType.LITERAL
    permission: PermissionType = PermissionType.ALLOW
    is_producer: bool = False
    is_consumer: bool = False
    is_idempotent: bool = False


def resources_of(given: dict[str, Any]) -> list[tuple[ResourceType, str]]:
    """The resources among a command's arguments."""
    found = [
        (kind, name)
        for kind, option in (
            (ResourceType.TOPIC, "topics"),
            (ResourceType.GROUP, "groups"),
            (ResourceType.TRANSACTIONAL_ID, "transactional_ids"),
            (ResourceType.DELEGATION_TOKEN, "tokens"),
            (ResourceType.USER, "users"),
        )
        for name in given[option]
    ]
    return [*found, (ResourceType.CLUSTER, CLUSTER_NAME)] if given["cluster"] else found


def bindings(options: Options) -> list[AclBinding]:
    """The rules. Raises Incomplete."""
    if not options.principals:
        raise Incomplete("name whom it is about: --user or --principal")
    pairs = list(_pairs(options))
    found = []
    for (kind, name), operation in pairs:
        # A cluster has one name, which is no prefix.
        literal = kind is ResourceType.CLUSTER
        pattern = Pattern(kind, name, PatternType.LITERAL if literal else options.pattern_type)
        for principal, host in product(options.principals, options.hosts or (WILDCARD,)):
            entry = AclEntry(principal, host, operation, options.permission)
            found.append(AclBinding(pattern, entry))
    return list(dict.fromkeys(found))


def _pairs(options: Options) -> Iterator[tuple[tuple[ResourceType, str], Operation]]:
    """Resources, and what of them."""
    resources = {
        kind: [each for each in options.resources if each[0] is kind] for kind in ResourceType
    }
    topics, groups = resources[ResourceType.TOPIC], resources[ResourceType.GROUP]
    ids = resources[ResourceType.TRANSACTIONAL_ID]
    if options.is_producer:
        if not topics:
            raise Incomplete("--producer needs a --topic")
        yield from product(topics, _PRODUCER_OF_TOPIC)
        yield from product(ids, _PRODUCER_OF_ID)
    if options.is_consumer:
        if not topics or not groups:
            raise Incomplete("--consumer needs a --topic and a --group")
        yield from product(topics, _CONSUMER_OF_TOPIC)
        yield from product(groups, _CONSUMER_OF_GROUP)
    if options.is_idempotent:
        yield (ResourceType.CLUSTER, CLUSTER_NAME), Operation.IDEMPOTENT_WRITE
    if options.is_producer or options.is_consumer:
        if options.operations:
            raise Incomplete("--producer and --consumer say what is allowed: leave --operation out")
        return
    if not options.resources:
        if options.is_idempotent:
            return
        raise Incomplete("name what it is about: --topic, --group, --cluster, ...")
    yield from product(options.resources, options.operations or (Operation.ALL,))
