"""net/send_queue.py over real loopback sockets: order, files, backpressure."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from barnabas.net.connection import Connection
from barnabas.net.send_queue import SendQueue
from barnabas.types import FileSlice
from tests.kit.connected_sockets import PATIENCE_S, frame, receive, served


class OpenFile:
    """A SharedFile over a descriptor that counts who holds it."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY)
        self.holders = 0

    def acquire(self) -> None:
        self.holders += 1

    def release(self) -> None:
        self.holders -= 1
        assert self.holders >= 0

    def fileno(self) -> int:
        return self._fd

    def pread(self, size: int, position: int) -> bytes:
        return os.pread(self._fd, size, position)

    def close(self) -> None:
        os.close(self._fd)


@pytest.mark.parametrize("has_sendfile", [True, False])
def test_bytes_and_files_leave_in_order_though_the_socket_is_full(
    run, has_sendfile: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ST-5: files go by sendfile, if there is any, and each slice is released once."""
    if not has_sendfile:
        monkeypatch.delattr(os, "sendfile")
    content = os.urandom(3_000_000)
    path = tmp_path / "segment"
    path.write_bytes(content)
    file = OpenFile(path)
    expected = b"".join(
        b"head%d" % n + content[n * 1000 : n * 1000 + 700_000] + b"tail" for n in range(8)
    )

    def answer(connection: Connection, _: memoryview) -> None:
        for n in range(8):
            connection.write([b"head%d" % n, FileSlice(file, n * 1000, 700_000), b"tail"])

    async def scenario() -> bytes:
        async with served(answer) as (client, _):
            await asyncio.get_running_loop().sock_sendall(client, frame(b"go"))
            await asyncio.sleep(0.05)  # the socket fills; nothing may be lost or turned round
            return await receive(client, len(expected))

    assert run(scenario()) == expected
    assert file.holders == 0
    file.close()


def test_a_file_that_ends_early_closes_the_connection(run, tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(b"x" * 100)
    file = OpenFile(path)

    def answer(connection: Connection, _: memoryview) -> None:
        connection.write([b"header", FileSlice(file, 0, 200)])

    async def scenario() -> tuple[Exception | None, bytes]:
        async with served(answer) as (client, peer):
            await asyncio.get_running_loop().sock_sendall(client, frame(b"go"))
            error = await asyncio.wait_for(peer.closed, PATIENCE_S)
            return error, b""

    error, _ = run(scenario())
    assert isinstance(error, OSError) and "early" in str(error)
    assert file.holders == 0
    file.close()


def test_slices_are_released_when_the_peer_goes_away(run, tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(20_000_000))
    file = OpenFile(path)

    def answer(connection: Connection, _: memoryview) -> None:
        for _ in range(5):
            connection.write([b"header", FileSlice(file, 0, 20_000_000)])

    async def scenario() -> None:
        async with served(answer) as (client, peer):
            await asyncio.get_running_loop().sock_sendall(client, frame(b"go"))
            await receive(client, 1000)
            client.close()
            await asyncio.wait_for(peer.closed, PATIENCE_S)
            peer.connection.write([FileSlice(file, 0, 10)])  # too late, and still released

    run(scenario())
    assert file.holders == 0
    file.close()


def test_a_peer_that_does_not_read_is_not_read_from(run) -> None:
    """Backpressure: answers pile up to what the sockets hold, not to what was asked for."""
    answered = 0
    block = bytes(1_000_000)

    def answer(connection: Connection, _: memoryview) -> None:
        nonlocal answered
        answered += 1
        connection.write([block])

    async def scenario() -> int:
        async with served(answer) as (client, peer):
            await asyncio.get_running_loop().sock_sendall(client, frame(b"go") * 100)
            await asyncio.sleep(0.1)
            stalled_at = answered
            assert peer.connection.send_queue.unsent_bytes <= 2 * len(block)
            got = await receive(client, 100 * len(block))
            assert len(got) == 100 * len(block)
            assert peer.connection.send_queue.unsent_bytes == 0
            return stalled_at

    assert run(scenario()) < 20
    assert answered == 100


def test_close_sends_what_was_written_first(run, tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(b"y" * 2_000_000)
    file = OpenFile(path)

    def answer(connection: Connection, _: memoryview) -> None:
        connection.write([b"header", FileSlice(file, 0, 2_000_000)])
        connection.close()

    async def scenario() -> bytes:
        async with served(answer) as (client, _):
            await asyncio.get_running_loop().sock_sendall(client, frame(b"go"))
            return await receive(client, 2_000_007)

    assert run(scenario()) == b"header" + b"y" * 2_000_000
    assert file.holders == 0
    file.close()


@pytest.mark.parametrize("has_file", [True, False])
def test_a_peer_that_does_not_read_holds_itself_up(run, has_file: bool, tmp_path: Path) -> None:
    """A request that has stalled meanwhile is the peer's fault, whatever its response is made of.

    Otherwise it would keep memory that others wait for.
    """
    path = tmp_path / "segment"
    path.write_bytes(bytes(30_000_000))
    file = OpenFile(path)

    def answer(connection: Connection, _: memoryview) -> None:
        connection.write([FileSlice(file, 0, 30_000_000) if has_file else bytes(30_000_000)])

    async def scenario() -> None:
        async with served(answer) as (client, peer):
            await asyncio.get_running_loop().sock_sendall(client, frame(b"go"))
            while not peer.connection.send_queue.is_blocked:
                await asyncio.sleep(0.001)
            assert not peer.connection.is_held_up
            peer.connection.pause_reading()
            assert peer.connection.is_held_up
            peer.connection.resume_reading()
            await receive(client, 30_000_000)
            assert not peer.connection.send_queue.is_blocked
            assert peer.connection.send_queue.blocked_ns > 0

    run(scenario())
    assert file.holders == 0
    file.close()


def test_nothing_is_sent_without_a_transport_or_after_the_end(run, tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(10))
    file = OpenFile(path)

    async def scenario() -> None:
        async with served(lambda *_: None) as (client, peer):
            SendQueue(peer.connection).write([b"early", FileSlice(file, 0, 10)])
            await asyncio.get_running_loop().sock_sendall(client, frame(b"go"))
            while not peer.wakes:
                await asyncio.sleep(0.001)
            peer.connection.write([b"answer"])
            peer.connection.close()
            peer.connection.write([b"late", FileSlice(file, 0, 10)])
            assert await receive(client, 100) == b"answer"

    run(scenario())
    assert file.holders == 0
    file.close()
