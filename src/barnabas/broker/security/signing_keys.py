"""Provides the public keys of an identity provider (JWKS), which are read from a file or a URL.

The keys are read when they are first needed and when they have become old. They are also read when
a token refers to an unknown key, because the provider may have added that key. If the provider does
not respond, authentication fails, but connections stay open.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import urllib.request
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from barnabas.errors import ConfigError
from barnabas.security.sasl import Identity, InvalidCredentials
from barnabas.security.token_rules import (
    TokenRules,
    UnknownKey,
    check_library,
    parse_keys,
    verify_token,
)
from barnabas.shielded import shielded

if TYPE_CHECKING:
    from barnabas.broker.runtime.watched_clock import WatchedClock

_log = logging.getLogger(__name__)

_SETTING: Final = "sasl.oauthbearer.jwks.endpoint.url"
_TIMEOUT_S: Final = 10.0
_MOST_BYTES: Final = 1024 * 1024
# unknown clients must not be able to make the broker query the provider constantly
_NOT_SOONER_MS: Final = 10_000
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


class SigningKeys:
    """Verifies tokens with keys that are read from a URL."""

    def __init__(
        self, url: str, refresh_ms: int, pause_ms: int, rules: TokenRules, clock: WatchedClock
    ) -> None:
        """Check the settings. After a failure, the next attempt is made no earlier than `pause_ms`
        later. Raises ConfigError.
        """
        check_library()
        _check(url)
        self._url = url
        self._refresh_ms = refresh_ms
        self._pause_ms = pause_ms
        self._rules = rules
        self._clock = clock
        self._keys: Sequence[Any] = ()
        self._read_at_ms: int | None = None
        self._not_before_ms = 0
        self._reading: asyncio.Task[None] | None = None

    async def verify(self, token: str) -> Identity:
        """Return the identity that is proved by a token. Raises InvalidCredentials."""
        now_ms = self._clock.monotonic_ms()
        if self._read_at_ms is None or now_ms - self._read_at_ms >= self._refresh_ms:
            await self._read_again(self._not_before_ms)
        if not self._keys:
            raise InvalidCredentials("no keys are loaded to verify tokens")
        try:
            return self._verify_now(token)
        # The provider may have changed its keys, so read them again once and verify the token once
        # more.
        except UnknownKey:
            recently_ms = (self._read_at_ms or 0) + _NOT_SOONER_MS
            await self._read_again(max(recently_ms, self._not_before_ms))
            return self._verify_now(token)

    def _verify_now(self, token: str) -> Identity:
        return verify_token(token, self._keys, self._rules, self._clock.wall_ms())

    async def _read_again(self, not_before_ms: int) -> None:
        """Read the keys again unless it is too soon. There is only one attempt at a time, which
        serves all callers that are waiting."""
        if self._reading is None:
            # A client must not be able to make this broker query the provider by sending tokens
            # with invented key ids.
            if self._clock.monotonic_ms() < not_before_ms:
                return
            self._reading = asyncio.get_running_loop().create_task(self._read())
        await shielded(self._reading)

    async def _read(self) -> None:
        try:
            fetching = asyncio.get_running_loop().run_in_executor(None, _fetch, self._url)
            self._keys = parse_keys(await fetching)
            self._read_at_ms = self._clock.monotonic_ms()
        except (OSError, ValueError) as error:
            # Continue to use the old keys until new keys are available.
            self._not_before_ms = self._clock.monotonic_ms() + self._pause_ms
            _log.error("%s=%s: cannot read the keys: %s", _SETTING, self._url, error)
        finally:
            self._reading = None


def _check(url: str) -> None:
    parts = urlsplit(url)
    if not url:
        raise ConfigError(f"{_SETTING} is missing: OAUTHBEARER needs the keys that sign tokens")
    is_local = parts.scheme == "http" and parts.hostname in _LOOPBACK
    if parts.scheme not in ("https", "file") and not is_local:
        raise ConfigError(
            f"{_SETTING}: {url} is not https:// or file://, and keys from an unprotected "
            "connection cannot be trusted"
        )


def _fetch(url: str) -> bytes:
    context = ssl.create_default_context() if url.startswith("https:") else None
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S, context=context) as answer:
        data: bytes = answer.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError(f"it is larger than {_MOST_BYTES} bytes")
    return data
