"""Serves a web application on a socket, and leaves signals to its caller."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple

import uvicorn


class WebServer(NamedTuple):
    """An application and how it is served."""

    app: Any
    http: Any
    """The name or the class of uvicorn's protocol."""
    most_connections: int
    stop_s: int
    """How long requests that are in progress may take after the server was stopped."""


@contextlib.asynccontextmanager
async def serving(
    server: WebServer, sock: socket.socket, stopping: asyncio.Event
) -> AsyncIterator[None]:
    """Serve while the context is open. `stopping` is set when it closes, so that streams end, and
    if the server fails.
    """
    running = _Server(
        uvicorn.Config(
            server.app,
            access_log=False,
            http=server.http,
            lifespan="off",
            limit_concurrency=server.most_connections,
            log_config=None,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=server.stop_s,
            ws="none",
        )
    )
    task = asyncio.create_task(running.serve([sock]))
    task.add_done_callback(lambda _: stopping.set())
    try:
        yield
    finally:
        stopping.set()
        running.should_exit = True
        await task


def set_on_signals(stopping: asyncio.Event) -> None:
    """Set the event after SIGINT or SIGTERM."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
