"""Authenticates a connection with SASL, and determines when the session ends.

    SaslHandshake 1 --> the mechanisms that the broker supports
    SaslAuthenticate --> a challenge, or the end          ... until the mechanism is complete

A rejection is permanent. It raises SaslAuthenticationFailed, UnsupportedSaslMechanism or
IllegalSaslState with the broker's message. This module never shows or logs secrets.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from barnabas.client.errors import ConnectionLost
from barnabas.errors import (
    ConfigError,
    IllegalSaslState,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanism,
    error_for_code,
)
from barnabas.protocol.api import SASL_AUTHENTICATE, SASL_HANDSHAKE, Api
from barnabas.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.security.jaas import LoginModule, check_mechanism, parse_jaas
from barnabas.security.plain import PlainClient
from barnabas.security.sasl import (
    MECHANISMS,
    OAUTHBEARER,
    PLAIN,
    SaslClient,
    TokenUnavailable,
)
from barnabas.security.scram import ScramClient

if TYPE_CHECKING:
    from barnabas.client.security.config import SecurityConfig
    from barnabas.protocol.codec import Message
    from barnabas.security.token_endpoint import TokenEndpoint

Ask = Callable[[Api, "Message", int], Awaitable["Message"]]
"""Sends a request, given the API, the request and the version, and returns the response."""

_JAAS: Final = "sasl.jaas.config"
_HANDSHAKE_VERSION: Final = 1


def check_login(config: SecurityConfig) -> None:
    """Raise ConfigError unless the options name a mechanism and contain credentials for it."""
    mechanism = config.sasl_mechanism
    if mechanism not in MECHANISMS:
        hint = " (Kerberos)" if mechanism == "GSSAPI" else ""
        raise ConfigError(
            f"sasl.mechanism: {mechanism!r}{hint} is not supported; set one of "
            f"{', '.join(MECHANISMS)}"
        )
    if mechanism == OAUTHBEARER:
        _token_provider(config)
    else:
        _user(config)


async def log_in(broker: object, config: SecurityConfig, authenticate: int, ask: Ask) -> int:
    """Authenticate a new connection, or reauthenticate an existing connection (KIP-368).

    Returns the lifetime of the session in milliseconds, or 0 if the session never ends.

    `broker` is the broker's name in errors, and `authenticate` is the version of SaslAuthenticate.
    Raises the errors listed in the module docstring and the errors of `ask`.
    """
    mechanism = config.sasl_mechanism
    exchange = await _exchange(config)
    hello = await ask(SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=mechanism), _HANDSHAKE_VERSION)
    assert isinstance(hello, SaslHandshakeResponse)
    if hello.error_code == IllegalSaslState.code:
        raise IllegalSaslState(
            f"{broker}: this port of the broker has no SASL authentication: set security.protocol "
            "to PLAINTEXT or SSL, or use the port of a SASL listener"
        )
    if hello.error_code == UnsupportedSaslMechanism.code:
        raise UnsupportedSaslMechanism(
            f"{broker} does not offer {mechanism}; set sasl.mechanism to one of "
            f"{', '.join(hello.mechanisms)}"
        )
    if hello.error_code:
        raise error_for_code(hello.error_code)(f"{broker} refused the SASL handshake")
    # The number of rounds depends on the mechanism: one for PLAIN, two for SCRAM. The last response
    # contains the session's lifetime (KIP-368).
    message: bytes | None = exchange.first()
    lifetime_ms = 0
    while message is not None:
        request = SaslAuthenticateRequest(auth_bytes=message)
        answer = await ask(SASL_AUTHENTICATE, request, authenticate)
        assert isinstance(answer, SaslAuthenticateResponse)
        if answer.error_code:
            kind = error_for_code(answer.error_code)
            raise kind(f"{broker}: {answer.error_message or kind.meaning}")
        lifetime_ms = answer.session_lifetime_ms
        message = exchange.respond(bytes(answer.auth_bytes))
    return lifetime_ms


async def _exchange(config: SecurityConfig) -> SaslClient:
    mechanism = config.sasl_mechanism
    if mechanism == OAUTHBEARER:
        from barnabas.security.oauthbearer import OAuthBearerClient

        module = _module(config)
        extensions = {} if module is None else module.extensions
        return OAuthBearerClient(await _token(_token_provider(config)), extensions)
    user, password, is_token = _user(config)
    if mechanism == PLAIN:
        return PlainClient(user, password)
    return ScramClient(mechanism, user, password, is_token=is_token)


def _user(config: SecurityConfig) -> tuple[str, str, bool]:
    """Return the user, the password, and whether they are the id and HMAC of a delegation token."""
    own = (config.sasl_plain_username, config.sasl_plain_password)
    module = _module(config)
    if module is None:
        if not all(own):
            raise ConfigError(
                f"{_JAAS} is missing: {config.sasl_mechanism} needs a user and a password, either "
                "there or in sasl_plain_username and sasl_plain_password"
            )
        return (*own, False)
    if any(own):
        raise ConfigError(f"{_JAAS} and sasl.plain.username are both set; set only one of them")
    try:
        user, password = module.options["username"], module.options["password"]
    except KeyError as error:
        raise ConfigError(f"{_JAAS}: the option {error} is missing") from None
    is_token = module.options.get("tokenauth", "").lower() == "true"
    if is_token and config.sasl_mechanism == PLAIN:
        raise ConfigError(f"{_JAAS}: tokenauth is for SCRAM, but sasl.mechanism is PLAIN")
    return user, password, is_token


def _module(config: SecurityConfig) -> LoginModule | None:
    if not config.sasl_jaas_config.strip():
        return None
    module = parse_jaas(_JAAS, config.sasl_jaas_config)
    check_mechanism(_JAAS, module, config.sasl_mechanism)
    return module


def _token_provider(config: SecurityConfig) -> Callable[[], Any]:
    module = _module(config)
    if module is not None and any(name.startswith("unsecuredLogin") for name in module.options):
        raise ConfigError(f"{_JAAS}: unsigned tokens are not supported")
    given = config.sasl_oauth_token_provider
    if config.sasl_oauthbearer_token_endpoint_url:
        if given is not None:
            raise ConfigError(
                "sasl.oauth.token.provider and sasl.oauthbearer.token.endpoint.url are both set; "
                "set only one of them"
            )
        return _endpoint(config, {} if module is None else module.options).token
    provider = getattr(given, "token", given)
    if not callable(provider):
        raise ConfigError(
            "sasl.oauth.token.provider is missing: OAUTHBEARER needs a callable, or an object "
            "with a method `token`, that returns a token as text; or "
            "sasl.oauthbearer.token.endpoint.url"
        )
    return provider  # type: ignore[no-any-return]  # checked to be callable


def _endpoint(config: SecurityConfig, options: Mapping[str, str]) -> TokenEndpoint:
    """Return the token endpoint that the options specify. Raises ConfigError."""
    # This is not imported at the top, because other mechanisms do not need it.
    from barnabas.security.token_endpoint import Refresh, grant_of, token_endpoint

    refresh = Refresh(
        config.sasl_login_refresh_window_factor,
        config.sasl_login_refresh_window_jitter,
        config.sasl_login_refresh_min_period_seconds,
        config.sasl_login_refresh_buffer_seconds,
    )
    return token_endpoint(grant_of(config.sasl_oauthbearer_token_endpoint_url, options, refresh))


async def _token(provider: Callable[[], Any]) -> str:
    """Return a fresh token. A plain function is run in a thread, because it may block.

    If the provider fails, ConnectionLost is raised, which is retriable because the provider's
    server may recover.
    """
    try:
        if inspect.iscoroutinefunction(provider):
            token = await provider()
        else:
            token = await asyncio.get_running_loop().run_in_executor(None, provider)
    except SaslAuthenticationFailed:  # raised by a rejected provider
        raise
    except TokenUnavailable as error:
        raise ConnectionLost(f"there is no token: {error}") from error
    # the user's function may raise anything, and the text may contain a secret
    except Exception as error:
        raise ConnectionLost(
            f"there is no token: sasl.oauth.token.provider raised {type(error).__name__}"
        ) from error
    if not isinstance(token, str) or not token:
        raise SaslAuthenticationFailed(
            f"sasl.oauth.token.provider returned {type(token).__name__}; it must return "
            "the token as a nonempty string"
        )
    return token
