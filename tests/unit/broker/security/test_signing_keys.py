"""The keys of an identity provider: read once, again for a new key, and not whenever asked to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from barnabas.broker.runtime.watched_clock import WatchedClock
from barnabas.broker.security.signing_keys import SigningKeys
from barnabas.errors import ConfigError
from barnabas.security.sasl import Identity, InvalidCredentials
from barnabas.security.token_rules import TokenRules
from tests.kit.set_clock import SetClock
from tests.kit.signed_tokens import NOW_S, claims, document, signer


class Provider:
    """A file of keys, and those who read it."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "jwks.json"
        self.clock = SetClock(NOW_S * 1000)
        self.keys = SigningKeys(
            self.path.as_uri(), 60_000, 1_000, TokenRules(), WatchedClock(self.clock)
        )

    async def verify(self, kid: str) -> Identity:
        return await self.keys.verify(signer(kid).sign(claims()))

    async def refuses(self, kid: str) -> bool:
        try:
            await self.verify(kid)
        except InvalidCredentials:
            return True
        return False


def play(directory: Path, scenario: Callable[[Provider], Awaitable[None]]) -> None:
    async def whole() -> None:
        await scenario(Provider(directory))

    asyncio.run(whole())


def test_se_3_a_new_key_is_found_and_an_unknown_one_does_not_make_us_ask(tmp_path: Path) -> None:
    async def scenario(provider: Provider) -> None:
        provider.path.write_bytes(document(signer("k1")))
        assert (await provider.verify("k1")).principal.name == "alice"
        assert await provider.refuses("k2")
        provider.path.write_bytes(document(signer("k1"), signer("k2")))
        assert await provider.refuses("k2")  # it was asked a moment ago
        provider.clock.at_ms += 10_000
        await provider.verify("k2")

    play(tmp_path, scenario)


def test_se_3_old_keys_serve_while_the_provider_does_not(tmp_path: Path) -> None:
    async def scenario(provider: Provider) -> None:
        provider.path.write_bytes(document(signer("k1")))
        await asyncio.gather(*(provider.verify("k1") for _ in range(5)))
        provider.path.unlink()
        provider.clock.at_ms += 61_000
        await provider.verify("k1")
        provider.path.write_bytes(document(signer("k2")))
        assert await provider.refuses("k2")  # within the pause after the failure
        provider.clock.at_ms += 1_001
        await provider.verify("k2")
        assert await provider.refuses("k1")

    play(tmp_path, scenario)


def test_se_3_without_keys_nobody_gets_in(tmp_path: Path) -> None:
    async def scenario(provider: Provider) -> None:
        assert await provider.refuses("k1")
        provider.path.write_bytes(b" " * (1024 * 1024 + 1))
        provider.clock.at_ms += 1_001
        assert await provider.refuses("k1")

    play(tmp_path, scenario)


@pytest.mark.parametrize("url", ["", "http://id.example.com/keys", "ftp://x/y", "keys.json"])
def test_se_3_keys_come_protected(url: str) -> None:
    with pytest.raises(ConfigError, match=r"^sasl\.oauthbearer\.jwks\.endpoint\.url"):
        SigningKeys(url, 1, 1, TokenRules(), WatchedClock(SetClock()))
