"""Serves the HTTP endpoint for events until a signal arrives.

    POST /v1/events   a batch, as application/json or, from `sendBeacon`, as text/plain
    GET /v1/pixel.gif an event in the query, for mails
    GET /tracker.js   the script for pages
    GET /healthz, /readyz

`Application` answers the requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final

from barnabas.net.web_server import WebServer, serving, set_on_signals
from barnabas_collector.listen_address import ListenAddress
from barnabas_track.application import Application, Endpoint
from barnabas_track.bounded_http import BoundedHttp
from barnabas_track.outbox import WAIT_S
from barnabas_track.stores import Brokers, Store, open_journal, open_outbox

_MOST_CONNECTIONS: Final = 500
_BACKLOG: Final = 128


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
    set_on_signals(stopping)
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
            app = Application(endpoint, store, stopping)
            url = f"http://{address.shown(sock.getsockname())}/"
            await _serve_until(stopping, app, sock, lambda: on_ready(url))


def _open_store(
    brokers: Brokers, endpoint: Endpoint, stopping: asyncio.Event
) -> contextlib.AbstractAsyncContextManager[Store]:
    if endpoint.directory is None:
        return open_outbox(brokers)
    return open_journal(
        brokers, endpoint.directory, stopping.set, most_bytes=endpoint.most_journal_bytes
    )


async def _serve_until(
    stopping: asyncio.Event, app: Application, sock: socket.socket, on_ready: Callable[[], None]
) -> None:
    # Stopping must take longer than a request waits for the brokers.
    server = WebServer(app, BoundedHttp, _MOST_CONNECTIONS, int(WAIT_S) + 5)
    async with serving(server, sock, stopping):
        on_ready()
        await stopping.wait()
