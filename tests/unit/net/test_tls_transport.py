"""SE-2: net/tls_transport.py between real sockets, under asyncio's loop and uvloop's."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas.net.connection import Connection
from barnabas.net.loop import new_event_loop
from barnabas.net.tls_failures import TlsFailure
from barnabas.net.tls_transport import TlsTransport
from barnabas.net.turns import Turns
from barnabas.types import FileSlice
from tests.kit.certificates import Authority

PATIENCE_S = 60.0  # bounds a hang
LARGE = 3 * 1024 * 1024


@pytest.fixture(params=[new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, None]], None]:
    """Runs a test's coroutine on one of the loops."""

    def run_on_it(coroutine: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(asyncio.wait_for(coroutine, PATIENCE_S))

    return run_on_it


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("ca"))


class End:
    """One end of a connection: what it got, and how it ended."""

    def __init__(self, *, is_server: bool) -> None:
        self.connection = Connection(self, max_frame_bytes=1 << 30, pause_when_blocked=is_server)
        self.frames: list[bytes] = []
        self.on_frame: Callable[[memoryview], None] = lambda frame: self.frames.append(bytes(frame))
        self.came = asyncio.Event()
        self.ended: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def connection_opened(self, connection: Connection) -> None: ...

    def frame_received(self, connection: Connection, frame: memoryview) -> None:
        self.on_frame(frame)
        self.came.set()

    def wake_ended(self, connection: Connection) -> None: ...

    def connection_closed(self, connection: Connection, error: Exception | None) -> None:
        self.ended.set_result(error)

    async def got(self, count: int) -> list[bytes]:
        while len(self.frames) < count:
            self.came.clear()
            await self.came.wait()
        return self.frames


class Pair:
    """A server's end, its transport, and the socket at the other end."""

    def __init__(self, authority: Authority) -> None:
        self.server = End(is_server=True)
        files = authority.server()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(files.chain, files.key)
        self.trusting = ssl.create_default_context(cafile=str(files.truststore))
        self.transport = TlsTransport(self.server.connection, self.context, turns=Turns())
        own, self.other = socket.socketpair()
        self.own = own
        own.setblocking(False)
        self.other.settimeout(PATIENCE_S)

    async def accept(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(lambda: self.transport, self.own)

    async def wrap(self) -> ssl.SSLSocket:
        """A blocking client of Python's own over the other end, when both have shaken hands."""
        loop = asyncio.get_running_loop()

        def wrap_here() -> ssl.SSLSocket:
            return self.trusting.wrap_socket(self.other, server_hostname="localhost")

        wrapping = loop.run_in_executor(None, wrap_here)
        await self.transport.handshake()
        return await wrapping

    async def connect(self) -> End:
        """A client of ours over the other end."""
        client = End(is_server=False)
        self.other.setblocking(False)
        transport = TlsTransport(client.connection, self.trusting, server_name="localhost")
        await asyncio.get_running_loop().create_connection(lambda: transport, sock=self.other)
        await asyncio.gather(transport.handshake(), self.transport.handshake())
        return client


@asynccontextmanager
async def pair_of(authority: Authority) -> AsyncIterator[Pair]:
    pair = Pair(authority)
    try:
        await pair.accept()
        yield pair
    finally:
        pair.transport.abort()
        pair.other.close()
        await asyncio.sleep(0)


def framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def read_exactly(peer: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = peer.recv(min(size, 1 << 20))
        assert part, f"it ended {size} bytes early"
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


Run = Callable[[Coroutine[Any, Any, None]], None]


def test_se_2_frames_of_all_sizes_go_both_ways(run: Run, authority: Authority) -> None:
    async def exchange() -> None:
        async with pair_of(authority) as pair:
            client = await pair.connect()
            contents = [os.urandom(size) for size in (1, 100, 16384, 16385, 300_000, LARGE)]
            for content in contents:
                client.connection.write([framed(content)])
                pair.server.connection.write([framed(content[::-1])])
            assert await pair.server.got(len(contents)) == contents
            assert await client.got(len(contents)) == [content[::-1] for content in contents]

    run(exchange())


def test_se_2_a_reader_that_is_slow_gets_all_of_a_file(
    run: Run, authority: Authority, tmp_path: Path
) -> None:
    """No sendfile, and no more in memory than is read ahead: the rest waits for the reader."""
    content = os.urandom(LARGE)
    (tmp_path / "log").write_bytes(content)

    class File:
        def __init__(self) -> None:
            self.descriptor = os.open(tmp_path / "log", os.O_RDONLY)
            self.holders = 0

        def acquire(self) -> None:
            self.holders += 1

        def release(self) -> None:
            self.holders -= 1

        def fileno(self) -> int:
            raise AssertionError("nothing may go past the encryption")

        def pread(self, size: int, position: int) -> bytes:
            return os.pread(self.descriptor, size, position)

    async def exchange() -> None:
        async with pair_of(authority) as pair:
            peer = await pair.wrap()
            file = File()
            parts: list[Any] = [b"head", FileSlice(file, 0, LARGE), FileSlice(file, 10, 100)]
            pair.server.connection.write([*parts, b"tail"])
            for _ in range(20):
                await asyncio.sleep(0.001)
            assert pair.transport.get_write_buffer_size() < LARGE / 2
            size = 4 + LARGE + 100 + 4
            got = await asyncio.get_running_loop().run_in_executor(None, read_exactly, peer, size)
            assert got == b"head" + content + content[10:110] + b"tail"
            assert file.holders == 0
            os.close(file.descriptor)

    run(exchange())


def test_se_2_a_pause_keeps_what_was_decrypted(run: Run, authority: Authority) -> None:
    async def exchange() -> None:
        async with pair_of(authority) as pair:
            client = await pair.connect()
            end = pair.server

            def once(frame: memoryview) -> None:
                end.frames.append(bytes(frame))
                end.connection.pause_reading()
                asyncio.get_running_loop().call_later(0.001, end.connection.resume_reading)

            end.on_frame = once
            contents = [bytes([each]) * 40_000 for each in range(40)]
            client.connection.write([framed(content) for content in contents])
            assert await end.got(len(contents)) == contents

    run(exchange())


def test_se_2_the_end_comes_with_its_notice_and_without(run: Run, authority: Authority) -> None:
    async def with_notice() -> None:
        async with pair_of(authority) as pair:
            client = await pair.connect()
            client.connection.write([framed(b"last")])
            client.connection.close()
            assert await pair.server.ended is None
            assert pair.server.frames == [b"last"]
            assert await client.ended is None

    async def without() -> None:
        async with pair_of(authority) as pair:
            peer = await pair.wrap()
            peer.sendall(framed(b"last"))
            peer.shutdown(socket.SHUT_WR)
            assert await pair.server.ended is None
            assert pair.server.frames == [b"last"]

    run(with_notice())
    run(without())


@pytest.mark.parametrize("text", [b"\x00\x00\x00\x10\x00\x12", b"GET / HTTP/1.1\r\n\r\n"])
def test_se_2_plain_text_is_named(run: Run, authority: Authority, text: bytes) -> None:
    async def exchange() -> None:
        async with pair_of(authority) as pair:
            pair.other.sendall(text)
            kind = "an HTTP request" if text.startswith(b"GET") else "plain text"
            with pytest.raises(TlsFailure, match=f"it sent {kind} to a TLS listener"):
                await pair.transport.handshake()
            assert not pair.server.connection.was_opened

    run(exchange())


def test_se_2_a_peer_that_leaves_during_the_handshake(run: Run, authority: Authority) -> None:
    async def exchange() -> None:
        async with pair_of(authority) as pair:
            pair.other.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
            await asyncio.sleep(0.001)
            pair.other.close()
            with pytest.raises(OSError, match="during the TLS handshake"):
                await pair.transport.handshake()
            assert not pair.server.connection.was_opened

    run(exchange())


def test_se_2_a_damaged_record_ends_its_own_connection_only(run: Run, authority: Authority) -> None:
    """The connections of a thread share their BIOs: nothing of one reaches another."""

    async def exchange() -> None:
        async with pair_of(authority) as bad, pair_of(authority) as good:
            client = await good.connect()
            peer = await bad.wrap()
            raw = socket.socket(fileno=os.dup(peer.fileno()))
            good_end, bad_end = good.server, bad.server
            client.connection.write([framed(b"a" * 20_000)])
            raw.sendall(b"\x17\x03\x03\x01\x00" + os.urandom(256) + b"\x17\x03\x03\x40\x00rest")
            error = await bad_end.ended
            assert isinstance(error, TlsFailure)
            assert re.search(r"bad record mac|record layer failure", str(error))
            client.connection.write([framed(b"b" * 20_000)])
            assert await good_end.got(2) == [b"a" * 20_000, b"b" * 20_000]
            raw.close()

    run(exchange())


def test_se_2_a_record_in_pieces_holds_no_buffer(run: Run, authority: Authority) -> None:
    async def exchange() -> None:
        async with pair_of(authority) as pair:
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            client = pair.trusting.wrap_bio(incoming, outgoing, server_hostname="localhost")
            loop = asyncio.get_running_loop()
            pair.other.setblocking(False)
            while True:
                try:
                    client.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    await loop.sock_sendall(pair.other, outgoing.read())
                    incoming.write(await loop.sock_recv(pair.other, 65536))
            client.write(framed(b"x" * 5000))
            data = outgoing.read()
            for at in range(0, len(data), 700):
                await loop.sock_sendall(pair.other, data[at : at + 700])
                await asyncio.sleep(0.001)
                assert pair.server.connection.held_bytes == 0
            assert await pair.server.got(1) == [b"x" * 5000]

    run(exchange())


def test_turns_leave_room_for_others() -> None:
    """A thousand handshakes at once do not hold the loop for a second."""

    async def many() -> None:
        loop = asyncio.get_running_loop()
        turns, done = Turns(), 0

        def step() -> None:
            nonlocal done
            done += 1
            end = loop.time() + 0.0005
            while loop.time() < end:
                pass

        for _ in range(200):
            turns.add(step)
        rounds = 0
        while done < 200:
            await asyncio.sleep(0)
            rounds += 1
        assert len(turns) == 0
        assert rounds > 200 * 0.0005 / 0.002 / 2  # many turns, not one

    asyncio.run(many())
