"""net/connection.py over real loopback sockets: frames, order, files, limits, backpressure."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import struct
import time
import weakref

import pytest

from barnabas.errors import CorruptData
from barnabas.net.connection import Connection
from barnabas.net.memory import MemoryPool
from tests.kit.connected_sockets import PATIENCE_S, frame, receive, served


def test_a_closed_connection_does_not_wait_for_the_cycle_collector(run) -> None:
    """Its buffer and its transport would wait with it: clients come and go by thousands."""

    async def scenario() -> weakref.ref[Connection]:
        got: list[int] = []
        async with served(lambda _, view: got.append(len(view))) as (client, peer):
            await asyncio.get_running_loop().sock_sendall(client, frame(b"x"))
            while not got:
                await asyncio.sleep(0.001)
            return weakref.ref(peer.connection)

    gc.collect()
    gc.disable()
    try:
        assert run(scenario())() is None
    finally:
        gc.enable()


def test_frames_cut_anywhere_arrive_whole_and_in_order(run) -> None:
    payloads = [bytes([n]) * (n * 37) for n in range(40)]
    stream = b"".join(frame(each) for each in payloads)

    async def scenario() -> list[bytes]:
        got: list[bytes] = []
        async with served(lambda _, view: got.append(bytes(view))) as (client, _):
            loop = asyncio.get_running_loop()
            for start in range(0, len(stream), 1013):
                await loop.sock_sendall(client, stream[start : start + 1013])
                await asyncio.sleep(0)
            while len(got) < len(payloads):
                await asyncio.sleep(0.001)
        return got

    assert run(scenario()) == payloads


def test_a_frame_larger_than_the_buffer_arrives_and_memory_follows_the_bytes(run) -> None:
    payload = os.urandom(900_000)

    async def scenario() -> tuple[bytes, int]:
        got: list[bytes] = []
        async with served(lambda _, view: got.append(bytes(view))) as (client, peer):
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(client, frame(payload)[:300_000])
            while peer.connection._end < 262_144:
                await asyncio.sleep(0.001)
            halfway = len(peer.connection._buffer or b"")
            await loop.sock_sendall(client, frame(payload)[300_000:])
            while not got:
                await asyncio.sleep(0.001)
            await loop.sock_sendall(client, frame(b"small"))
            while len(got) < 2:
                await asyncio.sleep(0.001)
            assert peer.connection._buffer is None, "an idle connection keeps no receive buffer"
            return got[0], halfway

    got, halfway = run(scenario())
    assert got == payload
    assert halfway <= 2 * 300_000


@pytest.mark.parametrize("size", [-1, 1001, 0x7FFFFFFF])
def test_a_frame_over_the_limit_closes_the_connection_and_says_why(run, size: int) -> None:
    async def scenario() -> Exception | None:
        async with served(lambda *_: None, max_frame_bytes=1000) as (client, peer):
            await asyncio.get_running_loop().sock_sendall(client, struct.pack(">i", size))
            return await asyncio.wait_for(peer.closed, PATIENCE_S)

    error = run(scenario())
    assert isinstance(error, CorruptData)
    assert str(size) in str(error) and "socket.request.max.bytes" in str(error)


def test_pause_holds_back_frames_already_received(run) -> None:
    """A hold on one request keeps the next one of its connection from overtaking."""
    got: list[bytes] = []

    def hold(connection: Connection, view: memoryview) -> None:
        got.append(bytes(view))
        connection.pause_reading()

    async def scenario() -> None:
        async with served(hold) as (client, peer):
            await asyncio.get_running_loop().sock_sendall(client, frame(b"a") + frame(b"b") * 2)
            for count in (1, 2, 3):
                while len(got) < count:
                    await asyncio.sleep(0.001)
                await asyncio.sleep(0.01)
                assert len(got) == count, "the others wait, however long"
                peer.connection.resume_reading()

    run(scenario())
    assert got == [b"a", b"b", b"b"]


def test_frames_that_are_held_are_received_up_to_a_limit(run) -> None:
    got: list[bytes] = []

    async def scenario() -> None:
        connections: list[Connection] = []

        def hold(connection: Connection, view: memoryview) -> None:
            got.append(bytes(view))
            connections.append(connection)
            connection.hold_frames()

        async with served(hold) as (client, peer):
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(client, frame(b"a") + frame(b"b"))
            many = 4000 * frame(bytes(1000))
            sending = loop.create_task(loop.sock_sendall(client, many + frame(b"z")))
            while peer.connection.held_bytes < 64 * 1024:
                await asyncio.sleep(0.001)
            for _ in range(50):  # in each of whose turns more could have been read
                await asyncio.sleep(0)
            assert got == [b"a"]
            assert peer.connection.held_bytes <= 512 * 1024
            while got[-1] != b"z":
                await asyncio.sleep(0)
                peer.connection.release_frames()
                while not peer.connection._paused:
                    await asyncio.sleep(0)
            await sending

    run(scenario())
    assert got == [b"a", b"b", *[bytes(1000)] * 4000, b"z"]


def test_a_turn_ends_by_the_time_that_its_frames_take(run) -> None:
    """256 frames of a millisecond each would hold up all other connections for as long."""
    per_turn: list[int] = []

    async def scenario() -> None:
        got: list[bytes] = []

        def slow(connection: Connection, view: memoryview) -> None:
            got.append(bytes(view))
            ends_at = time.monotonic() + 0.001
            while time.monotonic() < ends_at:
                pass

        def count(connection: Connection) -> None:
            per_turn.append(len(got) - sum(per_turn))

        async with served(slow) as (client, peer):
            peer.wake_ended = count  # type: ignore[method-assign]
            await asyncio.get_running_loop().sock_sendall(client, 100 * frame(b"a"))
            while len(got) < 100:
                await asyncio.sleep(0)

    run(scenario())
    assert max(per_turn) <= 16


def test_a_frame_that_is_handed_back_comes_again(run) -> None:
    got: list[bytes] = []

    def hand_back_once(connection: Connection, view: memoryview) -> None:
        got.append(bytes(view))
        if got.count(b"b") == 1 and view == b"b":
            connection.hand_back(view)

    async def scenario() -> None:
        memory = MemoryPool(1 << 20)
        large = b"c" * 600_000
        async with served(hand_back_once, memory=memory) as (client, peer):
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(client, frame(b"a") + frame(b"b") + frame(large))
            while len(got) < 2:
                await asyncio.sleep(0.001)
            assert got == [b"a", b"b"]
            peer.connection.release_frames()
            while len(got) < 4:
                await asyncio.sleep(0.001)
            assert got == [b"a", b"b", b"b", large]

    run(scenario())


def test_the_end_is_noticed_while_a_frame_is_awaited(run) -> None:
    """A client that goes while its request waits for minutes holds no socket here."""

    async def scenario() -> None:
        async with served(lambda connection, view: connection.hold_frames()) as (client, peer):
            await asyncio.get_running_loop().sock_sendall(client, frame(b"a"))
            while not peer.connection._paused:
                await asyncio.sleep(0.001)
            client.shutdown(socket.SHUT_WR)
            await asyncio.wait_for(asyncio.shield(peer.closed), PATIENCE_S)

    run(scenario())


def test_what_came_before_the_end_is_still_handed_over(run) -> None:
    """A Produce with acks=0 has no answer for which its client would wait."""
    got: list[bytes] = []

    def hold_first(connection: Connection, view: memoryview) -> None:
        got.append(bytes(view))
        connection.write([b"answer"])
        if view == b"a":
            connection.hold_frames()

    async def scenario() -> None:
        async with served(hold_first) as (client, peer):
            await asyncio.get_running_loop().sock_sendall(client, frame(b"a") + frame(b"b"))
            client.shutdown(socket.SHUT_WR)
            while not peer.connection.has_ended:
                await asyncio.sleep(0.001)
            peer.connection.release_frames()
            assert await receive(client, 100) == b"answer" * 2
            await asyncio.wait_for(asyncio.shield(peer.closed), PATIENCE_S)

    run(scenario())
    assert got == [b"a", b"b"]


def test_a_wake_up_ends_once_however_many_frames_it_brought(run) -> None:
    """What is appended in one wake-up is written by one call; its answers leave by one."""

    async def body() -> None:
        events: list[object] = []

        def on_frame(connection: Connection, data: memoryview) -> None:
            events.append(bytes(data))
            connection.write([b"answer"])

        async with served(on_frame) as (client, peer):
            peer.wake_ended = lambda connection: events.append(None)  # type: ignore[method-assign]
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(client, frame(b"a") + frame(b"b") + frame(b"c"))
            assert await receive(client, 18) == b"answer" * 3
            assert events == [b"a", b"b", b"c", None]

    run(body())


def test_a_pause_that_ends_with_the_wake_up_holds_no_frame_back(run) -> None:
    async def body() -> None:
        got: list[bytes] = []

        def on_frame(connection: Connection, data: memoryview) -> None:
            got.append(bytes(data))
            connection.pause_reading()

        async with served(on_frame) as (client, peer):
            peer.wake_ended = (  # type: ignore[method-assign]
                lambda connection: got and connection._paused and connection.resume_reading()
            )
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(client, frame(b"a") + frame(b"b") + frame(b"c"))
            while len(got) < 3:
                await asyncio.sleep(0.01)
            assert got == [b"a", b"b", b"c"]

    run(body())


def test_a_frame_that_is_kept_stays_as_it_is(run) -> None:
    """Batches are written from it at the end of the wake-up, and fetched records live in it."""

    async def body() -> None:
        kept: list[memoryview] = []
        async with served(lambda connection, data: kept.append(data)) as (client, _):
            loop = asyncio.get_running_loop()
            sent = [bytes([number % 251]) * (1 + number * 37 % 9000) for number in range(600)]
            for payload in sent:
                await asyncio.wait_for(loop.sock_sendall(client, frame(payload)), PATIENCE_S)
            while len(kept) < len(sent):
                await asyncio.sleep(0.01)
            assert [bytes(view) for view in kept] == sent

    run(body())


def test_one_connection_does_not_keep_the_loop_to_itself(run) -> None:
    """However much is pipelined, the others have their turn in between; nothing is lost."""

    async def body() -> None:
        events: list[object] = []

        async with served(lambda connection, data: events.append(bytes(data))) as (client, _):
            loop = asyncio.get_running_loop()

            def other() -> None:
                events.append(None)
                if events.count(b"x") < 2000:
                    loop.call_soon(other)

            loop.call_soon(other)
            await loop.sock_sendall(client, frame(b"x") * 2000)
            while events.count(b"x") < 2000:
                await asyncio.sleep(0.01)
        assert events.count(b"x") == 2000
        longest = max(len(run) for run in b"".join(e or b"|" for e in events).split(b"|"))  # type: ignore[arg-type]
        assert longest <= 256

    run(body())
