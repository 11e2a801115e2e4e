"""Serves the HTTP endpoint for events until a signal arrives.

    POST /v1/events   a batch, as application/json or, from `sendBeacon`, as text/plain
    GET /v1/pixel.gif an event in the query, for mails
    GET /tracker.js   the script for pages
    GET /healthz, /readyz

A batch is answered with 200 only once its events and its dead letters are stored, which means that
the brokers have acknowledged them or that they are in the journal on the disk. No cookie is read or
set, and neither the visitor's address nor the user agent is written.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import signal
import socket
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from barnabas.client.producer.batch import ProducerRecord
from barnabas_collector.dead_letter_headers import REASON
from barnabas_collector.listen_address import ListenAddress
from barnabas_track.event_batch import (
    MOST_BODY_BYTES,
    MOST_LETTER_BYTES,
    CheckedBatch,
    Rejection,
    UnreadableBatch,
    check_batch,
    encode,
)
from barnabas_track.journal import MOST_BYTES
from barnabas_track.outbox import WAIT_S, NotStored, Outgoing
from barnabas_track.page_script import PageScript
from barnabas_track.pixel import GIF, GIF_HEADERS, MOST_QUERY_BYTES, batch_of_query
from barnabas_track.rate_limits import RateLimits
from barnabas_track.stores import Brokers, Store, open_journal, open_outbox

ID: Final = "id"
"""The record header with the event's id."""
_TYPES: Final = ("application/json", "text/plain")
_MOST_REASONS: Final = 10
_MOST_CONNECTIONS: Final = 500
_BACKLOG: Final = 128
_BODY_S: Final = 10.0
_RETRY_AFTER_S: Final = 2
# Programs identify themselves with such words, and few browsers use them.
_ROBOTS: Final = (
    "bot",
    "crawl",
    "spider",
    "slurp",
    "headless",
    "preview",
    "curl/",
    "python",
    "http:",
)


class Endpoint(NamedTuple):
    """Specifies where events are sent, and from which origins they are accepted."""

    topic: str
    origins: Collection[str]  # "*" stands for all
    directory: Path | None = None  # of the journal
    most_journal_bytes: int = MOST_BYTES
    limits: RateLimits | None = None

    @property
    def rejected_topic(self) -> str:
        return f"{self.topic}-rejected"


async def serve(
    servers: str,
    options: Mapping[str, Any],
    endpoint: Endpoint,
    address: ListenAddress,
    on_ready: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM, and then answer the requests that are in progress.

    `options` are the client options. `on_ready` is called with the URL. Raises ConfigError if the
    server cannot listen on the address or use the journal. Without a journal, raises a KafkaError
    or Unreachable if the topics cannot be used at the start.
    """
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    with address.errors("events on"):
        sock = socket.create_server(
            tuple(address),
            family=socket.AF_INET6 if ":" in address.host else socket.AF_INET,
            backlog=_BACKLOG,
        )
    with contextlib.closing(sock):
        topics = (endpoint.topic, endpoint.rejected_topic)
        brokers = Brokers(servers, options, topics)
        async with _open_store(brokers, endpoint, stopping) as store:
            app = _Application(endpoint, store, stopping)
            url = f"http://{address.shown(sock.getsockname())}/"
            await _serve_until(stopping, app.starlette(), sock, lambda: on_ready(url))


def _open_store(
    brokers: Brokers, endpoint: Endpoint, stopping: asyncio.Event
) -> contextlib.AbstractAsyncContextManager[Store]:
    if endpoint.directory is None:
        return open_outbox(brokers)
    return open_journal(
        brokers, endpoint.directory, stopping.set, most_bytes=endpoint.most_journal_bytes
    )


async def _serve_until(
    stopping: asyncio.Event, app: Starlette, sock: socket.socket, on_ready: Callable[[], None]
) -> None:
    server = _Server(
        uvicorn.Config(
            app,
            access_log=False,
            http="h11",
            lifespan="off",
            limit_concurrency=_MOST_CONNECTIONS,
            log_config=None,
            proxy_headers=False,
            server_header=False,
            # This must be longer than a request waits for the brokers.
            timeout_graceful_shutdown=int(WAIT_S) + 5,
            ws="none",
        )
    )
    serving = asyncio.create_task(server.serve([sock]))
    serving.add_done_callback(lambda _: stopping.set())
    on_ready()
    try:
        await stopping.wait()
    finally:
        server.should_exit = True
        await serving


class _Server(uvicorn.Server):
    """Leaves signal handling to `serve`, which closes the producer afterwards."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Refusal(Exception):
    """Raised to answer the request with a status and a reason."""

    def __init__(self, status: int, reason: str, retry_after_s: int = 0) -> None:
        super().__init__(reason)
        self.status = status
        self.headers = {"Retry-After": str(retry_after_s)} if retry_after_s else {}


class _Application:
    """Answers requests."""

    def __init__(self, endpoint: Endpoint, outbox: Store, stopping: asyncio.Event) -> None:
        self._endpoint = endpoint
        self._outbox = outbox
        self._stopping = stopping

    def starlette(self) -> Starlette:
        routes = [
            Route("/v1/events", self._events, methods=["POST", "OPTIONS"]),
            Route("/v1/pixel.gif", self._pixel),
            Route("/tracker.js", PageScript().respond),
            Route("/healthz", self._health),
            Route("/readyz", self._ready),
        ]
        return Starlette(routes=routes)

    async def _health(self, _: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _ready(self, _: Request) -> Response:
        why = "stopping" if self._stopping.is_set() else self._outbox.trouble
        return PlainTextResponse(f"{why or 'ready'}\n", 503 if why else 200)

    async def _events(self, request: Request) -> Response:
        headers: dict[str, str] = {}
        try:
            headers = self._cross_origin(request)
            if request.method == "OPTIONS":
                return Response(status_code=204, headers=headers)
            self._check_rate(request)
            return JSONResponse(await self._receive(request), headers=headers)
        except _Refusal as refusal:
            headers |= refusal.headers
            return JSONResponse({"error": str(refusal)}, refusal.status, headers)

    async def _pixel(self, request: Request) -> Response:
        """Return the image even if the event becomes a dead letter, because a mail cannot show an
        error.
        """
        try:
            self._check_rate(request)
            if len(request.url.query) > MOST_QUERY_BYTES:
                raise _Refusal(413, f"a query may have at most {MOST_QUERY_BYTES:,} bytes")
            now_ms = time.time_ns() // 1_000_000
            query = request.query_params.multi_items()
            if request.method != "HEAD":
                await self._keep(request, batch_of_query(query, now_ms, uuid.uuid4().hex))
        except _Refusal as refusal:
            headers = GIF_HEADERS | refusal.headers
            return PlainTextResponse(f"{refusal}\n", refusal.status, headers)
        return Response(GIF, headers=GIF_HEADERS, media_type="image/gif")

    def _check_rate(self, request: Request) -> None:
        limits = self._endpoint.limits
        if limits is not None and (wait_s := limits.wait_s(request)):
            raise _Refusal(429, "too many requests from this network", wait_s)

    def _cross_origin(self, request: Request) -> dict[str, str]:
        """Return the headers for a page from another origin. Raises _Refusal if the origin is not
        listed.
        """
        origin = request.headers.get("origin")
        host = request.headers.get("host", "")
        if origin is None or origin in (f"http://{host}", f"https://{host}"):
            return {}
        if origin not in self._endpoint.origins and "*" not in self._endpoint.origins:
            # CORS alone would not stop text/plain, which browsers send without a preflight request.
            raise _Refusal(403, "events from this origin are not accepted: see --allow-origin")
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Methods": "POST",
            "Access-Control-Allow-Headers": "Content-Type",
            # `sendBeacon` always requires this header, although no cookies are used here.
            "Access-Control-Allow-Credentials": "true",
            "Access-Control-Max-Age": "86400",
            "Vary": "Origin",
        }

    async def _receive(self, request: Request) -> dict[str, Any]:
        """Read a request, store its events and dead letters, and return the answer.

        Raises _Refusal.
        """
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type not in _TYPES:
            raise _Refusal(415, f"the Content-Type is neither {' nor '.join(_TYPES)}")
        return await self._keep(request, await _body(request))

    async def _keep(self, request: Request, body: bytes) -> dict[str, Any]:
        """Check and store a batch, and return the answer. Raises _Refusal."""
        is_private = "1" in (request.headers.get("dnt"), request.headers.get("sec-gpc"))
        unreadable: UnreadableBatch | None = None
        now_ms = time.time_ns() // 1_000_000
        try:
            batch = check_batch(body, now_ms)
        except UnreadableBatch as error:
            unreadable = error
            batch = CheckedBatch([], [Rejection(0, str(error), body[:MOST_LETTER_BYTES])])
        more = {
            "received": now_ms,
            "bot": _is_robot(request.headers.get("user-agent", "")),
            "private": is_private,
        }
        outgoing = [self._event({**event, **more}) for event in batch.events]
        outgoing += [self._letter(each, is_private=is_private) for each in batch.rejected]
        try:
            repeated = await self._outbox.store(outgoing)
        except NotStored:
            # The answer omits the reason, which names brokers and topics; /readyz shows it.
            again = "not stored yet: send the same events again later"
            raise _Refusal(503, again, _RETRY_AFTER_S) from None
        if unreadable is not None:
            raise _Refusal(400, str(unreadable))
        return {
            "accepted": len(batch.events),
            "rejected": len(batch.rejected),
            "repeated": repeated,
            "reasons": [
                {"event": each.place, "reason": each.reason}
                for each in batch.rejected[:_MOST_REASONS]
            ],
        }

    def _event(self, event: dict[str, Any]) -> Outgoing:
        if event["private"]:
            # The visitor asked not to be followed (DNT, Global Privacy Control).
            event.pop("visitor", None)
            event.pop("session", None)
        visitor = event.get("visitor")
        key = None if visitor is None else visitor.encode()
        headers = ((ID, event["id"].encode()),)
        record = ProducerRecord(self._endpoint.topic, encode(event), key, headers=headers)
        return Outgoing(event["id"], record)

    def _letter(self, rejection: Rejection, *, is_private: bool) -> Outgoing:
        """Return a dead letter. If `is_private` is true, the letter contains only the reason."""
        reason = rejection.reason.encode()
        digest = hashlib.blake2b(reason + b"\0" + rejection.text, digest_size=16).hexdigest()
        text = b"" if is_private else rejection.text
        # Without a source topic in its headers, `dead-letters replay` does not send the letter to
        # the topic of valid events.
        headers = ((REASON, reason),)
        record = ProducerRecord(self._endpoint.rejected_topic, text, headers=headers)
        # An event's id never contains a dot.
        return Outgoing(f"letter.{digest}", record)


def _is_robot(agent: str) -> bool:
    """Return whether a user agent is missing or belongs to a program."""
    name = agent.lower()
    return not name or any(word in name for word in _ROBOTS)


async def _body(request: Request) -> bytes:
    """Return the body. Raises _Refusal if it is too large, too slow or incomplete."""
    content = bytearray()
    try:
        async with asyncio.timeout(_BODY_S):
            async for part in request.stream():
                content += part
                if len(content) > MOST_BODY_BYTES:
                    raise _Refusal(413, f"a batch may have at most {MOST_BODY_BYTES:,} bytes")
    except TimeoutError:
        raise _Refusal(408, f"the body did not arrive within {_BODY_S:g} s") from None
    except ClientDisconnect:
        raise _Refusal(400, "the body is incomplete") from None
    return bytes(content)
