"""Defines both ends of a SASL exchange, for any mechanism.

    client   initial message --> | server
             challenge       <-- |
             response        --> |   ... until the server is complete

A mechanism is a pair of small state machines that do no I/O.
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
    """A message in the exchange is malformed or proves nothing. The reason is for this side's log:
    the peer learns only that authentication failed.
    """


class TokenUnavailable(BarnabasError):
    """A token provider did not answer correctly; a retry may succeed."""


class Identity(NamedTuple):
    """A principal whose identity a completed exchange has proved."""

    principal: Principal
    expires_at_ms: int | None = None
    """The wall-clock time at which the credentials expire; None means that they do not expire."""
    by_token: bool = False
    """True if a delegation token proved the identity."""


class SaslServer(Protocol):
    """Represents the server's end of one exchange."""

    @property
    def identity(self) -> Identity | None:
        """The client's identity, once the exchange is complete."""
        ...

    @property
    def known_user(self) -> str:
        """The user that the client claims to be; empty if there is no such user. An unknown name
        may be a password typed into the wrong field.
        """
        ...

    def respond(self, message: bytes) -> bytes | Awaitable[bytes]:
        """Return the response to a client's message, or empty bytes if there is none.

        Raises SaslAuthenticationFailed with the text for the client, or InvalidCredentials with a
        text for the log.
        """
        ...


class SaslClient(Protocol):
    """Represents the client's end of one exchange."""

    def first(self) -> bytes:
        """Return the first message."""
        ...

    def respond(self, challenge: bytes) -> bytes | None:
        """Return the response to a challenge, or None once this end has completed the exchange.

        Raises SaslAuthenticationFailed if the server cannot prove its identity or rejects the
        client.
        """
        ...
