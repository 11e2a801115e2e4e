"""Quotas that others write into the metadata tree: read at the start, followed, and judged."""

from __future__ import annotations

import asyncio
import logging

import pytest

from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.broker.quotas.ip_quotas import IpQuotas
from barnabas.broker.quotas.measures import Windows
from barnabas.broker.quotas.stored_quotas import StoredQuotas
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.store import Create, Set
from tests.kit.broker.quota_calls import client_quotas

BASE = ("/config", "/config/users", "/config/clients", "/config/ips")


def node(**configs: str) -> bytes:
    held = ",".join(f'"{key}":"{value}"' for key, value in configs.items())
    return f'{{"version":1,"config":{{{held}}}}}'.encode()


async def loaded(**nodes: bytes | None) -> tuple[EmbeddedStore, StoredQuotas, ClientQuotas]:
    """A store with these nodes below `/config`, by paths with `__` for `/`, and what it means."""
    store = EmbeddedStore()
    await store.commit([Create(path) for path in BASE])
    for path, data in nodes.items():
        await store.commit([Create(f"/config/{path.replace('__', '/')}", data)])
    quotas = client_quotas()
    stored = StoredQuotas(store, quotas, IpQuotas(Windows()))
    await stored.load()
    return store, stored, quotas


def produce_limit(quotas: ClientQuotas, user: str, client_id: str) -> float | None:
    limits = quotas.of(user, client_id)
    return None if limits is None or limits.produce is None else limits.produce.limit


def test_se_5_quotas_of_the_tree_hold_from_the_start() -> None:
    async def scenario() -> None:
        _, _, quotas = await loaded(
            users__alice=None,
            users__alice__clients=None,
            users__alice__clients__c=node(producer_byte_rate="1024"),
            clients__d=node(producer_byte_rate="7"),
        )
        assert produce_limit(quotas, "alice", "c") == 1024
        assert produce_limit(quotas, "bob", "d") == 7
        assert produce_limit(quotas, "bob", "c") is None

    asyncio.run(scenario())


def test_se_5_a_change_is_taken_up_and_credentials_are_no_quotas() -> None:
    async def scenario() -> None:
        store, stored, quotas = await loaded(users__alice=node(SCRAM="secret"))
        assert not quotas.is_active
        await store.commit([Set("/config/users/alice", node(producer_byte_rate="5"))])
        await stored.on_changed("users/alice")
        assert produce_limit(quotas, "alice", "x") == 5
        await store.commit([Set("/config/users/alice", node())])
        await stored.on_changed("users/alice")
        assert not quotas.is_active

    asyncio.run(scenario())


def test_se_5_what_cannot_be_used_is_said_and_left_out(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        _, _, quotas = await loaded(
            users__a=node(producer_byte_rate="fast", request_percentage="5"),
            users__b=b"no json",
            ips__here=node(connection_creation_rate="1"),
        )
        assert produce_limit(quotas, "a", "c") is None
        assert quotas.of("a", "c") is not None
        assert quotas.of("b", "c") is None

    with caplog.at_level(logging.ERROR):
        asyncio.run(scenario())
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3
    assert "producer_byte_rate=fast of users/a: it is not a number" in said[2] + said[1] + said[0]
