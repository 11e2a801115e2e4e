"""Long work in steps: at once, or in turns with others."""

from __future__ import annotations

import asyncio
import threading

import pytest

from barnabas.broker.runtime.steps import Steps, at_once, in_turns


def _refuse() -> None:
    raise OSError(5, "EIO")


def _work(seen: list[object]) -> Steps[int]:
    yield None
    yield lambda: seen.append(threading.current_thread())
    try:
        yield _refuse
    except OSError as error:
        seen.append(error.errno)
    yield None
    return 7


def test_the_order_of_the_steps_is_one() -> None:
    seen: list[object] = []
    assert at_once(_work(seen)) == 7
    assert seen == [threading.current_thread(), 5]
    seen.clear()
    assert asyncio.run(in_turns(_work(seen))) == 7
    assert seen[0] != threading.current_thread()
    assert seen[1:] == [5]


def test_several_waits_go_on_at_one_time() -> None:
    together = threading.Barrier(3)

    def work() -> Steps[str]:
        yield [lambda: together.wait(60) and None for _ in range(3)]
        return "met"

    assert asyncio.run(in_turns(work())) == "met"
    calls: list[int] = []

    def counted() -> Steps[None]:
        yield [lambda: calls.append(1), lambda: calls.append(2)]

    at_once(counted())
    assert calls == [1, 2]


def test_what_a_step_does_not_catch_is_raised() -> None:
    def work() -> Steps[None]:
        yield _refuse

    with pytest.raises(OSError, match="EIO"):
        at_once(work())
    with pytest.raises(OSError, match="EIO"):
        asyncio.run(in_turns(work()))


def test_others_have_their_turn_between() -> None:
    turns = []

    def work() -> Steps[None]:
        for _ in range(3):
            turns.append("own")
            yield None

    async def other() -> None:
        for _ in range(3):
            turns.append("other")
            await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(in_turns(work()), other())

    asyncio.run(both())
    assert turns == ["own", "other"] * 3
