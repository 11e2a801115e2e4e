"""Implements the state machine that authenticates a connection with SASL.

    versions or handshake --ApiVersions--> handshake --SaslHandshake--> authenticate --> open
    open --SaslHandshake, if sessions end--> authenticate --> open, as the same user (KIP-368)

The rules and messages are the same as in Kafka's SaslServerAuthenticator. An unexpected request
raises IllegalSaslState, which closes the connection. If authentication fails, the reply that is
returned closes the connection.

Invariant: a connection's user never changes once it has been authenticated. No timer ends a
session. Instead, the connection checks before each request whether the session has expired.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from barnabas.broker.runtime.watched_clock import WatchedClock
from barnabas.errors import (
    IllegalSaslState,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanism,
)
from barnabas.printable import has_control_characters
from barnabas.protocol.message import Message
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeResponse
from barnabas.security.acl import Principal
from barnabas.security.oauthbearer import TokenRefused
from barnabas.security.sasl import Identity, InvalidCredentials, SaslServer

_MIN_AGAIN_MS: Final = 1000  # between two authentications on the same connection
# from this version of SaslHandshake on, messages are sent in SaslAuthenticate requests
_HAS_REQUESTS: Final = 1


class Stage(Enum):
    """The message that the connection is waiting for."""

    VERSIONS_OR_HANDSHAKE = "versions or handshake"
    HANDSHAKE = "handshake"
    AUTHENTICATE = "authenticate"
    OPEN = "open"
    REFUSED = "refused"


class EnabledMechanism(NamedTuple):
    """A mechanism that is enabled on a listener. It creates the server side of an exchange."""

    make_server: Callable[[], SaslServer]
    max_reauth_ms: int
    """The longest duration of a session, or 0 if it is not limited."""


class Reply(NamedTuple):
    """The reply to a message in the exchange, which is either a response or bytes without
    a header.
    """

    answer: Message | bytes
    refusal: str = ""
    """The reason, for the log, why the connection must be closed after the response. Empty if the
    connection stays open.
    """


class SaslSession:
    """The authentication of a single connection."""

    __slots__ = (
        "_began_at_ms",
        "_clock",
        "_has_requests",
        "_max_reauth_ms",
        "_mechanisms",
        "_server",
        "expires_at_ms",
        "identity",
        "known_user",
        "mechanism",
        "stage",
    )

    def __init__(self, mechanisms: Mapping[str, EnabledMechanism], clock: WatchedClock) -> None:
        self._mechanisms = mechanisms  # these may change during the session
        self._clock = clock
        self._max_reauth_ms = 0  # the value when the authentication began
        self.mechanism = ""
        self.known_user = ""
        """The user that a rejected client claimed to be, provided that this user exists."""
        self._server: SaslServer | None = None
        self._has_requests = False
        self._began_at_ms: int | None = None  # the time of the last reauthentication
        self.stage = Stage.VERSIONS_OR_HANDSHAKE
        self.identity: Identity | None = None
        self.expires_at_ms: int | None = None
        """When the open session ends according to the monotonic clock, or None if it does not end.
        """

    # --- expected requests -----------------------------------------------------------------------

    @property
    def takes_raw_messages(self) -> bool:
        """Return whether the next frame is a message of the mechanism, which has no header."""
        return self.stage is Stage.AUTHENTICATE and not self._has_requests

    @property
    def is_over(self) -> bool:
        """Return whether the open session has expired.

        If it has, only another authentication is allowed.
        """
        return self.expires_at_ms is not None and self._clock.monotonic_ms() >= self.expires_at_ms

    def on_api_versions(self) -> None:
        """Record an ApiVersions request, which is allowed once before the handshake. Raises
        IllegalSaslState.
        """
        if self.stage is not Stage.VERSIONS_OR_HANDSHAKE:
            raise IllegalSaslState(
                f"Unexpected ApiVersions request received during SASL authentication state "
                f"{self.stage.value}"
            )
        self.stage = Stage.HANDSHAKE

    def try_begin_again(self) -> bool:
        """Begin to re-authenticate if a SaslHandshake is allowed in the open session.

        If it returns False, the handshake gets an error.
        """
        now_ms = self._clock.monotonic_ms()
        # KIP-368: only a session that expires can be re-authenticated and, as in Kafka, no more
        # than once a second.
        if self.expires_at_ms is None or (
            self._began_at_ms is not None and now_ms - self._began_at_ms < _MIN_AGAIN_MS
        ):
            return False
        self._began_at_ms = now_ms
        self.stage = Stage.HANDSHAKE
        return True

    # --- the exchange ----------------------------------------------------------------------------

    def handshake(self, mechanism: str, version: int) -> Reply:
        """Select the mechanism that is requested by a SaslHandshake. Raises IllegalSaslState."""
        if self.stage not in (Stage.VERSIONS_OR_HANDSHAKE, Stage.HANDSHAKE):
            raise IllegalSaslState(
                "Unexpected Kafka request of type SASL_HANDSHAKE during SASL authentication."
            )
        names = list(self._mechanisms)
        enabled = self._mechanisms.get(mechanism)
        # The response lists the mechanisms that are available, and the connection is closed after
        # it.
        if enabled is None:
            self.stage, self.mechanism = Stage.REFUSED, mechanism
            answer = SaslHandshakeResponse(
                error_code=UnsupportedSaslMechanism.code, mechanisms=names
            )
            return Reply(answer, f"Unsupported SASL mechanism {mechanism[:40]!r}")
        self.stage = Stage.AUTHENTICATE
        self._has_requests = version >= _HAS_REQUESTS
        if self.identity is None or mechanism == self.mechanism:
            self.mechanism = mechanism
            self._max_reauth_ms = enabled.max_reauth_ms
            self._server = enabled.make_server()
        else:
            # KIP-368: as in Kafka, the handshake succeeds, but the next message gets the error
            # below.
            self._server = _OtherMechanism(mechanism, self.mechanism)
        return Reply(SaslHandshakeResponse(mechanisms=names))

    def authenticate(self, message: bytes) -> Reply | Awaitable[Reply]:
        """Process a message of the mechanism, with or without a request header."""
        server = self._server
        if self.stage is not Stage.AUTHENTICATE or server is None:
            raise IllegalSaslState(
                "Unexpected Kafka request of type SASL_AUTHENTICATE during SASL handshake."
            )
        try:
            token = server.respond(message)
        except SaslAuthenticationFailed as error:
            return self._refuse(error)
        if not isinstance(token, bytes):
            return self._answer_later(server, token)
        return self._answer(server, token)

    async def _answer_later(self, server: SaslServer, token: Awaitable[bytes]) -> Reply:
        try:
            return self._answer(server, await token)
        except SaslAuthenticationFailed as error:
            return self._refuse(error)

    def _answer(self, server: SaslServer, token: bytes) -> Reply:
        lifetime_ms = 0
        if server.identity is not None:
            try:
                lifetime_ms = self._complete(server.identity)
            except SaslAuthenticationFailed as error:
                return self._refuse(error)
        if not self._has_requests:
            return Reply(token)
        return Reply(SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime_ms))

    def _complete(self, identity: Identity) -> int:
        """Open the session, and return how long it lasts, or 0 if it is not limited."""
        if has_control_characters(identity.principal.name):
            # A name that contains control characters could be used to forge lines in logs or tool
            # output.
            raise SaslAuthenticationFailed("the user name contains control characters")
        before = self.identity
        # KIP-368: requests that are still in progress were authorized for the first user.
        if before is not None and before.principal != identity.principal:
            raise SaslAuthenticationFailed(
                "Cannot change principals during re-authentication from "
                f"{_text_of(before.principal)}: {_text_of(identity.principal)}"
            )
        lifetimes_ms = []
        # The session ends when the token expires or `connections.max.reauth.ms` has elapsed,
        # whichever is sooner.
        if identity.expires_at_ms is not None:
            lifetimes_ms.append(max(identity.expires_at_ms - self._clock.wall_ms(), 0))
        if self._max_reauth_ms > 0:
            lifetimes_ms.append(self._max_reauth_ms)
        self.expires_at_ms = None
        if lifetimes_ms:
            self.expires_at_ms = self._clock.monotonic_ms() + min(lifetimes_ms)
        self.identity, self._server, self.stage = identity, None, Stage.OPEN
        return min(lifetimes_ms, default=0)

    def _refuse(self, error: SaslAuthenticationFailed) -> Reply:
        if self._server is not None:
            self.known_user = self._server.known_user
        self.stage, self._server = Stage.REFUSED, None
        text = str(error)
        # Log the reason but do not return it, because it could reveal whether the user exists
        # (KIP-152).
        if isinstance(error, InvalidCredentials):
            which = "authentication" if self.identity is None else "re-authentication"
            text = (
                f"Authentication failed during {which} due to invalid credentials with SASL "
                f"mechanism {self.mechanism}"
            )
        if not self._has_requests:
            # Without request headers, there is no field for the error, so close the connection, as
            # Kafka does.
            return Reply(b"", str(error))
        answer = SaslAuthenticateResponse(
            error_code=SaslAuthenticationFailed.code, error_message=text
        )
        return Reply(answer, error.reason if isinstance(error, TokenRefused) else str(error))


class _OtherMechanism:
    """The server side after a handshake that selected a different mechanism from the first
    handshake.
    """

    identity: Identity | None = None
    known_user = ""

    def __init__(self, wanted: str, first: str) -> None:
        self._text = (
            f"SASL mechanism '{wanted}' requested by client is not supported for re-authentication "
            f"of mechanism '{first}'"
        )

    def respond(self, message: bytes) -> bytes:
        raise SaslAuthenticationFailed(self._text)


def _text_of(principal: Principal) -> str:
    return f"{principal.kind}.{principal.name}"
