"""Handles the frames of a connection until its client has authenticated.

Re-authentication (KIP-368) is handled here too.

    frame --> ApiVersions                     to its handler
          |-> SaslHandshake, SaslAuthenticate to the session; a failure closes after a delay
          `-> anything else                   closes the connection

After a client has authenticated, its frames are no longer checked, unless its session expires. The
delay after a failed authentication affects only this connection.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.network.response_queue import Encoded, ResponseQueue
from barnabas.broker.security.sasl_session import Reply, SaslSession, Stage
from barnabas.errors import CorruptData, IllegalSaslState, UnsupportedVersion
from barnabas.protocol.api import API_VERSIONS, APIS, SASL_AUTHENTICATE, SASL_HANDSHAKE, Api
from barnabas.protocol.codec import decode
from barnabas.protocol.frame import RequestHeader, decode_request_header, encode_response
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.types import Part

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from barnabas.broker.network.client_connection import ClientConnection
    from barnabas.broker.network.failed_logins import FailedLogin
    from barnabas.net.connection import Connection

_LENGTH: Final = struct.Struct(">i")
_KEY: Final = struct.Struct(">h")
_MOST_BYTES: Final = 4 * 1024 * 1024  # limit for reauthentication; tokens can be long

Encode = Callable[[Reply], list[Part]]


class GateSettings(NamedTuple):
    """The settings that all gates of one listener share."""

    failure_delay_ms: int
    admit: Callable[[Connection], None]
    """Called when a connection's client has authenticated."""
    on_failed: Callable[[FailedLogin], None]
    """Called when a client has failed to authenticate."""


class SaslGate:
    """The gate of one connection. `take` is called with each of its frames."""

    __slots__ = (
        "_client",
        "_client_id",
        "_connection",
        "_has_failed",
        "_queue",
        "_session",
        "_settings",
    )

    def __init__(
        self,
        session: SaslSession,
        connection: Connection,
        client: ClientConnection,
        queue: ResponseQueue,
        settings: GateSettings,
    ) -> None:
        self._session = session
        self._connection = connection
        self._client = client
        self._client_id = ""  # from the last request with a header
        self._has_failed = False
        self._queue = queue
        self._settings = settings

    @property
    def is_needed(self) -> bool:
        """Return whether later frames must be checked as well."""
        session = self._session
        return session.stage is not Stage.OPEN or session.expires_at_ms is not None

    def take(self, frame: memoryview) -> bool:
        """Handle a frame that is part of an authentication, or return False if the frame should go
        to its handler.

        Raises IllegalSaslState or CorruptData, and the connection is then closed.
        """
        session = self._session
        if session.stage is Stage.OPEN:
            # A handshake in an open session starts a reauthentication (KIP-368).
            is_handshake = len(frame) >= 2 and _KEY.unpack_from(frame)[0] == SASL_HANDSHAKE.key
            if not is_handshake or not session.try_begin_again():
                if session.is_over:
                    raise IllegalSaslState(
                        "the session expired and the client did not re-authenticate"
                    )
                return False
        # After a SaslHandshake of version 0, the mechanism's messages arrive without a request
        # header, because SaslAuthenticate was not added until KIP-152.
        elif session.takes_raw_messages:
            self._answer(SASL_AUTHENTICATE, 0, session.authenticate(bytes(frame)), _raw)
            return True
        header = decode_request_header(frame)
        self._client_id = header.client_id or ""
        if header.api_key == SASL_HANDSHAKE.key:
            self._handshake(header)
        elif header.api_key == SASL_AUTHENTICATE.key:
            self._authenticate(header)
        elif header.api_key == API_VERSIONS.key:
            if header.api_version <= API_VERSIONS.max_version:  # otherwise the caller asks again
                session.on_api_versions()
            return False
        else:
            name = APIS[header.api_key].name if header.api_key in APIS else str(header.api_key)
            raise IllegalSaslState(f"request {name} before the client has authenticated")
        return True

    def on_failed(self, reason: str) -> None:
        """Report that authentication failed, once per connection."""
        # More requests can arrive before the connection is closed.
        if self._has_failed:
            return
        self._has_failed = True
        from barnabas.broker.network.failed_logins import FailedLogin  # loaded on first use

        session = self._session
        login = FailedLogin(
            self._client.listener,
            self._connection.peer_address,
            reason,
            mechanism=session.mechanism,
            user=session.known_user,
            client_id=self._client_id,
        )
        self._settings.on_failed(login)

    def _handshake(self, header: RequestHeader) -> None:
        request = decode(SaslHandshakeRequest, header.body, _served_version(SASL_HANDSHAKE, header))
        reply = self._session.handshake(request.mechanism, header.api_version)
        self._answer(SASL_HANDSHAKE, header.api_version, reply, _encoder(SASL_HANDSHAKE, header))

    def _authenticate(self, header: RequestHeader) -> None:
        body = memoryview(bytes(header.body))
        request = decode(SaslAuthenticateRequest, body, _served_version(SASL_AUTHENTICATE, header))
        reply = self._session.authenticate(bytes(request.auth_bytes))
        self._answer(
            SASL_AUTHENTICATE, header.api_version, reply, _encoder(SASL_AUTHENTICATE, header)
        )

    def _answer(
        self, api: Api, version: int, reply: Reply | Awaitable[Reply], encode: Encode
    ) -> None:
        if isinstance(reply, Reply) and not reply.refusal:
            self._enter()
            self._queue.answer_encoded(api, version, Encoded(encode(reply)))
        else:
            self._queue.answer_encoded(api, version, self._answer_later(reply, encode))

    async def _answer_later(self, reply: Reply | Awaitable[Reply], encode: Encode) -> Encoded:
        if not isinstance(reply, Reply):
            reply = await reply
        if not reply.refusal:
            self._enter()
            return Encoded(encode(reply))
        # Report the failure during the delay, so that clients cannot tell that some names take
        # longer than others.
        asyncio.get_running_loop().call_soon(self.on_failed, reply.refusal)
        # As in Kafka, connection.failed.authentication.delay.ms slows down password guessing.
        await asyncio.sleep(self._settings.failure_delay_ms / 1000)
        return Encoded(encode(reply), is_last=True)

    def _enter(self) -> None:
        """Set the client's principal when it becomes known."""
        identity = self._session.identity
        if self._session.stage is Stage.OPEN and identity is not None:
            self._client.principal = identity.principal
            self._client.by_token = identity.by_token
            self._client.by_mechanism = self._session.mechanism
            self._settings.admit(self._connection)


def _served_version(api: Api, header: RequestHeader) -> int:
    """Return the version of a request. Raises UnsupportedVersion or CorruptData."""
    version = header.api_version
    if not api.min_version <= version <= api.max_version:
        raise UnsupportedVersion(f"{api.name} version {version} is not supported")
    if len(header.body) > _MOST_BYTES:
        raise CorruptData(f"{api.name} request of {len(header.body)} bytes")
    return version


def _encoder(api: Api, header: RequestHeader) -> Encode:
    version, correlation_id = header.api_version, header.correlation_id

    def encode(reply: Reply) -> list[Part]:
        assert not isinstance(reply.answer, bytes)
        return encode_response(api, version, correlation_id, reply.answer)

    return encode


def _raw(reply: Reply) -> list[Part]:
    """Encode a message that has no header. If authentication failed, nothing is sent."""
    assert isinstance(reply.answer, bytes)
    return [] if reply.refusal else [_LENGTH.pack(len(reply.answer)) + reply.answer]
