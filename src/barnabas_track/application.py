"""Answers the requests: batches of events, the pixel, the script, and the server's state.

    POST /v1/events   a batch, as application/json or, from `sendBeacon`, as text/plain
    GET /v1/pixel.gif an event in the query, for mails
    GET /tracker.js   the script for pages
    GET /healthz, /readyz

A batch is answered with 200 only once its events and its dead letters are stored, which means that
the brokers have acknowledged them or that they are in the journal on the disk. No cookie is read or
set, and neither the visitor's address nor the user agent is written.

Almost all requests are batches, so they do without the routing and the request objects of
Starlette, which cost as much as a small batch itself.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from barnabas_track.batch_records import BatchOrigin, is_robot, records_of
from barnabas_track.countries import Countries
from barnabas_track.event_batch import (
    MOST_BODY_BYTES,
    MOST_LETTER_BYTES,
    CheckedBatch,
    Rejection,
    UnreadableBatch,
    check_batch,
)
from barnabas_track.journal import MOST_BYTES
from barnabas_track.outbox import NotStored
from barnabas_track.page_script import PageScript
from barnabas_track.pixel import GIF, GIF_HEADERS, MOST_QUERY_BYTES, batch_of_query
from barnabas_track.rate_limits import RateLimits, client_address
from barnabas_track.stores import Store

_EVENTS: Final = "/v1/events"
_TYPES: Final = ("application/json", "text/plain")
_MOST_REASONS: Final = 10
_BODY_S: Final = 10.0
_RETRY_AFTER_S: Final = 2


class Endpoint(NamedTuple):
    """Specifies where events are sent, and from which origins they are accepted."""

    topic: str
    origins: Collection[str]  # "*" stands for all
    directory: Path | None = None  # of the journal
    most_journal_bytes: int = MOST_BYTES
    limits: RateLimits | None = None
    countries: Countries | None = None
    trust_forwarded: bool = False
    """Whether the address of a request is the last one in X-Forwarded-For."""

    @property
    def rejected_topic(self) -> str:
        return f"{self.topic}-rejected"


class _Refusal(Exception):
    """Raised to answer the request with a status and a reason."""

    def __init__(self, status: int, reason: str, retry_after_s: int = 0) -> None:
        super().__init__(reason)
        self.status = status
        self.headers = {"Retry-After": str(retry_after_s)} if retry_after_s else {}


class Application:
    """Answers requests, as an ASGI application."""

    def __init__(self, endpoint: Endpoint, outbox: Store, stopping: asyncio.Event) -> None:
        self._endpoint = endpoint
        self._outbox = outbox
        self._stopping = stopping
        routes = [
            Route(_EVENTS, self._preflight, methods=["POST", "OPTIONS"]),
            Route("/v1/pixel.gif", self._pixel),
            Route("/tracker.js", PageScript().respond),
            Route("/healthz", self._health),
            Route("/readyz", self._ready),
        ]
        self._others = Starlette(routes=routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != _EVENTS or scope["method"] != "POST":
            await self._others(scope, receive, send)
            return
        response = await self._events(scope, receive)
        await response(scope, receive, send)

    async def _health(self, _: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _ready(self, _: Request) -> Response:
        why = "stopping" if self._stopping.is_set() else self._outbox.trouble
        return PlainTextResponse(f"{why or 'ready'}\n", 503 if why else 200)

    async def _preflight(self, request: Request) -> Response:
        """Answer an OPTIONS request, which a browser sends before application/json."""
        try:
            headers = self._cross_origin(_first_headers(request.scope))
        except _Refusal as refusal:
            return JSONResponse({"error": str(refusal)}, refusal.status)
        return Response(status_code=204, headers=headers)

    async def _events(self, scope: Scope, receive: Receive) -> Response:
        given = _first_headers(scope)
        headers: dict[str, str] = {}
        try:
            headers = self._cross_origin(given)
            self._check_rate(scope)
            media_type = given.get(b"content-type", b"").partition(b";")[0].strip().lower()
            if media_type.decode("latin-1") not in _TYPES:
                raise _Refusal(415, f"the Content-Type is neither {' nor '.join(_TYPES)}")
            answer = await self._keep(given, await _body(receive), self._country(scope))
            return JSONResponse(answer, headers=headers)
        except _Refusal as refusal:
            headers |= refusal.headers
            return JSONResponse({"error": str(refusal)}, refusal.status, headers)

    async def _pixel(self, request: Request) -> Response:
        """Return the image even if the event becomes a dead letter, because a mail cannot show an
        error.
        """
        try:
            self._check_rate(request.scope)
            if len(request.url.query) > MOST_QUERY_BYTES:
                raise _Refusal(413, f"a query may have at most {MOST_QUERY_BYTES:,} bytes")
            now_ms = time.time_ns() // 1_000_000
            query = request.query_params.multi_items()
            if request.method != "HEAD":
                body = batch_of_query(query, now_ms, uuid.uuid4().hex)
                given = _first_headers(request.scope)
                await self._keep(given, body, self._country(request.scope))
        except _Refusal as refusal:
            headers = GIF_HEADERS | refusal.headers
            return PlainTextResponse(f"{refusal}\n", refusal.status, headers)
        return Response(GIF, headers=GIF_HEADERS, media_type="image/gif")

    def _check_rate(self, scope: Scope) -> None:
        limits = self._endpoint.limits
        if limits is not None and (wait_s := limits.wait_s(scope)):
            raise _Refusal(429, "too many requests from this network", wait_s)

    def _cross_origin(self, given: Mapping[bytes, bytes]) -> dict[str, str]:
        """Return the headers for a page from another origin. Raises _Refusal if the origin is not
        listed.
        """
        sent = given.get(b"origin")
        if sent is None:
            return {}
        origin = sent.decode("latin-1")
        host = given.get(b"host", b"").decode("latin-1")
        if origin in (f"http://{host}", f"https://{host}"):
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

    def _country(self, scope: Scope) -> str | None:
        of, trust_forwarded = self._endpoint.countries, self._endpoint.trust_forwarded
        if of is None:
            return None
        return of.country_of(client_address(scope, trust_forwarded=trust_forwarded))

    async def _keep(
        self, given: Mapping[bytes, bytes], body: bytes, country: str | None
    ) -> dict[str, Any]:
        """Check and store a batch, and return the answer. Raises _Refusal."""
        unreadable: UnreadableBatch | None = None
        now_ms = time.time_ns() // 1_000_000
        try:
            batch = check_batch(body, now_ms)
        except UnreadableBatch as error:
            unreadable = error
            batch = CheckedBatch([], [Rejection(0, str(error), body[:MOST_LETTER_BYTES])])
        origin = BatchOrigin(
            received_ms=now_ms,
            is_robot=is_robot(given.get(b"user-agent", b"").decode("latin-1")),
            is_private=b"1" in (given.get(b"dnt"), given.get(b"sec-gpc")),
            country=country,
        )
        topics = self._endpoint.topic, self._endpoint.rejected_topic
        try:
            repeated = await self._outbox.store(records_of(batch, origin, *topics))
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


def _first_headers(scope: Scope) -> dict[bytes, bytes]:
    """Return the headers by name. If a header is repeated, its first value is returned."""
    return dict(reversed(scope["headers"]))


async def _body(receive: Receive) -> bytes:
    """Return the body. Raises _Refusal if it is too large, too slow or incomplete."""
    content = bytearray()
    is_over = False
    try:
        async with asyncio.timeout(_BODY_S):
            while not is_over:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _Refusal(400, "the body is incomplete")
                content += message.get("body", b"")
                if len(content) > MOST_BODY_BYTES:
                    raise _Refusal(413, f"a batch may have at most {MOST_BODY_BYTES:,} bytes")
                is_over = not message.get("more_body", False)
    except TimeoutError:
        raise _Refusal(408, f"the body did not arrive within {_BODY_S:g} s") from None
    return bytes(content)
