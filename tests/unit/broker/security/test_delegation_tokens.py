"""Delegation tokens: made, used, renewed, ended, and of no use to others."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable
from hmac import digest as hmac_digest

import pytest

from barnabas.broker.runtime.watched_clock import WatchedClock
from barnabas.broker.security.delegation_tokens import DelegationTokens
from barnabas.clock import SystemRandom
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.store import Set
from barnabas.cluster.token_nodes import (
    CHANGES,
    TokenNode,
    decode_token,
    encode_token,
    token_path,
)
from barnabas.config import BrokerConfig
from barnabas.errors import (
    CorruptData,
    DelegationTokenAuthDisabled,
    DelegationTokenExpired,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
)
from barnabas.security.acl import Principal
from barnabas.security.sasl import SCRAM_SHA_256, Identity
from barnabas.security.scram import salted_password
from tests.kit.set_clock import SetClock

ALICE, BOB, CAROL = (Principal("User", name) for name in ("alice", "bob: %/", "carol"))
KEY = "planted-secret-key"
DAY_MS = 86_400_000


class Cluster:
    """The tokens of a cluster whose clock stands."""

    def __init__(self, **settings: str) -> None:
        self.clock = SetClock()
        self.store = EmbeddedStore()
        named = {name.replace("_", "."): text for name, text in settings.items()}
        self.tokens = DelegationTokens(
            self.store, BrokerConfig({"log.dirs": "/d", **named}), WatchedClock(self.clock)
        )

    async def make(self, lifetime_ms: int = -1) -> TokenNode:
        return await self.tokens.create(ALICE, ALICE, [BOB], lifetime_ms, SystemRandom())


def play(
    scenario: Callable[[Cluster], Awaitable[None]], setting: str = "delegation_token_secret_key"
) -> None:
    async def whole() -> None:
        await scenario(Cluster(**{setting: KEY}))

    asyncio.run(whole())


@pytest.mark.parametrize("setting", ["delegation_token_secret_key", "delegation_token_master_key"])
def test_se_3_a_token_proves_its_owner_until_it_expires(setting: str) -> None:
    async def scenario(cluster: Cluster) -> None:
        token = await cluster.make()
        assert token.expires_at_ms == cluster.clock.wall_ms() + DAY_MS
        assert token.ends_at_ms == cluster.clock.wall_ms() + 7 * DAY_MS
        secret = cluster.tokens.secret(token.token_id)
        assert secret == hmac_digest(KEY.encode(), token.token_id.encode(), "sha512")
        account = await cluster.tokens.account(SCRAM_SHA_256, token.token_id)
        assert account is not None
        assert account.identity == Identity(ALICE, token.expires_at_ms, by_token=True)
        password, credential = b64encode(secret).decode(), account.credential
        salted = salted_password(SCRAM_SHA_256, password, credential.salt, credential.iterations)
        assert credential.server_key == hmac_digest(salted, b"Server Key", "sha256")
        cluster.clock.at_ms += DAY_MS + 1
        assert await cluster.tokens.account(SCRAM_SHA_256, token.token_id) is None

    play(scenario, setting)


def test_se_3_what_is_no_token_proves_nobody() -> None:
    async def scenario(cluster: Cluster) -> None:
        token = await cluster.make()
        for name in ("", "x", f"../tokens/{token.token_id}", "a/b"):
            assert await cluster.tokens.account(SCRAM_SHA_256, name) is None
        await cluster.store.commit([Set(token_path(token.token_id), b"{}")])
        assert await cluster.tokens.account(SCRAM_SHA_256, token.token_id) is None

    play(scenario)


def test_se_3_owner_and_renewers_renew_up_to_the_end_and_others_do_not() -> None:
    async def scenario(cluster: Cluster) -> None:
        tokens, token = cluster.tokens, await cluster.make(2 * DAY_MS)
        secret = tokens.secret(token.token_id)
        cluster.clock.at_ms += 1000
        now_ms = cluster.clock.wall_ms()
        assert await tokens.renew(BOB, secret, 5) == now_ms + 5
        assert await tokens.renew(ALICE, secret, -1) == now_ms + DAY_MS
        assert await tokens.renew(ALICE, secret, 9 * DAY_MS) == token.ends_at_ms
        with pytest.raises(DelegationTokenOwnerMismatch):
            await tokens.renew(CAROL, secret, 5)
        with pytest.raises(DelegationTokenNotFound):
            await tokens.renew(ALICE, secret[1:], 5)
        assert await tokens.expire(ALICE, secret, 7) == now_ms + 7
        cluster.clock.at_ms += 8
        with pytest.raises(DelegationTokenExpired):
            await tokens.renew(ALICE, secret, 5)

    play(scenario)


def test_se_3_a_token_is_ended_at_once_and_expired_ones_go() -> None:
    async def scenario(cluster: Cluster) -> None:
        tokens = cluster.tokens
        first, second = await cluster.make(), await cluster.make()
        secret = tokens.secret(first.token_id)
        with pytest.raises(DelegationTokenOwnerMismatch):
            await tokens.expire(CAROL, secret, -1)
        assert await tokens.expire(BOB, secret, -1) == cluster.clock.wall_ms()
        assert await tokens.all(lambda _: True) == [second]
        cluster.clock.at_ms += DAY_MS + 1
        third = await cluster.make()
        assert await tokens.all(lambda _: True) == [third]
        changes = await cluster.store.read(CHANGES)
        assert changes is not None and len(changes.children) == 5  # Kafka's brokers are told

    play(scenario)


def test_se_3_without_a_key_there_are_no_tokens() -> None:
    async def scenario(cluster: Cluster) -> None:
        with pytest.raises(DelegationTokenAuthDisabled):
            await cluster.make()
        with pytest.raises(DelegationTokenAuthDisabled):
            await cluster.tokens.all(lambda _: True)
        assert await cluster.tokens.account(SCRAM_SHA_256, "x") is None

    asyncio.run(scenario(Cluster()))


def test_se_3_nodes_are_written_as_kafka_writes_them_and_old_ones_read() -> None:
    token = TokenNode("id", "User:alice", "User:bob: %/", ("User:carol",), 1, 3, 2)
    written = encode_token(token)
    assert written == (
        b'{"version":3,"owner":"User%3Aalice","tokenRequester":"User%3Abob%3A%20%25%2F",'
        b'"renewers":["User%3Acarol"],"issueTimestamp":1,"maxTimestamp":3,"expiryTimestamp":2,'
        b'"tokenId":"id"}'
    )
    assert decode_token("/p", written) == token
    old = (
        b'{"version":1,"owner":"User:alice","renewers":[],"issueTimestamp":1,"maxTimestamp":3,'
        b'"expiryTimestamp":2,"tokenId":"id"}'
    )
    assert decode_token("/p", old) == TokenNode("id", "User:alice", "User:alice", (), 1, 3, 2)
    with pytest.raises(CorruptData, match=r"^/p"):
        decode_token("/p", b"{}")
