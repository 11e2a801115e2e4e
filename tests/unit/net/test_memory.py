"""Reuse of buffers: never while there is still a view of one."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from barnabas.net.memory import MemoryPool


def test_a_buffer_is_used_again() -> None:
    pool = MemoryPool()
    buffer = pool.take(1000)
    name = id(buffer)
    pool.give(buffer)
    del buffer
    assert id(pool.take(500)) == name


def test_a_buffer_with_a_view_is_not() -> None:
    pool = MemoryPool()
    buffer = pool.take(1000)
    buffer[:4] = b"kept"
    view = memoryview(buffer)[2:4]
    pool.give(buffer)
    del buffer
    other = pool.take(1000)
    other[:4] = b"gone"
    assert bytes(view) == b"pt"


def test_one_that_is_too_small_is_not() -> None:
    pool = MemoryPool()
    pool.give(bytearray(10))
    assert len(pool.take(11)) == 11


def test_only_a_few_are_kept_and_none_that_is_huge() -> None:
    pool = MemoryPool()
    for size in (100 * 1024 * 1024, *[1024] * 100):
        pool.give(bytearray(size))
    assert pool.spare_bytes == 4 * 1024


def test_who_waits_for_a_reservation_gets_it_in_its_turn_or_gives_it_back() -> None:
    async def scenario() -> None:
        pool = MemoryPool(100)
        order: list[str] = []

        async def take(name: str) -> None:
            await pool.until_reserved(100)
            order.append(name)

        await take("first")
        waiting = [asyncio.create_task(take(name)) for name in ("second", "third", "fourth")]
        await asyncio.sleep(0)
        assert order == ["first"]
        waiting[0].cancel()
        pool.release(100)
        await asyncio.sleep(0)
        waiting[2].cancel()  # it waits still
        await asyncio.wait_for(waiting[1], 10)
        assert order == ["first", "third"]
        late = asyncio.create_task(take("late"))
        await asyncio.sleep(0)
        pool.release(100)
        late.cancel()  # in the very turn in which it was granted
        await asyncio.gather(*waiting, late, return_exceptions=True)
        await asyncio.wait_for(take("last"), 10)
        assert order == ["first", "third", "last"]

    asyncio.run(scenario())


def test_the_holder_that_began_first_never_waits() -> None:
    """Frames that grow would wait for what the others hold, and none would ever end."""
    pool = MemoryPool(100)
    granted: list[str] = []

    def reserve(size_bytes: int, holder: str) -> bool:
        return pool.reserve(size_bytes, lambda: granted.append(holder), holder)

    assert reserve(60, "first") and reserve(60, "second")
    assert not reserve(60, "second") and not reserve(60, "third")
    assert reserve(1000, "first"), "whatever it needs"
    assert pool.is_short and pool.holders == ("first", "second")
    pool.release(1060, "first")
    assert granted == ["second"] and pool.holders == ("second",)
    pool.release(120, "second")
    assert granted == ["second", "third"] and not pool.is_short


@pytest.mark.parametrize("seed", range(20))
def test_frames_that_grow_all_end(seed: int) -> None:
    random = Random(seed)
    pool = MemoryPool(random.randrange(1, 100))
    wanted = {number: random.randrange(1, 300) for number in range(30)}
    held = dict.fromkeys(wanted, 0)
    running = set(wanted)

    def grow(number: int) -> None:
        running.discard(number)
        part = min(random.randrange(1, 50), wanted[number] - held[number])

        def granted() -> None:
            held[number] += part
            running.add(number)

        if pool.reserve(part, granted, number):
            granted()

    while wanted:
        assert running, "someone can always go on"
        number = random.choice(sorted(running))
        if held[number] == wanted[number]:
            running.discard(number)
            del wanted[number]
            pool.release(held[number], number)
        else:
            grow(number)
    assert not pool.is_short and pool.holders == ()
