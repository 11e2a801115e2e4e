"""From a frame to its handler and back: ordered responses, two stages, limits.

    frame --> header --> the API table --> decode --> handler, stage one (plain call)
                                            |- a message         answer now
                                            |- a Staged          answer when the logs are written
                                            |- a coroutine       answer when it is done
                                            |- Hold(coroutine)   ... and read nothing till then
                                            `- None              no answer (acks=0)

What the Produce requests of one wake-up append is written at its end, with one system call per
partition, and then they are answered; a request of another kind among them has it written before
it is looked at, so nobody sees a difference but the clock.

Invariant: responses leave a connection in the order of its requests, whatever finishes first.
What does not parse, or asks for what is not there, closes its connection and no other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from barnabas.broker.context import Context
from barnabas.broker.network.channel import LARGE_BYTES, Channel, Hold, Outcome
from barnabas.broker.network.connections import Connections
from barnabas.broker.node import Node
from barnabas.broker.security.authorization import ANONYMOUS
from barnabas.errors import BarnabasError, CorruptData, UnsupportedVersion
from barnabas.net.connection import Address, Connection
from barnabas.net.memory import MemoryPool
from barnabas.protocol.api import APIS, Api
from barnabas.protocol.codec import Message, decoder
from barnabas.protocol.frame import RequestHeader, decode_request_header

_log = logging.getLogger(__name__)

_LARGE_AT_ONCE = 4

Handler = Callable[[Context, Any], Outcome]


class Route(NamedTuple):
    """What is done with the requests of one API and version."""

    api: Api
    decode: Callable[[memoryview], tuple[Message, int]]  # what follows a request is ignored
    handle: Handler


class Router:
    """All connections of one listener, and the way of their frames."""

    def __init__(
        self, node: Node, listener: str, memory: MemoryPool, connections: Connections
    ) -> None:
        self._node = node
        self._listener = listener
        self._memory = memory
        self._connections = connections
        self._routes: dict[tuple[int, int], Route] = {}
        self._large_requests = asyncio.Semaphore(_LARGE_AT_ONCE)
        self._channels: dict[Connection, Channel | None] = {}  # None until the first frame
        self._max_frame_bytes = node.config.int("socket.request.max.bytes")

    def accept(self, address: Address) -> Connection:
        """The protocol of a new connection from there."""
        connection = Connection(
            self,
            max_frame_bytes=self._max_frame_bytes,
            memory=self._memory,
            pause_when_blocked=True,
        )
        connection.peer_address = address
        return connection

    def close(self) -> None:
        """Close every connection; what is being answered is given up."""
        for connection, channel in list(self._channels.items()):
            if channel is not None:
                channel.cancel()
            connection.abort()

    def close_idle(self, now_ms: int, idle_ms: int) -> None:
        """Close the connections on which nothing has moved for that long.

        Called a few times per `idle_ms`. One that waits for an answer of ours is not idle; one
        that has an answer and does not take it is.
        """
        for connection, channel in list(self._channels.items()):
            if connection.was_active:
                connection.was_active = False
                connection.idle_since_ms = now_ms
            elif now_ms - connection.idle_since_ms >= idle_ms and (
                channel is None or not channel.is_owed or connection.unsent_bytes
            ):
                _log.info("connection of %s:%d closed: idle", *connection.peer_address)
                connection.abort()

    # --- what a connection tells (net.connection.Reader) -----------------------------------------

    def connection_opened(self, connection: Connection) -> None:
        self._channels[connection] = None

    def connection_closed(self, connection: Connection, error: Exception | None) -> None:
        channel = self._channels.pop(connection)
        self._connections.closed(self._listener, connection.peer_address[0])
        if channel is not None:
            channel.cancel()
        if isinstance(error, CorruptData):
            _log.warning("connection closed: %s", error)

    def frame_received(self, connection: Connection, frame: memoryview) -> None:
        channel = self._channels[connection]
        if channel is None:
            channel = self._channels[connection] = self._open(connection)
        try:
            repeated = channel.repeated
            if repeated is None or not repeated.append(channel, frame):
                self._dispatch(channel, frame)
        except BarnabasError as error:
            host, port = connection.peer_address
            _log.warning("connection from %s:%d closed: %s", host, port, error)
            connection.close()
        except Exception:
            # A bug of ours: one connection pays for it, and the log says where it is.
            _log.exception("request from %s:%d failed", *connection.peer_address)
            connection.abort()

    def wake_ended(self, connection: Connection) -> None:
        replicas = self._node.replicas
        if replicas.has_staged:
            replicas.write_staged()
        channel = self._channels.get(connection)
        if channel is not None and channel.has_staged:
            channel.answer_staged()

    # --- one request -----------------------------------------------------------------------------

    def _open(self, connection: Connection) -> Channel:
        context = Context(self._node, self._listener, ANONYMOUS, connection.peer_address[0])
        context.local_host = connection.local_address[0]
        return Channel(connection, context)

    def _dispatch(self, channel: Channel, frame: memoryview) -> None:
        header = decode_request_header(frame)
        version = header.api_version
        route = self._routes.get((header.api_key, version))
        if route is None:
            from barnabas.broker.handlers import api_versions  # once for each API and version

            fallback = api_versions.fallback(header)
            if fallback is not None:
                channel.answer(APIS[header.api_key], header.correlation_id, 0, fallback)
                return
            route = self._route(header)
        api = route.api
        body = header.body
        context = channel.context_for(api, version, header.client_id)
        size = len(frame)
        if size > api.max_bytes:
            raise CorruptData(f"{api.name} request of {size} bytes: the limit is {api.max_bytes}")
        if api.keeps_buffer:
            request, _ = route.decode(body)
            outcome = self._begin(route, context, request)
            channel.answer(api, header.correlation_id, version, outcome)
            self._learn(channel, context, frame, request)
            return
        body = memoryview(bytes(body))
        if size > LARGE_BYTES:
            outcome = Hold(self._begin_large(route, context, body))
        else:
            request, _ = route.decode(body)
            outcome = self._begin(route, context, request)
        channel.answer(api, header.correlation_id, version, outcome, size)

    def _begin(self, route: Route, context: Context, request: Message) -> Outcome:
        """Stage one of a request."""
        if route.api.reads_logs and self._node.replicas.has_staged:
            self._node.replicas.write_staged()
        return route.handle(context, request)

    async def _begin_large(self, route: Route, context: Context, body: memoryview) -> Outcome:
        """The same of a long one: taking it apart may be a second of work. A thread gives way to
        the loop every few milliseconds; a few are worked on at a time, for they unpack to much."""
        async with self._large_requests:
            loop = asyncio.get_running_loop()
            request, _ = await loop.run_in_executor(None, route.decode, body)
            outcome = self._begin(route, context, request)
            if isinstance(outcome, Hold):
                outcome = await outcome.until
        return outcome

    def _learn(self, channel: Channel, context: Context, frame: memoryview, request: Any) -> None:
        """The connection's next Produce request may repeat this one."""
        from barnabas.broker.network.repeated_produce import (
            RepeatedProduce,  # with the first of them
        )

        repeated = channel.repeated
        if repeated is None or not repeated.is_for(context):
            repeated = channel.repeated = RepeatedProduce(context)
        repeated.learn(frame, request)

    def _route(self, header: RequestHeader) -> Route:
        """Where a request of this API and version goes; UnsupportedVersion if nowhere."""
        api = APIS.get(header.api_key)
        if api is None:
            raise UnsupportedVersion(f"API key {header.api_key} is not served")
        version = header.api_version
        if not api.min_version <= version <= api.max_version:
            raise UnsupportedVersion(f"{api.name} version {version} is not served")
        if version < api.oldest_served:
            oldest = api.oldest_served
            raise UnsupportedVersion(
                f"{api.name} version {version} is not served, the oldest is {oldest}"
            )
        # Imported at its first request: the start does not pay for what nobody asks.
        handler: Handler = import_module(f"barnabas.broker.handlers.{api.stem}").handle
        route = Route(api, decoder(api.request, version), handler)
        self._routes[api.key, version] = route
        return route
