"""A broker reads each delegation token once, and knows how many a user has."""

from __future__ import annotations

import asyncio
import logging

import pytest

from barnabas.broker.runtime.watched_clock import WatchedClock
from barnabas.broker.security.delegation_tokens import DelegationTokens
from barnabas.broker.security.known_tokens import KnownTokens
from barnabas.clock import SystemRandom
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.store import Delete, Set
from barnabas.cluster.token_nodes import token_path
from barnabas.config import BrokerConfig
from barnabas.errors import PolicyViolation
from barnabas.security.acl import Principal
from tests.kit.set_clock import SetClock

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
DAY_MS = 86_400_000
CONFIG = BrokerConfig(
    {
        "log.dirs": "/d",
        "delegation.token.secret.key": "planted-secret-key",
        "barnabas.delegation.tokens.per.user": "2",
    }
)


def test_se_3_to_make_a_token_no_known_one_is_read(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        store, known, clock = EmbeddedStore(), KnownTokens(), WatchedClock(SetClock())
        tokens = DelegationTokens(store, CONFIG, clock, known)
        first = await tokens.create(ALICE, ALICE, [], -1, SystemRandom())
        await store.commit([Set(token_path(first.token_id), b"not a token")])
        await tokens.create(BOB, BOB, [], -1, SystemRandom())
        assert "left out" not in caplog.text  # it would be, had the node been read
        assert known.count("User:alice") == 1
        await store.commit([Delete(token_path(first.token_id))])  # another broker ended it
        await known.refresh(store)
        assert known.count("User:alice") == 0

    caplog.set_level(logging.ERROR)
    asyncio.run(scenario())


def test_se_3_a_user_has_so_many_tokens_and_no_more() -> None:
    """Those made at other brokers count; expired ones make room."""

    async def scenario() -> None:
        store, clock = EmbeddedStore(), SetClock()

        async def make(owner: Principal, known: KnownTokens) -> None:
            tokens = DelegationTokens(store, CONFIG, WatchedClock(clock), known)
            await tokens.create(owner, owner, [], -1, SystemRandom())

        here, there = KnownTokens(), KnownTokens()
        await make(ALICE, here)
        await make(ALICE, there)
        for known in (here, there):
            with pytest.raises(PolicyViolation, match="User:alice already has 2 delegation tokens"):
                await make(ALICE, known)
        await make(BOB, here)
        clock.at_ms += DAY_MS + 1
        await make(ALICE, here)
        assert (here.count("User:alice"), here.count("User:bob")) == (1, 0)

    asyncio.run(scenario())


def test_what_cannot_be_read_counts_for_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        store, known, clock = EmbeddedStore(), KnownTokens(), WatchedClock(SetClock())
        token = await DelegationTokens(store, CONFIG, clock).create(
            ALICE, ALICE, [], -1, SystemRandom()
        )
        await store.commit([Set(token_path(token.token_id), b"{}")])
        for _ in range(2):
            await known.refresh(store)
        assert known.count("User:alice") == 0

    asyncio.run(scenario())
    assert caplog.text.count("ignoring a delegation token") == 1
