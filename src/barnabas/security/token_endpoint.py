"""Fetches tokens from an identity provider for clients (RFC 6749, 4.4).

    org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required
        clientId="orders" clientSecret="..." scope="kafka";

After a certain share of a token's lifetime (`sasl.login.refresh.*`), the next authentication
fetches a new token. If this fails, the old token is used until it expires. If the URL starts with
`file:`, it refers to a file with a token, which another program renews.
"""

from __future__ import annotations

import base64
import json
import logging
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from functools import lru_cache
from http.client import HTTPException
from typing import Any, Final, NamedTuple

from barnabas.clock import Clock, Random, SystemClock, SystemRandom
from barnabas.errors import ConfigError, SaslAuthenticationFailed
from barnabas.security.sasl import TokenUnavailable
from barnabas.security.tls_settings import TlsSettings

_log = logging.getLogger(__name__)

SETTING: Final = "sasl.oauthbearer.token.endpoint.url"
_TIMEOUT_S: Final = 10.0
_MOST_BYTES: Final = 1024 * 1024
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_MAY_PASS: Final = (408, 421, 423, 425, 429)  # other 4xx statuses are permanent
_SENDERS: Final = 16  # the limit per process, for different settings


class Refresh(NamedTuple):
    """The `sasl.login.refresh.*` settings, which determine when a token is replaced."""

    window_factor: float = 0.8  # the share of the lifetime
    window_jitter: float = 0.05  # the maximum random addition to that share
    min_period_s: int = 60
    buffer_s: int = 300  # a token is replaced this long before it expires


class Grant(NamedTuple):
    """A client's credentials, and the provider's URL."""

    url: str
    client_id: str = ""
    client_secret: str = ""
    scope: str = ""
    tls: TlsSettings | None = None  # if None, the system's authorities are trusted
    refresh: Refresh = Refresh()

    def __repr__(self) -> str:
        return f"Grant({self.url!r}, of {self.client_id!r})"


def grant_of(url: str, options: Mapping[str, str], refresh: Refresh) -> Grant:
    """Return the grant described by the options in a JAAS line. Raises ConfigError."""
    if urllib.parse.urlsplit(url).scheme == "file":
        return Grant(url)
    for name in ("clientId", "clientSecret"):
        if not options.get(name, "").strip():
            raise ConfigError(
                f"sasl.jaas.config: the option {name} is missing, which {SETTING} needs"
            )
    given = {name: text for name, text in options.items() if name.startswith("ssl.")}
    fields = {name.removeprefix("ssl.").replace(".", "_"): text for name, text in given.items()}
    unknown = fields.keys() - set(TlsSettings._fields)
    if unknown:
        raise ConfigError(f"sasl.jaas.config: unknown options {', '.join(sorted(unknown))}")
    return Grant(
        url,
        options["clientId"].strip(),
        options["clientSecret"].strip(),
        options.get("scope", "").strip(),
        TlsSettings(**fields) if fields else None,
        refresh,
    )


@lru_cache(maxsize=_SENDERS)
def token_endpoint(grant: Grant) -> TokenEndpoint:
    """Return the endpoint for a grant.

    Equal grants have the same endpoint, so all of their connections share a token."""
    return TokenEndpoint(grant, SystemClock(), SystemRandom())


class TokenEndpoint:
    """Fetches tokens from one provider. `token` blocks, so it must be called in a thread."""

    def __init__(self, grant: Grant, clock: Clock, random: Random) -> None:
        """Raises ConfigError."""
        _check(grant.url)
        self._grant = grant
        self._clock = clock
        self._random = random
        self._lock = threading.Lock()
        self._opener = _opener(grant.tls)
        self._token = ""
        self._ends_at_ms = 0  # by the wall clock, according to the token
        self._renewed_at_ms = 0

    def token(self) -> str:
        """Return a token that is valid. Raises TokenUnavailable or SaslAuthenticationFailed."""
        with self._lock:
            now_ms = self._clock.wall_ms()
            if not self._token or now_ms >= self._renewed_at_ms:
                try:
                    self._take(_fetch(self._opener, self._grant), now_ms)
                except TokenUnavailable as error:
                    # If the provider is unavailable for a short time, no connection should fail
                    # while the old token is valid.
                    if not self._token or now_ms >= self._ends_at_ms:
                        raise
                    _log.warning("keeping the previous token: %s", error)
            return self._token

    def _take(self, token: str, now_ms: int) -> None:
        begins_ms, ends_ms = _life(token)
        begins_ms = now_ms if begins_ms is None else begins_ms
        self._token = token
        self._ends_at_ms = now_ms if ends_ms is None else ends_ms
        chance = self._random.below(1001) / 1000
        self._renewed_at_ms = renewal_ms(
            (begins_ms, self._ends_at_ms), now_ms, self._grant.refresh, chance
        )

    def __repr__(self) -> str:
        return f"TokenEndpoint({self._grant!r})"


def renewal_ms(life: tuple[int, int], now_ms: int, refresh: Refresh, chance: float) -> int:
    """Return when to replace a newly fetched token that has this lifetime. `chance` is between 0
    and 1. As in Kafka, the minimum period and the buffer are used only if the lifetime is long
    enough for both.
    """
    begins_ms, ends_ms = life
    part = refresh.window_factor + refresh.window_jitter * chance
    wanted_ms = begins_ms + int((ends_ms - begins_ms) * part)
    pause_ms, reserve_ms = 1000 * refresh.min_period_s, 1000 * refresh.buffer_s
    # KIP-255: as in ExpiringCredentialRefreshingLogin, the period and the buffer are ignored if the
    # lifetime is too short for both.
    if now_ms + pause_ms + reserve_ms > ends_ms:
        return wanted_ms
    return max(min(wanted_ms, ends_ms - reserve_ms), now_ms + pause_ms)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Rejects redirects, because they would send the secret to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _opener(tls: TlsSettings | None) -> urllib.request.OpenerDirector:
    context = ssl.create_default_context()
    if tls is not None:
        from barnabas.security.tls import client_context  # most providers do not need it

        context = client_context(tls)
    return urllib.request.build_opener(_NoRedirect(), urllib.request.HTTPSHandler(context=context))


def _fetch(opener: urllib.request.OpenerDirector, grant: Grant) -> str:
    try:
        with opener.open(_request(grant), timeout=_TIMEOUT_S) as answer:
            data: bytes = answer.read(_MOST_BYTES + 1)
    except urllib.error.HTTPError as error:
        with error:
            reason = f"HTTP {error.code}{_oauth_error(error.read(_MOST_BYTES))}"
        # A wrong secret will not become valid, so fail immediately instead of retrying until the
        # client times out.
        if 400 <= error.code < 500 and error.code not in _MAY_PASS:
            raise SaslAuthenticationFailed(
                f"{SETTING}={grant.url} rejected the request: {reason}"
            ) from None
        raise TokenUnavailable(f"{SETTING}={grant.url}: {reason}") from None
    except (OSError, HTTPException) as error:
        reason = str(getattr(error, "reason", "") or error)
        raise TokenUnavailable(f"{SETTING}={grant.url}: {reason}") from None
    if grant.url.startswith("file:"):
        return _token_in(grant, data.decode("ascii", "replace").strip())
    try:
        return _token_in(grant, json.loads(data)["access_token"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise TokenUnavailable(f"{SETTING}={grant.url}: its response has no access_token") from None


def _request(grant: Grant) -> urllib.request.Request | str:
    if grant.url.startswith("file:"):
        return grant.url
    form = {"grant_type": "client_credentials"}
    if grant.scope:
        form["scope"] = grant.scope
    pair = base64.b64encode(f"{grant.client_id}:{grant.client_secret}".encode()).decode()
    return urllib.request.Request(
        grant.url,
        urllib.parse.urlencode(form).encode(),
        {
            "Accept": "application/json",
            "Authorization": f"Basic {pair}",
            "Cache-Control": "no-cache",
            "Content-Type": "application/x-www-form-urlencoded",
        },
    )


def _token_in(grant: Grant, token: object) -> str:
    if not isinstance(token, str) or not token or len(token) > _MOST_BYTES:
        raise TokenUnavailable(f"{SETTING}={grant.url} has no token")
    return token


def _oauth_error(body: bytes) -> str:
    """Return the error code in a provider's response. The code is not secret (RFC 6749, 5.2)."""
    try:
        code = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    is_code = isinstance(code, str) and code.isascii() and code.isprintable()
    return f" ({code[:60]})" if is_code else ""


def _life(token: str) -> tuple[int | None, int | None]:
    """Return when a JSON web token was issued and when it expires, in milliseconds.

    Both times are claims in the token.
    """
    parts = token.split(".")
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        claims = json.loads(base64.urlsafe_b64decode(padded))
        begins, ends = claims.get("iat"), claims.get("exp")
        return (
            None if begins is None else int(1000 * begins),
            None if ends is None else int(1000 * ends),
        )
    except (ValueError, IndexError, AttributeError, TypeError, OverflowError, RecursionError):
        return None, None


def _check(url: str) -> None:
    parts = urllib.parse.urlsplit(url)
    is_local = parts.scheme == "http" and parts.hostname in _LOOPBACK
    if parts.scheme not in ("https", "file") and not is_local:
        raise ConfigError(
            f"{SETTING}: {url} is not https:// or file://: anyone on the network could read the "
            "client's secret"
        )
