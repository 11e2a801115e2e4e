"""Defines both sides of a SASL exchange, for all mechanisms.

    client   initial message --> | server
             challenge       <-- |
             response        --> |   ... until the server is complete

Each mechanism is a pair of small state machines, which do no I/O.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, NamedTuple, Protocol

from barnabas.errors import BarnabasError, SaslAuthenticationFailed
from barnabas.security.acl import Principal

PLAIN: Final = "PLAIN"
SCRAM_SHA_256: Final = "SCRAM-SHA-256"
SCRAM_SHA_512: Final = "SCRAM-SHA-512"
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)


class InvalidCredentials(SaslAuthenticationFailed, code=58, name="SASL_AUTHENTICATION_FAILED"):
    """Raised if a message is malformed or does not prove an identity.

    The reason is meant for the log on this side, because the peer learns only that authentication
    failed.
    """


class TokenUnavailable(BarnabasError):
    """Raised if a token provider does not respond correctly. A retry may succeed."""


class Identity(NamedTuple):
    """A principal whose identity was proved by a completed exchange."""

    principal: Principal
    expires_at_ms: int | None = None
    """When the credentials expire, by the wall clock. None means that they do not expire."""
    by_token: bool = False
    """True if the identity was proved by a delegation token."""


class SaslServer(Protocol):
    """Represents the server's side of an exchange."""

    @property
    def identity(self) -> Identity | None:
        """The identity of the client, after the exchange has been completed."""
        ...

    @property
    def known_user(self) -> str:
        """The user that the client claims to be, or an empty string if there is no such user. An
        unknown name is not returned, because it may be a password that was typed into the wrong
        field.
        """
        ...

    def respond(self, message: bytes) -> bytes | Awaitable[bytes]:
        """Return the response to a message from the client. It is empty if there is no response.

        Raises SaslAuthenticationFailed, whose text is for the client, or InvalidCredentials, whose
        text is for the log.
        """
        ...


class SaslClient(Protocol):
    """Represents the client's side of an exchange."""

    def first(self) -> bytes:
        """Return the first message to send."""
        ...

    def respond(self, challenge: bytes) -> bytes | None:
        """Return the response to a challenge, or None if the exchange is complete on this side.

        Raises SaslAuthenticationFailed if the server rejects the client or cannot prove its own
        identity.
        """
        ...
