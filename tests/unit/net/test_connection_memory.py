"""net/connection.py: the memory that connections hold, and how they share it."""

from __future__ import annotations

import asyncio
import tracemalloc
from contextlib import AsyncExitStack

import pytest

from barnabas.net.memory import MemoryPool
from tests.kit.connected_sockets import PATIENCE_S, frame, served


def test_large_frames_wait_for_memory_and_all_arrive(run) -> None:
    """`queued.max.request.bytes`: one frame at a time here, none starves, none is lost."""
    pool = MemoryPool(400_000)
    payload = bytes(600_000)
    got: list[int] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with (
            served(lambda _, view: got.append(len(view)), memory=pool) as (one, first),
            served(lambda _, view: got.append(len(view)), memory=pool) as (two, second),
            served(lambda _, view: got.append(len(view)), memory=pool) as (three, third),
        ):
            await loop.sock_sendall(one, frame(payload)[:400_000])
            while not first.connection.reservation.size_bytes:
                await asyncio.sleep(0.001)
            sending = [
                loop.create_task(loop.sock_sendall(two, frame(payload))),
                loop.create_task(loop.sock_sendall(three, frame(payload)[:300_000])),
            ]
            await asyncio.sleep(0.05)
            assert got == [], "the pool is taken: no other connection reads on"
            assert second.connection.held_bytes <= 300_000
            third.connection.abort()  # gives up while it waits: gives back only what it had
            await loop.sock_sendall(one, frame(payload)[400_000:])
            while len(got) < 2:
                await asyncio.sleep(0.001)
            for task in sending:
                task.cancel()
        assert pool.reserve(1, lambda: None), "everything was given back"

    run(scenario())
    assert got == [600_000, 600_000]


def test_connections_that_all_end_at_once_cost_one_buffer(run) -> None:
    """Ten thousand members whose network is cut must not take 2.6 GB to say goodbye."""

    async def scenario() -> int:
        memory = MemoryPool()
        async with AsyncExitStack() as stack:
            pairs = [
                await stack.enter_async_context(served(lambda *_: None, memory=memory))
                for _ in range(100)
            ]
            await asyncio.sleep(0)
            tracemalloc.start()
            for client, _ in pairs:
                client.close()
            for _, peer in pairs:
                await asyncio.wait_for(peer.closed, PATIENCE_S)
            peak_bytes = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return peak_bytes

    assert run(scenario()) < 4 * 1024 * 1024


@pytest.mark.parametrize("sent", [b"", frame(b"a whole one")], ids=["first", "behind-a-frame"])
def test_a_few_bytes_of_a_frame_hold_a_few_bytes(run, sent: bytes) -> None:
    """UX-4: eight hundred connections that send five bytes and fall silent are not 200 MB."""

    async def scenario() -> int:
        memory = MemoryPool()
        got: list[bytes] = []
        async with AsyncExitStack() as stack:
            pairs = [
                await stack.enter_async_context(
                    served(lambda _, frame: got.append(bytes(frame)), memory=memory)
                )
                for _ in range(100)
            ]
            await asyncio.sleep(0)
            loop = asyncio.get_running_loop()
            tracemalloc.start()
            for client, _ in pairs:
                await loop.sock_sendall(client, sent + frame(b"later")[:5])
            while len(got) < (len(pairs) if sent else 0) or not all(
                peer.connection.held_bytes >= 5 for _, peer in pairs
            ):
                await asyncio.sleep(0.001)
            held_bytes = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
            got.clear()
            for client, _ in pairs:
                await loop.sock_sendall(client, frame(b"later")[5:])
            while len(got) < len(pairs):
                await asyncio.sleep(0.001)
            assert set(got) == {b"later"}
            return held_bytes

    assert run(scenario()) < 4 * 1024 * 1024
