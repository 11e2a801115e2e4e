"""Time, order and waiting."""

from __future__ import annotations

import pytest

from simulation.story import digest, words
from simulation.world import Life, Promise, World


def test_events_of_one_instant_run_in_the_order_in_which_they_were_made() -> None:
    world = World(1)
    seen: list[str] = []
    for name in "abc":
        world.at(5, None, seen.append, name)
    world.at(3, None, seen.append, "first")
    world.run_until(10)
    assert seen == ["first", "a", "b", "c"]
    assert world.now_ms == 10


def test_what_a_dead_process_had_in_mind_does_not_happen() -> None:
    world, life = World(1), Life()
    seen: list[str] = []
    world.at(5, life, seen.append, "late")
    world.at(4, None, setattr, life, "is_over", True)
    world.run_until(10)
    assert seen == []


def test_a_paused_process_does_everything_later_and_in_order() -> None:
    world, life = World(1), Life()
    seen: list[tuple[str, int]] = []
    life.paused_until_ms = 20
    world.at(5, life, lambda: seen.append(("a", world.now_ms)))
    world.at(6, life, lambda: seen.append(("b", world.now_ms)))
    world.run_until(30)
    assert seen == [("a", 20), ("b", 20)]


def test_a_coroutine_waits_for_time_and_for_answers() -> None:
    world, life = World(1), Life()
    answer: Promise[str] = Promise()
    seen: list[tuple[str, int]] = []

    async def work() -> None:
        await world.sleep(life, 7)
        seen.append((await answer, world.now_ms))

    world.start(life, work())
    world.at(9, None, answer.resolve, "yes")
    world.at(10, None, answer.resolve, "no")
    world.run_until(20)
    assert seen == [("yes", 9)]


def test_a_failed_promise_raises_where_it_is_awaited() -> None:
    world, life = World(1), Life()
    seen: list[str] = []

    async def work() -> None:
        promise: Promise[None] = Promise()
        world.at(3, None, promise.fail, ValueError("no"))
        with pytest.raises(ValueError, match="no"):
            await promise
        seen.append("went on")

    world.start(life, work())
    world.run_until(5)
    assert seen == ["went on"]


def test_the_story_is_put_into_words_when_it_is_read() -> None:
    world = World(1)
    world.run_until(1500)
    world.tell("broker {} leads {}", 2, "t0-0")
    assert words(world.lines[0]) == "   1.500 s  broker 2 leads t0-0"
    assert digest(world.lines) != digest([])
