"""A wire between a ZooKeeper and its clients that can be cut at any request."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import NamedTuple

from tests.kit.waiting import until

MULTI, MULTI_READ = 14, 22


class Cut(NamedTuple):
    """At the next request of this kind the connection goes; `is_forwarded`: the server has it."""

    request_type: int
    is_forwarded: bool


class ZooKeeperProxy:
    """Forwards whole requests. Everything is set from the loop on which it runs."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._connections: dict[asyncio.Task[object], None] = {}
        self._listener: asyncio.Server | None = None
        self.port = 0
        self.cut: Cut | None = None
        # How many requests each connection from now on carries; the last one is not answered.
        self.request_limits: Iterator[int] = itertools.repeat(sys.maxsize)
        self.is_refusing = False
        self.is_silent = False  # takes connections, and their clients never hear of them again
        self.renamed: dict[int, int] = {}  # request types, for a server that does not know one
        self.spoil: Callable[[bytes], bytes] | None = None  # what becomes of the answers
        self.requests: list[int] = []  # the types of all of them
        self._withheld: set[bytes] = set()  # the xids of answers that were not passed

    @property
    def connect(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def start(self, tls: ssl.SSLContext | None = None) -> None:
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=tls)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._listener is not None
        self._listener.close()
        self.break_all()

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def break_all(self) -> None:
        """Every connection goes, without a word."""
        for task in list(self._connections):
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_refusing:
            writer.close()
            return
        carried = asyncio.Event().wait() if self.is_silent else self._carry(reader, writer)
        task = asyncio.ensure_future(carried)
        self._connections[task] = None
        task.add_done_callback(self._connections.pop)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", self._server_port)
        back = asyncio.ensure_future(self._answers(there[0], writer))
        try:
            await self._requests(reader, there[1])
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has gone
        finally:
            back.cancel()
            writer.transport.abort()
            there[1].transport.abort()

    async def _requests(self, reader: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        out.write(await _frame(reader))  # the one that begins a session
        for _ in range(next(self.request_limits)):
            frame = await _frame(reader)
            kind = int.from_bytes(frame[8:12], signed=True)
            self.requests.append(kind)
            kind = self.renamed.get(kind, kind)
            frame = frame[:8] + kind.to_bytes(4, signed=True) + frame[12:]
            is_cut = self.cut is not None and self.cut.request_type == kind
            if not is_cut or (self.cut is not None and self.cut.is_forwarded):
                out.write(frame)
                await out.drain()
            if is_cut:
                if self.cut is not None and self.cut.is_forwarded:
                    # The server carries it out, and its answer is not passed.
                    await until(partial(self._withheld.__contains__, frame[4:8]))
                self.cut = None
                return

    async def _answers(self, reader: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            out.write(await _frame(reader))  # the session has begun
            while True:
                frame = await _frame(reader)
                if self.cut is None or self.cut.request_type != MULTI:
                    out.write(frame if self.spoil is None else self.spoil(frame))
                else:
                    self._withheld.add(frame[4:8])


async def _frame(reader: asyncio.StreamReader) -> bytes:
    length = await reader.readexactly(4)
    return length + await reader.readexactly(int.from_bytes(length))


@contextlib.asynccontextmanager
async def zookeeper_proxy(
    port: int, tls: ssl.SSLContext | None = None
) -> AsyncIterator[ZooKeeperProxy]:
    proxy = ZooKeeperProxy(port)
    await proxy.start(tls)
    try:
        yield proxy
    finally:
        await proxy.stop()
