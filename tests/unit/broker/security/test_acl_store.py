"""Rules in the metadata tree: read, followed and changed, and never more than the tree allows."""

from __future__ import annotations

import asyncio
import json

import pytest

from barnabas.broker.security.acl_store import AclStore
from barnabas.clock import SystemClock, SystemRandom
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.store import Create, Set
from barnabas.errors import CorruptData
from barnabas.security.acl import Operation, ResourceType
from barnabas.security.acl_binding import (
    AclBinding,
    AclEntry,
    AclFilter,
    Pattern,
    PatternType,
    PermissionType,
)
from barnabas.security.acl_rules import AclRules

PATIENCE_S = 20.0
READ = AclBinding(
    Pattern(ResourceType.TOPIC, "orders"),
    AclEntry("User:alice", "*", Operation.READ, PermissionType.ALLOW),
)
PREFIXED = AclBinding(
    Pattern(ResourceType.GROUP, "g-", PatternType.PREFIXED),
    AclEntry("User:bob", "*", Operation.READ, PermissionType.ALLOW),
)


def opened(store: EmbeddedStore) -> tuple[AclStore, AclRules]:
    rules = AclRules()
    return AclStore(store, rules, lambda: None, SystemClock(), SystemRandom()), rules


async def until(rules: AclRules, expected: set[AclBinding]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while set(rules.bindings(AclFilter())) != expected:
            await asyncio.sleep(0.01)


def test_se_4_what_one_broker_creates_is_in_force_in_others() -> None:
    """By the change nodes, in Kafka's form."""

    async def scenario() -> None:
        tree = EmbeddedStore()
        one, ours = opened(tree.session())  # type: ignore[arg-type]
        other, theirs = opened(tree.session())  # type: ignore[arg-type]
        await one.open()
        await other.open()
        await one.create([READ, PREFIXED])
        assert set(ours.bindings(AclFilter())) == {READ, PREFIXED}
        await until(theirs, {READ, PREFIXED})
        node = await tree.read("/kafka-acl/Topic/orders")
        assert node is not None and json.loads(node.data or b"") == {
            "version": 1,
            "acls": [
                {
                    "principal": "User:alice",
                    "permissionType": "Allow",
                    "operation": "Read",
                    "host": "*",
                }
            ],
        }
        assert await tree.read("/kafka-acl-extended/prefixed/Group/g-") is not None
        await other.delete([AclFilter(ResourceType.TOPIC)])
        await until(ours, {PREFIXED})
        assert await tree.read("/kafka-acl/Topic/orders") is None
        await one.close()
        await other.close()

    asyncio.run(scenario())


def test_se_4_a_tree_that_cannot_be_read_whole_stops_the_start() -> None:
    async def scenario() -> None:
        tree = EmbeddedStore()
        await tree.commit(
            [
                Create("/kafka-acl"),
                Create("/kafka-acl/Topic"),
                Create("/kafka-acl/Topic/orders", b'{"version":2}'),
            ]
        )
        store, _ = opened(tree)
        with pytest.raises(CorruptData, match="/kafka-acl/Topic/orders cannot be read"):
            await store.open()

    asyncio.run(scenario())


def test_se_4_a_node_that_can_no_longer_be_read_denies() -> None:
    """Fail closed: what was allowed before may be what was taken away."""

    async def scenario() -> None:
        tree = EmbeddedStore()
        store, rules = opened(tree)
        await store.open()
        await store.create([READ])
        await tree.commit(
            [
                Set("/kafka-acl/Topic/orders", b"nonsense"),
                Create("/kafka-acl-changes/acl_changes_", b"TOPIC:orders", sequential=True),
            ]
        )
        question = ("User:alice", "1.2.3.4", Operation.READ, ResourceType.TOPIC, "orders")
        async with asyncio.timeout(PATIENCE_S):
            while rules.allows(*question):
                await asyncio.sleep(0.01)
        await store.close()

    asyncio.run(scenario())
