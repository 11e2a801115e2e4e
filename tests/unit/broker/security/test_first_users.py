"""The users that are there before anybody logs in."""

from __future__ import annotations

import asyncio
import json

from barnabas.broker.security.first_users import ensure_users
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.store import Create, Set
from barnabas.security.sasl import SCRAM_SHA_512
from barnabas.security.scram import is_of_password, parse_credential


async def _settings(store: EmbeddedStore, user: str) -> dict[str, str]:
    node = await store.read(f"/config/users/{user}")
    assert node is not None and node.data is not None
    settings: dict[str, str] = json.loads(node.data)["config"]
    return settings


def test_se_3_users_get_a_credential_once_in_an_empty_tree() -> None:
    async def scenario() -> None:
        store = EmbeddedStore()
        users = {"admin": "one", "broker": "two"}
        assert await ensure_users(store, SCRAM_SHA_512, users) == ["admin", "broker"]
        before = await _settings(store, "admin")
        credential = parse_credential(SCRAM_SHA_512, before[SCRAM_SHA_512])
        assert is_of_password(SCRAM_SHA_512, credential, "one")
        assert not is_of_password(SCRAM_SHA_512, credential, "two")
        assert await ensure_users(store, SCRAM_SHA_512, users) == []
        assert await _settings(store, "admin") == before

    asyncio.run(scenario())


def test_se_3_another_password_replaces_the_credential_and_nothing_else() -> None:
    """Quotas and the other mechanism stay, and brokers that run are notified."""

    async def scenario() -> None:
        store = EmbeddedStore()
        await ensure_users(store, SCRAM_SHA_512, {"admin": "one"})
        node = await store.read("/config/users/admin")
        assert node is not None and node.data is not None
        stored = json.loads(node.data)
        stored["config"] |= {"producer_byte_rate": "1024", "SCRAM-SHA-256": "as it was"}
        await store.commit([Set("/config/users/admin", json.dumps(stored).encode())])
        assert await ensure_users(store, SCRAM_SHA_512, {"admin": "other"}) == ["admin"]
        after = await _settings(store, "admin")
        assert after["producer_byte_rate"] == "1024" and after["SCRAM-SHA-256"] == "as it was"
        assert is_of_password(
            SCRAM_SHA_512, parse_credential(SCRAM_SHA_512, after[SCRAM_SHA_512]), "other"
        )
        changes = await store.read("/config/changes")
        assert changes is not None and len(changes.children) == 2

    asyncio.run(scenario())


def test_a_credential_that_cannot_be_read_is_replaced() -> None:
    async def scenario() -> None:
        store = EmbeddedStore()
        broken = b'{"version":1,"config":{"SCRAM-SHA-512":"salt=x"}}'
        await store.commit(
            [Create("/config"), Create("/config/users"), Create("/config/users/admin", broken)]
        )
        assert await ensure_users(store, SCRAM_SHA_512, {"admin": "one"}) == ["admin"]
        assert await ensure_users(store, SCRAM_SHA_512, {"admin": "one"}) == []

    asyncio.run(scenario())
