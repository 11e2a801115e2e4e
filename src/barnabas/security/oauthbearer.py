"""Implements SASL OAUTHBEARER (RFC 7628, KIP-255), in which a signed token replaces the password.

    n,,\\x01auth=Bearer <token>\\x01\\x01  -->
                                      <--  empty, or {"status":"invalid_token"}
    \\x01 (the error was understood)   -->
                                      <--  refused

As in Kafka, extensions (`traceId=...`) are accepted but have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final

from barnabas.errors import SaslAuthenticationFailed
from barnabas.security.sasl import Identity, InvalidCredentials

_SEPARATOR: Final = "\x01"
_UNDERSTOOD: Final = b"\x01"
_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authzid>{_NAME}))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x20-\x7e\t\r\n]+\x01)*)\x01"
)
_AUTH: Final = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +(?P<token>[-_.a-zA-Z0-9]+)")
_NO_EXTENSIONS: Final[Mapping[str, str]] = MappingProxyType({})
_INVALID: Final = '{"status":"invalid_token"}'

Verify = Callable[[str], Awaitable[Identity]]
"""Returns the identity that a token proves, or raises InvalidCredentials with a reason to log."""


class TokenRefused(SaslAuthenticationFailed, code=58, name="SASL_AUTHENTICATION_FAILED"):
    """Raised if a token is refused. The text is for the client, and the reason is for the log."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        self.reason = reason


class OAuthBearerServer:
    """The server's side of one exchange."""

    def __init__(self, verify: Verify) -> None:
        self._verify = verify
        self._error = ""  # the text that was sent to the client
        self._reason = ""  # the reason, which is only logged
        self.identity: Identity | None = None
        self.known_user = ""  # a token that is not verified identifies nobody

    def respond(self, message: bytes) -> bytes | Awaitable[bytes]:
        # RFC 7628: the exchange does not fail until the client has acknowledged the error with a
        # single byte.
        if self._error:
            if message == _UNDERSTOOD:
                raise TokenRefused(self._error, self._reason)
            raise InvalidCredentials("a message after the end of an OAUTHBEARER exchange")
        found = _FIRST.fullmatch(message.decode("latin-1"))
        if found is None:
            raise InvalidCredentials("Invalid OAUTHBEARER client first message")
        pairs = [pair.partition("=")[::2] for pair in found["pairs"].split(_SEPARATOR) if pair]
        values = dict(pairs)
        auth = _AUTH.fullmatch(values.get("auth", ""))
        # If a key is repeated, the value is ambiguous.
        if auth is None or len(values) < len(pairs):
            raise InvalidCredentials("Invalid OAUTHBEARER client first message: 'auth'")
        return self._judge(auth["token"], found["authzid"] or "")

    async def _judge(self, token: str, authorization_id: str) -> bytes:
        try:
            identity = await self._verify(token)
        except InvalidCredentials as error:
            self._error, self._reason = _INVALID, str(error)
            return _INVALID.encode()
        # As in Kafka, a client cannot act on behalf of another user.
        if authorization_id not in ("", identity.principal.name):
            raise SaslAuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different "
                "from the token's principal name"
            )
        self.identity = identity
        return b""


class OAuthBearerClient:
    """The client's side of one exchange."""

    def __init__(self, token: str, extensions: Mapping[str, str] = _NO_EXTENSIONS) -> None:
        self._token = token
        self._extensions = extensions

    def first(self) -> bytes:
        more = "".join(f"{name}={text}\x01" for name, text in self._extensions.items())
        return f"n,,\x01auth=Bearer {self._token}\x01{more}\x01".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        """Acknowledge an error from the broker, which then rejects the client with a text."""
        return _UNDERSTOOD if challenge else None
