"""Shells that are written for asyncio, on the world's heap: time, futures, lives and errors."""

from __future__ import annotations

import asyncio
import logging

import pytest

from simulation.life_loop import loop_of
from simulation.story import words
from simulation.world import Life, Promise, World


def test_a_task_waits_for_time_for_futures_and_for_promises() -> None:
    world, life = World(1), Life()
    loop = loop_of(world, life, "it")
    seen: list[tuple[str, int]] = []

    async def work() -> None:
        await asyncio.sleep(0.007)
        seen.append(("slept", world.now_ms))
        promise: Promise[str] = Promise()
        world.at(5, None, promise.resolve, "value")
        seen.append((await promise, world.now_ms))
        event = asyncio.Event()
        world.at(3, None, event.set)
        await event.wait()
        seen.append(("event", world.now_ms))
        with pytest.raises(ValueError, match="no"):
            failing: Promise[str] = Promise()
            world.at(1, None, failing.fail, ValueError("no"))
            await failing
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await Promise[str]()
        seen.append(("timeout", world.now_ms))

    loop.start(work())
    world.run_until(1000)
    assert seen == [("slept", 7), ("value", 12), ("event", 15), ("timeout", 116)]


def test_what_a_task_raises_ends_the_run() -> None:
    world = World(1)

    async def work() -> None:
        await asyncio.sleep(0.005)
        raise ZeroDivisionError

    loop_of(world, Life(), "it").start(work())
    with pytest.raises(ZeroDivisionError):
        world.run_until(1000)
    assert world.now_ms == 5


@pytest.mark.parametrize("is_over", [False, True])
def test_a_loop_stands_still_and_ends_with_its_life(is_over: bool) -> None:
    world, life = World(1), Life()
    loop = loop_of(world, life, "it")
    seen: list[int] = []

    async def work() -> None:
        await asyncio.sleep(0.005)
        seen.append(world.now_ms)

    loop.start(work())
    world.run_until(1)
    life.paused_until_ms = 20
    life.is_over = is_over
    world.run_until(1000)
    assert seen == ([] if is_over else [20])


def test_a_shell_s_log_is_part_of_the_story_and_an_error_it_did_not_expect_ends_the_run() -> None:
    world = World(1)
    log = logging.getLogger("barnabas.some.shell")

    async def work() -> None:
        log.info("one of %d", 2)
        try:
            raise ZeroDivisionError
        except ZeroDivisionError as error:
            log.error("it goes on", exc_info=error)

    loop_of(world, Life(), "it").start(work())
    with pytest.raises(ZeroDivisionError):
        world.run_until(1000)
    assert [words(line) for line in world.lines] == [
        "   0.000 s  it: one of 2",
        "   0.000 s  it: it goes on",
    ]
