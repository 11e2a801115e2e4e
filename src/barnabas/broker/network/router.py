"""Routes frames to their handlers, and sends the responses in order.

    frame --> header --> the API table --> decode --> handler, stage one (plain call)
                                            |- a message         answered immediately
                                            |- Staged            answered when the logs are written
                                            |- a coroutine       answered when it is done
                                            `- Hold(coroutine)   likewise; reading pauses

All records from the Produce requests of one wake-up are written when it ends, with one system call
per partition. The requests are answered only after that. Produce is one of the APIs that overlap
(`protocol.api`). A request to any other API waits until all earlier requests have been answered and
holds back all later requests.

Invariant: a connection's responses are sent in the order of its requests. They are the same as if
the client had waited for each response before sending the next request. If a request cannot be
parsed or its API is not supported, only its own connection is closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from barnabas.broker.context import Context
from barnabas.broker.network.client_connection import ClientConnection
from barnabas.broker.network.connections import Connections
from barnabas.broker.network.listeners import Listener
from barnabas.broker.network.metadata_answers import MetadataAnswers
from barnabas.broker.network.request_faults import ConnectionCut, RequestFaults
from barnabas.broker.network.request_metrics import RequestMetrics, RequestTimes
from barnabas.broker.network.response_queue import LARGE_BYTES, ResponseQueue
from barnabas.broker.network.unauthenticated_connections import (
    BUFFER_BYTES,
    UnauthenticatedConnections,
)
from barnabas.broker.node import Node
from barnabas.broker.outcome import Hold, Later, Outcome, Staged
from barnabas.broker.security.authorization import BETWEEN_BROKERS
from barnabas.errors import (
    BarnabasError,
    CorruptData,
    IllegalSaslState,
    InvalidRequest,
    UnsupportedVersion,
)
from barnabas.metrics import Family, Sample, gauge
from barnabas.named_tuple import NamedTuple
from barnabas.net.connection import Address, Connection
from barnabas.net.memory import MemoryPool
from barnabas.protocol.api import APIS, FETCH, Api
from barnabas.protocol.codec import Message, decoder
from barnabas.protocol.frame import RequestHeader, decode_request_header
from barnabas.protocol.wire import TooManyEntries
from barnabas.security.acl import ANONYMOUS, Principal

if TYPE_CHECKING:
    from barnabas.broker.network.repeated_produce import RepeatedProduce
    from barnabas.broker.network.request_memory import RequestMemory
    from barnabas.broker.network.sasl_gate import SaslGate
    from barnabas.broker.quotas.counted_request import CountedRequest
    from barnabas.broker.security.sasl_listener import SaslListener

_log = logging.getLogger(__name__)

_LARGE_AT_ONCE_BYTES = 16 * 1024 * 1024  # total size of requests being decoded

Handler = Callable[[Context, Any], Outcome]
Begin = Callable[["Route", Context, Message], Outcome]


class Route(NamedTuple):
    """Describes how requests to one API and version are decoded and handled."""

    api: Api
    decode: Callable[[memoryview], tuple[Message, int]]  # the bytes after a request are ignored
    handle: Handler
    times: RequestTimes


class Router:
    """Handles the frames of all connections to one listener."""

    def __init__(
        self,
        node: Node,
        listener: Listener,
        memory: RequestMemory,
        connections: Connections,
        metrics: RequestMetrics,
        sasl: SaslListener | None = None,
    ) -> None:
        """`sasl` authenticates the clients of this listener.

        It is None if authentication is not required.
        """
        self._node = node
        self._listener = listener
        self._memory = memory
        self._connections = connections
        self._metrics = metrics
        self._routes: dict[tuple[int, int], Route] = {}
        self._answers = MetadataAnswers(node)
        self._large_requests = MemoryPool(_LARGE_AT_ONCE_BYTES)
        self._large_of_brokers = MemoryPool(_LARGE_AT_ONCE_BYTES)
        # by connection; None until the first frame
        self._queues: dict[Connection, ResponseQueue | None] = {}
        self._repeated: dict[ResponseQueue, RepeatedProduce] = {}  # for connections that produce
        self._sasl = sasl
        deadline_ms = node.config.int("barnabas.connection.login.deadline.ms")
        self._unauthenticated = UnauthenticatedConnections(
            deadline_ms, node.clock, connections.complaints
        )
        # for connections whose frames must be checked
        self._gates: dict[ResponseQueue, SaslGate] = {}
        self._max_frame_bytes = node.config.int("socket.request.max.bytes")
        self._max_entries = node.config.int("barnabas.request.max.entries")
        self._faults: RequestFaults | None = None
        # Once a client has a quota, its requests may no longer take the fast path.
        node.quotas.add_listener(self._repeated.clear)

    def inject(self, faults: RequestFaults | None) -> None:
        """From now on, consult `faults` for every request on all connections. If it is None, stop
        doing so.

        While faults are injected, every Produce request is decoded.
        """
        self._faults = faults
        self._repeated.clear()

    def accept(self, address: Address) -> Connection:
        """Return the protocol for a new connection from this address."""
        if self._sasl is None:
            connection = Connection(
                self,
                max_frame_bytes=self._max_frame_bytes,
                memory=self._memory.pool,
                pause_when_blocked=True,
            )
            connection.peer_address = address
            self._memory.serve(connection)
            return connection
        connection = Connection(
            self,
            max_frame_bytes=self._sasl.max_message_bytes,
            memory=self._unauthenticated.memory,
            pause_when_blocked=True,
            buffer_bytes=BUFFER_BYTES,
        )
        connection.peer_address = address
        self._unauthenticated.add(connection)
        return connection

    def on_open_failed(self, connection: Connection) -> None:
        """Forget a connection that was never opened."""
        self._unauthenticated.remove(connection)

    def _admit(self, connection: Connection) -> None:
        """Lift the limits that applied to this connection before its client authenticated."""
        self._unauthenticated.remove(connection)
        connection.admit(self._max_frame_bytes, self._memory.pool)
        self._memory.serve(connection)

    @property
    def waiting(self) -> Counter[str]:
        """Return the number of waiting requests for each API."""
        counts: Counter[str] = Counter()
        for queue in self._queues.values():
            if queue is not None and queue.has_unanswered:
                counts.update(queue.waiting)
        return counts

    def close(self) -> None:
        """Close every connection, and cancel the requests in progress."""
        self._unauthenticated.close()
        for connection, queue in list(self._queues.items()):
            if queue is not None:
                queue.cancel()
            connection.abort()

    def abort(self, is_meant: Callable[[str | None], bool]) -> None:
        """Close the connections whose last request had this client id, and cancel their requests.

        Connections on which no request has been received stay open.
        """
        for connection, queue in list(self._queues.items()):
            if queue is not None and is_meant(queue.client_id):
                queue.cancel()
                connection.abort()

    def end_sessions(self, principal: Principal, mechanism: str) -> None:
        """Close the connections of a user who can no longer authenticate with this mechanism.

        Connections authenticated with a delegation token stay open.
        """
        for connection, queue in list(self._queues.items()):
            client = None if queue is None else queue.client
            if (
                queue is not None
                and client is not None
                and client.principal == principal
                and client.by_mechanism == mechanism
                and not client.by_token
            ):
                self._connections.complaints.report(
                    connection.peer_address,
                    "connection closed",
                    f"the {mechanism} credential of {principal} was deleted",
                    level=logging.INFO,
                )
                queue.cancel()
                connection.abort()

    def close_idle(self, now_ms: int, idle_ms: int) -> None:
        """Close the connections on which there has been no traffic for `idle_ms`.

        This is called a few times in each `idle_ms`. A connection that is waiting for this broker's
        response is not idle, unless the client has closed its side. A connection whose client does
        not read the response is idle.
        """
        for connection, queue in list(self._queues.items()):
            if connection.was_active:
                connection.was_active = False
                connection.idle_since_ms = now_ms
            elif now_ms - connection.idle_since_ms >= idle_ms and (
                queue is None
                or not queue.has_unanswered
                or connection.send_queue.unsent_bytes
                or connection.has_ended
            ):
                self._connections.complaints.report(
                    connection.peer_address, "connection closed", "idle", level=logging.INFO
                )
                connection.abort()

    # --- callbacks of a connection (net.connection.Reader) ---------------------------------------

    def connection_opened(self, connection: Connection) -> None:
        self._queues[connection] = None

    def connection_closed(self, connection: Connection, error: Exception | None) -> None:
        queue = self._queues.pop(connection)
        self._unauthenticated.remove(connection)
        self._connections.on_closed(self._listener.name, connection.peer_address[0])
        if queue is not None:
            self._repeated.pop(queue, None)
            self._gates.pop(queue, None)
            queue.cancel()
        if isinstance(error, CorruptData):
            self._connections.complaints.report(connection.peer_address, "connection closed", error)

    def frame_received(self, connection: Connection, frame: memoryview) -> None:
        queue = self._queues[connection]
        if queue is None:
            queue = self._queues[connection] = self._open(connection)
        try:
            # Without SASL, there are no gates, so the check costs nothing.
            if self._gates and self._is_for_gate(queue, frame):
                return
            repeated = self._repeated.get(queue)
            if repeated is None or not repeated.append(queue, frame):
                self._dispatch(queue, frame)
        except ConnectionCut as cut:
            _log.info("connection from %s:%d closed: %s", *connection.peer_address, cut)
            connection.close()
        except BarnabasError as error:
            gate = self._gates.get(queue)
            if gate is not None and isinstance(error, IllegalSaslState):
                gate.on_failed(str(error))
            else:
                self._connections.complaints.report(
                    connection.peer_address, "connection closed", error
                )
            connection.close()
        except Exception as error:
            # This is a bug in Barnabas. Close only this connection, and log the traceback.
            self._connections.complaints.report(
                connection.peer_address, "request failed", error, level=logging.ERROR, bug=error
            )
            connection.abort()

    def wake_ended(self, connection: Connection) -> None:
        replicas = self._node.replicas
        if replicas.has_staged:
            replicas.write_staged()
        queue = self._queues.get(connection)
        if queue is not None:
            queue.answer_staged()
            queue.wake_ns = 0

    # --- one request -----------------------------------------------------------------------------

    def _open(self, connection: Connection) -> ResponseQueue:
        host, local_host = connection.peer_address[0], connection.local_address[0]
        name = connection.peer_name
        principal = Principal("User", name) if name else ANONYMOUS
        client = ClientConnection(self._listener.name, principal, host, local_host)
        complaints = self._connections.complaints
        queue = ResponseQueue(connection, self._node, client, complaints, self._metrics)
        if self._sasl is not None:
            from barnabas.broker.network.sasl_gate import GateSettings, SaslGate

            settings = GateSettings(
                self._sasl.failure_delay_ms, self._admit, self._connections.on_login_failed
            )
            self._gates[queue] = SaslGate(self._sasl.session(), connection, client, queue, settings)
        return queue

    def _is_for_gate(self, queue: ResponseQueue, frame: memoryview) -> bool:
        """Handle a frame that is part of an authentication, or return False if it is not.

        Raises the error that causes the connection to be closed.
        """
        gate = self._gates.get(queue)
        if gate is None:
            return False
        if gate.is_needed:
            return gate.take(frame)
        del self._gates[queue]  # authenticated, and the session never expires
        return False

    def _dispatch(self, queue: ResponseQueue, frame: memoryview) -> None:
        header = decode_request_header(frame)
        version = header.api_version
        route = self._routes.get((header.api_key, version))
        if route is None:
            from barnabas.broker.handlers import api_versions  # once for each API and version

            # A newer client may send an ApiVersions request in a version that this broker does not
            # know. The version 0 response tells it which version to use (KIP-511).
            fallback = api_versions.fallback(header)
            if fallback is not None:
                if queue.has_unanswered and queue.holds_back(frame):
                    return
                queue.answer(APIS[header.api_key], header.correlation_id, 0, fallback)
                return
            route = self._route(header)
        api = route.api
        if not api.overlaps and queue.has_unanswered and queue.holds_back(frame):
            return
        queue.begin(route.times)
        body = header.body
        context = queue.context_for(api, version, header.client_id)
        size = len(frame)
        begin: Begin = self._begin if self._faults is None else self._begin_under_faults
        quotas, counted = self._node.quotas, None
        if quotas.is_active:
            counted = self._counted(queue, context, size)
            if counted is not None:
                begin = partial(self._begin_counted, counted)
        # For Produce, the batches remain views of the receive buffer until they are written.
        if api.keeps_buffer:
            request, _ = route.decode(body)
            outcome = begin(route, context, request)
            queue.answer(api, header.correlation_id, version, outcome)
            # Quotas and faults apply to decoded requests, so the fast path cannot be used.
            if self._faults is None and counted is None:
                self._learn(queue, context, frame, request, route.times)
        else:
            # Do not use the cache if quotas or faults apply, because they apply to each request, or
            # if the body is long, because it would become a long key.
            if api.is_cached and counted is None and self._faults is None and size <= LARGE_BYTES:
                build = partial(self._build, route, context)
                queue.answer_encoded(api, version, self._answers.answer(context, header, build))
                return
            # Copy the frame. Otherwise, a waiting request would keep the receive buffer alive.
            body = memoryview(bytes(body))
            if size > LARGE_BYTES:
                outcome = Hold(self._begin_large(queue, route, context, body, counted))
            else:
                try:
                    request, _ = route.decode(body)
                except TooManyEntries as error:
                    outcome = self._too_many(queue, context, error)
                else:
                    if api is FETCH:
                        queue.times = self._metrics.of_fetch(request, version)
                    outcome = begin(route, context, request)
            queue.answer(api, header.correlation_id, version, outcome, size)
        if counted is not None:
            counted.end()

    def _too_many(self, queue: ResponseQueue, context: Context, error: TooManyEntries) -> Message:
        """Return the response to a request that has too many entries, or raise the error."""
        reason = TooManyEntries(f"{error}; split it into several requests")
        response, version = context.api.response, context.version
        fields = {made.name for made in response.fields if version in made.versions}
        if "error_code" not in fields:
            raise reason
        address = queue.peer_address
        self._connections.complaints.report(address, f"{context.api.name} rejected", reason)
        answer: Any = response()
        answer.error_code = InvalidRequest.code
        if "error_message" in fields:
            answer.error_message = str(reason)
        return cast(Message, answer)

    def _counted(
        self, queue: ResponseQueue, context: Context, size_bytes: int
    ) -> CountedRequest | None:
        """Return the usage counter if the client that sent the request has a quota, or None
        otherwise.
        """
        limits = self._node.quotas.of(context.client.principal.name, context.client_id)
        if limits is None:
            return None
        from barnabas.broker.quotas.counted_request import CountedRequest  # few brokers need it

        return CountedRequest(limits, size_bytes, self._node.clock.monotonic_ms, queue.mute)

    def _begin_counted(
        self, counted: CountedRequest, route: Route, context: Context, request: Message
    ) -> Outcome:
        return counted.begin(
            context, request, partial(self._begin_under_faults, route, context, request)
        )

    def _build(self, route: Route, context: Context, body: memoryview) -> Message | Later:
        """Run stage one of a request for which a cached response can be used."""
        request, _ = route.decode(body)
        outcome = self._begin_under_faults(route, context, request)
        assert isinstance(outcome, Message | Coroutine)
        if isinstance(outcome, Message):
            self._metrics.count_errors(route.times, outcome)
        return outcome

    def _begin(self, route: Route, context: Context, request: Message) -> Outcome:
        return route.handle(context, request)

    def _begin_under_faults(self, route: Route, context: Context, request: Message) -> Outcome:
        if self._faults is None:  # reserved until the request was decoded
            return self._begin(route, context, request)
        return self._faults.handle(context, request, partial(self._begin, route))

    async def _begin_large(
        self,
        queue: ResponseQueue,
        route: Route,
        context: Context,
        body: memoryview,
        counted: CountedRequest | None,
    ) -> Message | Staged | Later | None:
        """Run stage one of a long request, whose decoding may take a second.

        The request is decoded in a thread, which lets the event loop run every few milliseconds.
        Requests wait while earlier requests use too much memory.
        """
        size = len(body)
        is_of_broker = route.api.stem in BETWEEN_BROKERS  # brokers must not wait behind clients
        large = self._large_of_brokers if is_of_broker else self._large_requests
        await large.until_reserved(size)
        try:
            loop = asyncio.get_running_loop()
            try:
                request, _ = await loop.run_in_executor(None, route.decode, body)
            except TooManyEntries as error:
                return self._too_many(queue, context, error)
            if counted is None:
                outcome = self._begin_under_faults(route, context, request)
            else:
                outcome = self._begin_counted(counted, route, context, request)
            return await outcome.until if isinstance(outcome, Hold) else outcome
        finally:
            large.release(size)

    def _learn(
        self,
        queue: ResponseQueue,
        context: Context,
        frame: memoryview,
        request: Any,
        times: RequestTimes,
    ) -> None:
        """Store the head of this request, so that the next request can use the fast path."""
        from barnabas.broker.network.repeated_produce import (
            RepeatedProduce,  # loaded on first use
        )

        repeated = self._repeated.get(queue)
        if repeated is None or not repeated.is_for(context):
            repeated = self._repeated[queue] = RepeatedProduce(context, times)
        repeated.learn(frame, request)

    def _route(self, header: RequestHeader) -> Route:
        """Return the route for an API and version. Raises UnsupportedVersion if there is none."""
        api = APIS.get(header.api_key)
        if api is None:
            raise UnsupportedVersion(f"API key {header.api_key} is not supported")
        version = header.api_version
        if not api.min_version <= version <= api.max_version:
            raise UnsupportedVersion(f"{api.name} version {version} is not supported")
        # These versions are advertised, but a request that uses one of them closes the connection
        # (ST-5).
        if version < api.oldest_served:
            oldest = api.oldest_served
            raise UnsupportedVersion(
                f"{api.name} version {version} is not supported; the oldest supported version is "
                f"{oldest}"
            )
        # Import the handler when its first request arrives, so that handlers that are not used do
        # not delay startup.
        handler: Handler = import_module(f"barnabas.broker.handlers.{api.stem}").handle
        most_entries = api.max_entries
        if api.stem not in BETWEEN_BROKERS:  # a controller's requests contain all partitions
            most_entries = min(most_entries, self._max_entries)
        decode = partial(decoder(api.request, version), most_entries=most_entries)
        route = Route(api, decode, handler, self._metrics.of(api.name, version))
        self._routes[api.key, version] = route
        return route


_PURGATORIES = {
    "Produce": "Produce",
    "Fetch": "Fetch",
    "JoinGroup": "Rebalance",
    "DeleteRecords": "DeleteRecords",
    "ElectLeaders": "ElectLeader",
}
"""Kafka's names for the places where requests to these APIs wait."""


def waiting_families(routers: Sequence[Router]) -> Iterator[Family]:
    """Yield the number of requests that are waiting.

    Barnabas has no purgatory, so the waiting requests of all connections are counted.
    """
    waiting: Counter[str] = Counter()
    for router in routers:
        waiting.update(router.waiting)
    yield gauge(
        "kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize",
        "Requests waiting for replicas, bytes or members",
        [Sample(waiting[api], (("delayedOperation", name),)) for api, name in _PURGATORIES.items()],
    )
