"""A connected pair of sockets: a client's plain one, and our end with its `Connection`."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from barnabas.net.connection import Connection
from barnabas.net.memory import MemoryPool

FrameHandler = Callable[[Connection, memoryview], None]

PATIENCE_S = 60.0  # bounds a hang


class Peer:
    """The server's end of one test: what it got, and how it ended."""

    def __init__(
        self, on_frame: FrameHandler, max_frame_bytes: int, memory: MemoryPool | None
    ) -> None:
        self.connection = Connection(
            self, max_frame_bytes=max_frame_bytes, memory=memory, pause_when_blocked=True
        )
        self.frame_received = on_frame
        self.wakes = 0
        self.closed: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def connection_opened(self, connection: Connection) -> None:
        assert connection.peer_address[1] > 0, "the addresses are known"

    def wake_ended(self, connection: Connection) -> None:
        self.wakes += 1

    def connection_closed(self, connection: Connection, error: Exception | None) -> None:
        assert not self.closed.done(), "a connection closes once"
        self.closed.set_result(error)


@asynccontextmanager
async def served(
    on_frame: FrameHandler, max_frame_bytes: int = 1 << 20, memory: MemoryPool | None = None
) -> AsyncIterator[tuple[socket.socket, Peer]]:
    """A connected pair: a plain blocking-free client socket and our end."""
    loop = asyncio.get_running_loop()
    peer = Peer(on_frame, max_frame_bytes, memory)
    server = await loop.create_server(lambda: peer.connection, "127.0.0.1", 0)
    client = socket.socket()
    client.setblocking(False)
    try:
        await loop.sock_connect(client, server.sockets[0].getsockname())
        yield client, peer
    finally:
        client.close()
        server.close()
        peer.connection.abort()
        await asyncio.wait_for(peer.closed, PATIENCE_S)


async def receive(client: socket.socket, size: int) -> bytes:
    loop = asyncio.get_running_loop()
    got = bytearray()
    while len(got) < size:
        more = await asyncio.wait_for(loop.sock_recv(client, 1 << 20), PATIENCE_S)
        if not more:
            break
        got += more
    return bytes(got)


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload
