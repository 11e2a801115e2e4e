"""From a frame to its handler and back: ordered responses, two stages, limits.

    frame --> header --> the API table --> decode --> handler, stage one (plain call)
                                            |- a message         answer now
                                            |- a coroutine       answer when it is done
                                            |- Hold(coroutine)   ... and read nothing till then
                                            `- None              no answer (acks=0)

Invariant: responses leave a connection in the order of its requests, whatever finishes first.
What does not parse, or asks for what is not there, closes its connection and no other.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any, NamedTuple

from barnabas.broker.authorization import ANONYMOUS
from barnabas.broker.context import Context, Node
from barnabas.errors import BarnabasError, CorruptData, KafkaError, UnsupportedVersion
from barnabas.net.connection import Connection
from barnabas.net.memory import MemoryPool
from barnabas.protocol.api import API_VERSIONS, APIS, PRODUCE, Api
from barnabas.protocol.codec import Message
from barnabas.protocol.frame import (
    RequestHeader,
    decode_request,
    decode_request_header,
    encode_response,
)
from barnabas.types import FileSlice, Part

_log = logging.getLogger(__name__)

_OLDEST_PRODUCE = 3  # magic 2; advertised from 0 for librdkafka before 2.11.1 (KAFKA-18659)
_MAX_IN_FLIGHT = 64  # unanswered requests a connection may have before it is read no further

Later = Coroutine[Any, Any, Message]


class Hold(NamedTuple):
    """Stage one is not over: the connection's next frame must not overtake this one."""

    until: Later


Outcome = Message | Later | Hold | None
Handler = Callable[[Context, Any], Outcome]


class Router:
    """All connections of one listener, and the way of their frames."""

    def __init__(self, node: Node, listener: str, memory: MemoryPool) -> None:
        self._node = node
        self._listener = listener
        self._memory = memory
        self._handlers: dict[int, Handler] = {}
        self._channels: dict[Connection, _Channel | None] = {}  # None until the first frame
        self._max_frame_bytes = node.config.int("socket.request.max.bytes")

    def accept(self) -> Connection:
        """The protocol of a new connection."""
        connection = Connection(
            self._on_frame,
            self._on_close,
            max_frame_bytes=self._max_frame_bytes,
            memory=self._memory,
            pause_when_blocked=True,
        )
        self._channels[connection] = None
        return connection

    def close(self) -> None:
        """Close every connection; what is being answered is given up."""
        for connection, channel in list(self._channels.items()):
            if channel is not None:
                channel.cancel()
            connection.abort()

    def _on_close(self, connection: Connection, error: Exception | None) -> None:
        channel = self._channels.pop(connection, None)
        if channel is not None:
            channel.cancel()
        if isinstance(error, CorruptData):
            _log.warning("connection closed: %s", error)

    def _on_frame(self, connection: Connection, frame: memoryview) -> None:
        channel = self._channels[connection]
        if channel is None:
            channel = self._channels[connection] = self._open(connection)
        try:
            self._dispatch(channel, frame)
        except BarnabasError as error:
            self._close_on(connection, error)
        except Exception:
            # A bug of ours: one connection pays for it, and the log says where it is.
            _log.exception("request from %s:%d failed", *connection.peer_address)
            connection.abort()

    def _open(self, connection: Connection) -> _Channel:
        context = Context(self._node, self._listener, ANONYMOUS, connection.peer_address[0])
        context.local_host = connection.local_address[0]
        return _Channel(connection, context)

    def _dispatch(self, channel: _Channel, frame: memoryview) -> None:
        header = decode_request_header(frame)
        api = APIS.get(header.api_key)
        if api is None:
            raise UnsupportedVersion(f"API key {header.api_key} is not served")
        version = header.api_version
        if not api.min_version <= version <= api.max_version:
            if api is not API_VERSIONS:
                raise UnsupportedVersion(f"{api.name} version {version} is not served")
            channel.answer_now(api, 0, header.correlation_id, _api_versions_fallback())
            return
        if api is PRODUCE and version < _OLDEST_PRODUCE:
            raise UnsupportedVersion(f"Produce version {version}: record batches need version 3")
        handler = self._handlers.get(api.key) or self._load(api)
        request = decode_request(header)
        context = channel.context.for_request(api, version, header.client_id)
        outcome = handler(context, request)
        if isinstance(outcome, Message):
            channel.answer_now(api, version, header.correlation_id, outcome)
        elif isinstance(outcome, Hold):
            channel.answer_later(api, header, outcome.until, held=True)
        elif outcome is not None:
            channel.answer_later(api, header, outcome, held=False)

    def _load(self, api: Api) -> Handler:
        """Import a handler at its first request: the start does not pay for what nobody asks."""
        handler: Handler = import_module(f"barnabas.broker.handlers.{api.stem}").handle
        self._handlers[api.key] = handler
        return handler

    def _close_on(self, connection: Connection, error: Exception) -> None:
        host, port = connection.peer_address
        _log.warning("connection from %s:%d closed: %s", host, port, error)
        connection.close()


def _api_versions_fallback() -> Message:
    """KIP-511: a client newer than us learns, in version 0, how far ApiVersions goes here."""
    from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse

    own = ApiVersion(api_key=API_VERSIONS.key, min_version=0, max_version=API_VERSIONS.max_version)
    return ApiVersionsResponse(error_code=UnsupportedVersion.code, api_keys=[own])


class _Slot:
    """A response's place in its connection's order; `parts` is None until it is known."""

    __slots__ = ("is_ready", "parts", "task")

    def __init__(self) -> None:
        self.is_ready = False
        self.parts: list[Part] = []
        self.task: asyncio.Task[None] | None = None


class _Channel:
    """One connection's unanswered requests."""

    __slots__ = ("_connection", "_is_full", "_slots", "context")

    def __init__(self, connection: Connection, context: Context) -> None:
        self._connection = connection
        self._slots: deque[_Slot] = deque()
        self._is_full = False
        self.context = context

    def answer_now(self, api: Api, version: int, correlation_id: int, response: Message) -> None:
        parts = encode_response(api, version, correlation_id, response)
        if not self._slots:
            self._connection.write(parts)
            return
        slot = _Slot()
        slot.parts = parts
        slot.is_ready = True
        self._slots.append(slot)

    def answer_later(self, api: Api, header: RequestHeader, later: Later, *, held: bool) -> None:
        slot = _Slot()
        self._slots.append(slot)
        if held:
            self._connection.pause_reading()
        if len(self._slots) >= _MAX_IN_FLIGHT and not self._is_full:
            self._is_full = True
            self._connection.pause_reading()
        identity = (api, header.api_version, header.correlation_id)
        slot.task = asyncio.get_running_loop().create_task(self._await(slot, identity, later, held))

    async def _await(
        self, slot: _Slot, identity: tuple[Api, int, int], later: Later, held: bool
    ) -> None:
        api, version, correlation_id = identity
        try:
            slot.parts = encode_response(api, version, correlation_id, await later)
            slot.is_ready = True
        except KafkaError as error:
            _log.warning("%s from %s closed its connection: %s", api.name, self._who(), error)
            self._connection.close()
        except Exception:
            _log.exception("%s from %s failed", api.name, self._who())
            self._connection.abort()
        if held and not self._connection.is_closing:
            self._connection.resume_reading()
        self._send_ready()

    def _send_ready(self) -> None:
        slots = self._slots
        while slots and slots[0].is_ready:
            self._connection.write(slots.popleft().parts)
        if self._is_full and len(slots) < _MAX_IN_FLIGHT and not self._connection.is_closing:
            self._is_full = False
            self._connection.resume_reading()

    def cancel(self) -> None:
        """The connection is gone: nobody will read these answers."""
        for slot in self._slots:
            if slot.task is not None and not slot.is_ready:
                slot.task.cancel()
            for part in slot.parts:
                if isinstance(part, FileSlice):
                    part.release()
        self._slots.clear()

    def _who(self) -> str:
        host, port = self._connection.peer_address
        return f"{host}:{port}"
