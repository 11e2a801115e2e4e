"""A broker with a TLS listener whose TLS is done by one of several: for `benchmarks.tls`.

    python -m benchmarks.tls_server WHOSE DIRECTORY KEYSTORE TRUSTSTORE

Prints the addresses of its plain and its TLS listener, and serves until its input ends.
"""

from __future__ import annotations

import asyncio
import importlib.util
import socket
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from barnabas.broker.security.server_tls import ServerTls
from barnabas.broker.server import Server
from barnabas.config import BrokerConfig
from barnabas.net.connection import Connection
from barnabas.net.loop import new_event_loop

Accept = Callable[[ServerTls, socket.socket, Connection], Awaitable[None]]


class _DefaultLimits:
    """A transport that keeps its own limits: with the high-water mark at zero, which a connection
    sets, the loops' TLS takes an empty buffer for a full one and stalls."""

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Left as they are."""


async def accept_by_loop(tls: ServerTls, accepted: socket.socket, connection: Connection) -> None:
    """The TLS of asyncio or uvloop, whichever runs."""
    loop = asyncio.get_running_loop()
    made = connection.connection_made
    connection.connection_made = lambda transport: made(_DefaultLimits(transport))  # type: ignore[assignment, method-assign, arg-type]
    await loop.connect_accepted_socket(lambda: connection, accepted, ssl=tls.context)


async def accept_by_aiofastnet(
    tls: ServerTls, accepted: socket.socket, connection: Connection
) -> None:
    import aiofastnet

    loop = asyncio.get_running_loop()
    transport, _ = await aiofastnet.connect_accepted_socket(
        loop, lambda: connection, accepted, ssl=tls.context
    )
    transport.set_write_buffer_limits(high=1)


WHOSE: dict[str, tuple[Accept | None, Callable[[], asyncio.AbstractEventLoop]]] = {
    "ours on uvloop": (None, new_event_loop),
    "ours on asyncio": (None, asyncio.new_event_loop),
    "uvloop's": (accept_by_loop, new_event_loop),
    "asyncio's": (accept_by_loop, asyncio.new_event_loop),
}
if importlib.util.find_spec("aiofastnet"):  # measured where it is installed
    WHOSE["aiofastnet on uvloop"] = (accept_by_aiofastnet, new_event_loop)
    WHOSE["aiofastnet on asyncio"] = (accept_by_aiofastnet, asyncio.new_event_loop)


async def serve(directory: Path, keystore: str, truststore: str) -> None:
    config = BrokerConfig(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
            "log.dirs": str(directory),
            "auto.create.topics.enable": "false",
            "socket.listen.backlog.size": "1000",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": keystore,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": truststore,
        }
    )
    server = Server(config)
    await server.start()
    print(*(f"127.0.0.1:{each.port}" for each in server.listeners), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop()


def main() -> None:
    whose, directory, keystore, truststore = sys.argv[1:]
    accept, new_loop = WHOSE[whose]
    if accept is not None:
        ServerTls.accept = accept  # type: ignore[assignment, method-assign]
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(partial(serve, Path(directory), keystore, truststore)())


if __name__ == "__main__":
    main()
