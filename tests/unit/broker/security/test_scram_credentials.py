"""The SCRAM credentials of the tree: found at a log-in, followed, and never shown."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable

import pytest

from barnabas.broker.security.scram_credentials import ScramCredentials
from barnabas.cluster import layout
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.store import Create, Delete, Set
from barnabas.cluster.user_nodes import USER_CONFIGS, user_path
from barnabas.errors import SaslAuthenticationFailed
from barnabas.security.sasl import SCRAM_SHA_256, SCRAM_SHA_512
from barnabas.security.scram import ScramClient, new_credential

PASSWORD = "planted-secret-1"
STORED = new_credential(SCRAM_SHA_256, PASSWORD, 5000).text()


class Tree:
    """A metadata store with users, and what a broker knows of them."""

    def __init__(self) -> None:
        self.store = EmbeddedStore()
        self.credentials = ScramCredentials(self.store)

    async def put(self, user: str, **config: str) -> None:
        data = layout.encode_config(config)
        path = user_path(user)
        is_there = await self.store.read(path) is not None
        await self.store.commit([Set(path, data) if is_there else Create(path, data)])

    async def logs_in(self, user: str, mechanism: str = SCRAM_SHA_256) -> bool:
        server = self.credentials.server(mechanism)
        client = ScramClient(mechanism, user, PASSWORD)
        message: bytes | None = client.first()
        try:
            while message is not None:
                answer = server.respond(message)
                challenge = await answer if inspect.isawaitable(answer) else answer
                message = client.respond(challenge)
        except SaslAuthenticationFailed:
            return False
        return server.identity is not None

    async def challenge(self, user: str) -> tuple[str, str]:
        """Salt and iterations as a stranger sees them."""
        answer = self.credentials.server(SCRAM_SHA_256).respond(f"n,,n={user},r=x".encode())
        challenge = await answer if inspect.isawaitable(answer) else answer
        _, salt, iterations = challenge.decode().split(",")
        return salt, iterations


def play(scenario: Callable[[Tree], Awaitable[None]]) -> None:
    async def whole() -> None:
        tree = Tree()
        await tree.store.commit([Create("/config"), Create(USER_CONFIGS)])
        await scenario(tree)

    asyncio.run(whole())


@pytest.mark.parametrize("name", ["alice", "a b/c*~\N{GREEK SMALL LETTER ALPHA}=,+"])
def test_se_3_a_user_of_the_tree_logs_in(name: str) -> None:
    async def scenario(tree: Tree) -> None:
        await tree.put(name, **{SCRAM_SHA_256: STORED, "producer_byte_rate": "1024"})
        assert await tree.logs_in(name)
        assert not await tree.logs_in(name, SCRAM_SHA_512)
        assert not await tree.logs_in("bob")

    play(scenario)


def test_se_3_changes_count_from_their_notification_on() -> None:
    async def scenario(tree: Tree) -> None:
        await tree.credentials.load()
        await tree.put("alice", **{SCRAM_SHA_256: STORED})
        assert not await tree.logs_in("alice")
        await tree.credentials.on_changed("users/alice")
        assert await tree.logs_in("alice")
        await tree.store.commit([Delete(user_path("alice"))])
        await tree.credentials.on_changed("users/alice")
        assert not await tree.logs_in("alice")
        await tree.credentials.on_changed("users/alice/clients/c")  # quotas
        await tree.credentials.on_changed("users/<default>")

    play(scenario)


def test_se_3_a_user_that_there_is_not_looks_like_one_that_there_is() -> None:
    async def scenario(tree: Tree) -> None:
        await tree.put("alice", **{SCRAM_SHA_256: STORED})
        known, unknown = await tree.challenge("alice"), await tree.challenge("mallory")
        assert (len(known[0]), known[1]) == (len(unknown[0]), unknown[1])
        assert unknown == await tree.challenge("mallory")
        assert unknown[0] != (await tree.challenge("malory"))[0]

    play(scenario)


def test_se_3_a_decoy_is_the_same_at_each_broker_and_after_a_restart() -> None:
    """Else two questions show which users do not exist: what is kept of a real one is the same."""

    async def scenario(tree: Tree) -> None:
        await tree.put("alice", **{SCRAM_SHA_256: STORED})
        seen = [(await tree.challenge("alice"), await tree.challenge("eve"))]
        for _ in range(2):
            tree.credentials = ScramCredentials(tree.store)
            seen.append((await tree.challenge("alice"), await tree.challenge("eve")))
        assert len({*seen}) == 1
        first, second = ScramCredentials(tree.store), ScramCredentials(tree.store)
        node = await tree.store.read(USER_CONFIGS)
        assert node is not None
        await tree.store.commit([Set(USER_CONFIGS, b"", node.version)])
        await asyncio.gather(first.load(), second.load())  # one of them makes the key
        tree.credentials = first
        of_first = await tree.challenge("eve")
        tree.credentials = second
        assert await tree.challenge("eve") == of_first != seen[0][1]

    play(scenario)


def test_se_3_without_a_key_of_the_cluster_users_log_in_as_well(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(tree: Tree) -> None:
        await tree.put("alice", **{SCRAM_SHA_256: STORED})
        await tree.store.commit([Set(USER_CONFIGS, b"of another program", -1)])
        assert await tree.logs_in("alice")
        assert await tree.challenge("eve") == await tree.challenge("eve")

    play(scenario)
    assert "/config/users has data other than a decoy key" in caplog.text


def test_se_3_a_decoy_follows_what_is_usual_now() -> None:
    async def scenario(tree: Tree) -> None:
        await tree.put("alice", **{SCRAM_SHA_256: STORED})
        assert (await tree.challenge("mallory"))[1] == "i=5000"
        for user in ("bob", "carol"):
            other = new_credential(SCRAM_SHA_256, PASSWORD, 6000).text()
            await tree.put(user, **{SCRAM_SHA_256: other})
            await tree.credentials.on_changed(f"users/{user}")
        assert (await tree.challenge("mallory"))[1] == "i=6000"
        for user in ("bob", "carol"):
            await tree.store.commit([Delete(user_path(user))])
            await tree.credentials.on_changed(f"users/{user}")
        assert (await tree.challenge("mallory"))[1] == "i=5000"

    play(scenario)


def test_se_3_many_who_log_in_at_the_start_wait_for_one_reading() -> None:
    async def scenario(tree: Tree) -> None:
        for number in range(20):
            await tree.put(f"user{number}", **{SCRAM_SHA_256: STORED})
        found = await asyncio.gather(*(tree.logs_in(f"user{number}") for number in range(20)))
        assert all(found)

    play(scenario)


def test_se_3_what_cannot_be_read_is_named_and_not_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(tree: Tree) -> None:
        caplog.set_level(logging.DEBUG)
        await tree.put("bob", **{SCRAM_SHA_256: STORED.replace("=5000", "=50")})
        await tree.store.commit([Create(user_path("carol"), STORED.encode())])
        await tree.put("alice", **{SCRAM_SHA_256: STORED})
        assert await tree.logs_in("alice")
        assert not await tree.logs_in("bob")
        assert "user 'bob'" in caplog.text
        assert "user 'carol'" in caplog.text
        assert STORED[5:20] not in caplog.text
        assert STORED[5:20] not in repr(tree.credentials.server(SCRAM_SHA_256))

    play(scenario)
