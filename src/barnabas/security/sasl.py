"""One SASL exchange as its two ends see it, whatever the mechanism.

    client   initial message --> | server
             challenge       <-- |
             response        --> |   ... until the server is complete

A mechanism is a pair of small machines without input or output of their own.
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
    """A message of the exchange is malformed or proves nothing. Its reason is for this side's log:
    the peer learns no more than that it failed."""


class TokenUnavailable(BarnabasError):
    """A provider of tokens does not answer as it should; it may do so the next time."""


class Identity(NamedTuple):
    """A principal that a complete exchange has proved."""

    principal: Principal
    expires_at_ms: int | None = None
    """When the credentials end, by the wall clock; None: they do not."""
    by_token: bool = False
    """Whether a delegation token was the proof."""


class SaslServer(Protocol):
    """The server's end of one exchange."""

    @property
    def identity(self) -> Identity | None:
        """The client's identity, once the exchange is complete."""
        ...

    def respond(self, message: bytes) -> bytes | Awaitable[bytes]:
        """The answer to a client's message, empty if there is none.

        Raises SaslAuthenticationFailed with the text for the client, InvalidCredentials with a text
        for the log.
        """
        ...


class SaslClient(Protocol):
    """The client's end of one exchange."""

    def first(self) -> bytes:
        """The first message."""
        ...

    def respond(self, challenge: bytes) -> bytes | None:
        """The answer to a challenge; None once the exchange is complete for this end.

        Raises SaslAuthenticationFailed if the server cannot prove itself, or refuses.
        """
        ...
