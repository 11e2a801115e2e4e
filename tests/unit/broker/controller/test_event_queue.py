"""What is left for a controller's next round, and that nobody is left waiting for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from barnabas.broker.controller.event_queue import Agenda
from barnabas.cluster.image import ClusterImage
from barnabas.controller.controller import Decision
from barnabas.errors import NotController, UnknownTopicOrPartition


def run(scenario: Callable[[Agenda], Awaitable[None]]) -> None:
    async def whole() -> None:
        await scenario(Agenda())

    asyncio.run(whole())


async def step() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_who_comes_during_a_round_is_served_by_the_next_one() -> None:
    async def scenario(agenda: Agenda) -> None:
        early = asyncio.ensure_future(agenda.whole_round())
        await agenda.round_due()
        agenda.begin_round()
        late = asyncio.ensure_future(agenda.whole_round())
        await step()
        agenda.end_round()
        await step()
        assert early.done() and not late.done()
        await agenda.round_due()
        agenda.begin_round()
        agenda.end_round()
        await late

    run(scenario)


def test_marks_that_come_during_a_round_make_another_one_due() -> None:
    async def scenario(agenda: Agenda) -> None:
        agenda.look("/a")
        agenda.look("/a")
        assert agenda.changed == {"/a": None}
        agenda.begin_round()
        agenda.touch("t")
        agenda.end_round()
        await asyncio.wait_for(agenda.round_due(), 60)
        agenda.begin_round()
        idle = asyncio.ensure_future(agenda.round_due())
        await step()
        assert not idle.done()
        idle.cancel()

    run(scenario)


def test_questions_are_answered_in_turn_and_to_whoever_still_waits() -> None:
    async def scenario(agenda: Agenda) -> None:
        nothing = Decision((), ClusterImage.empty(), ())
        asked = [
            asyncio.ensure_future(agenda.ask(lambda _, n=n: (nothing, n)))  # type: ignore[misc]
            for n in range(3)
        ]
        await step()
        asked[1].cancel()
        await step()
        agenda.answered(0)
        agenda.answered(1)
        agenda.answered(error=UnknownTopicOrPartition())
        assert await asked[0] == 0
        with pytest.raises(UnknownTopicOrPartition):
            await asked[2]
        assert not agenda.questions

    run(scenario)


def test_the_end_reaches_everybody_even_in_the_middle_of_a_round() -> None:
    """ZK-3: whoever waits is to look for the next controller."""

    async def scenario(agenda: Agenda) -> None:
        served = asyncio.ensure_future(agenda.whole_round())
        await step()
        agenda.begin_round()
        later = asyncio.ensure_future(agenda.whole_round())
        question = asyncio.ensure_future(agenda.ask(lambda machine: machine.isr_proposed(1, 1, [])))
        await step()
        agenda.end(OSError("first"))
        agenda.end(ValueError("second"))
        with pytest.raises(OSError, match="first"):
            await agenda.round_due()
        agenda.close(NotController("resigned"))
        for waiting in (served, later, question):
            with pytest.raises(NotController):
                await waiting
        with pytest.raises(NotController):
            await agenda.whole_round()

    run(scenario)
