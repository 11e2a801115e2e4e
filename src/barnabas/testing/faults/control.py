"""Serves faults over HTTP, for tests in any language (`barnabas server start --test-control PORT`).

    GET    /faults          the rules with their hits
    POST   /faults          add a rule
    DELETE /faults          remove all faults
    GET    /faults/ID       one rule; with ?hits=2&timeout_ms=10000, wait for two hits
    DELETE /faults/ID       remove one rule
    POST   /disk, /clock    inject a fault
    DELETE /disk, /clock    remove the fault

Requests and responses are JSON, with the arguments of `faults.add`, `disk` and `clock`. An error
has a status of 400 or more and the body `{"error": "..."}`. The server listens only on 127.0.0.1
and has no users, so any client that can connect may break the broker. A page in a browser cannot do
so, because a body must have the type application/json, which a browser sends only with the server's
permission, and Host and Origin, if present, must be this machine.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from barnabas.errors import ConfigError
from barnabas.net.metrics_listener import bind_reason
from barnabas.testing.faults.broker_faults import Faults
from barnabas.testing.faults.control_requests import ControlRequests
from barnabas.testing.faults.http_message import (
    LONGEST_S,
    MOST_HEAD_BYTES,
    Answer,
    Refused,
    read_request,
)

if TYPE_CHECKING:
    from barnabas.broker.server import Server

_log = logging.getLogger(__name__)

_HOST: Final = "127.0.0.1"
_MOST_CONNECTIONS: Final = 16


class FaultControl:
    """Serves the faults of one broker from `start` to `close`, on the broker's loop."""

    def __init__(self, port: int) -> None:
        """`port`: 0 selects a free port."""
        self._port = port
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._requests: ControlRequests | None = None

    @property
    def port(self) -> int:
        return self._port

    async def start(self, broker: Server) -> None:
        """Start listening. Raises ConfigError if the port is in use."""
        faults = Faults(lambda work: work())
        faults.attach(broker)
        await self.serve(faults)
        _log.warning(
            "accepting faults on http://%s:%d without authentication: use this only in tests",
            _HOST,
            self._port,
        )

    async def serve(self, faults: Faults) -> int:
        """Listen on this loop, and return the port. Raises ConfigError if the port is in use.

        `faults` may belong to brokers on this loop or on another one.
        """
        self._requests = ControlRequests(faults)
        try:
            self._server = await asyncio.start_server(
                self._serve, _HOST, self._port, limit=MOST_HEAD_BYTES
            )
        except OSError as error:
            raise ConfigError(
                f"--test-control {self._port}: the port cannot be bound "
                f"({bind_reason(error)}); choose another one"
            ) from None
        self._port = self._server.sockets[0].getsockname()[1]
        return self._port

    def close(self) -> None:
        """Stop listening, and close all connections."""
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._open) >= _MOST_CONNECTIONS:
            writer.transport.abort()
            return
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        try:
            writer.write((await self._answer(reader)).encode())
        except asyncio.CancelledError:
            # `close` has cancelled this task. asyncio's streams ask every task for its exception,
            # and would log the cancellation.
            writer.transport.abort()
        else:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> Answer:
        assert self._requests is not None
        try:
            async with asyncio.timeout(LONGEST_S):
                request = await read_request(reader)
            return await self._requests.answer(request)
        except Refused as refused:
            return refused.answer
        except ConfigError as error:
            return Answer(400, {"error": str(error)})
        except TimeoutError:
            return Answer(408, {"error": f"no whole request within {LONGEST_S:g} s"})
