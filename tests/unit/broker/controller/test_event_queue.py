"""The events for a controller's next round, and the callers that wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from barnabas.broker.controller.event_queue import ANY_EPOCH, EventQueue, ReplicaReports
from barnabas.cluster.image import ClusterImage
from barnabas.controller.controller import Decision
from barnabas.errors import NotController, UnknownTopicOrPartition
from barnabas.types import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def run(scenario: Callable[[EventQueue], Awaitable[None]]) -> None:
    async def whole() -> None:
        await scenario(EventQueue())

    asyncio.run(whole())


async def step() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_who_comes_during_a_round_is_served_by_the_next_one() -> None:
    async def scenario(queue: EventQueue) -> None:
        early = asyncio.ensure_future(queue.whole_round())
        await queue.round_due()
        queue.begin_round()
        late = asyncio.ensure_future(queue.whole_round())
        await step()
        queue.end_round()
        await step()
        assert early.done() and not late.done()
        await queue.round_due()
        queue.begin_round()
        queue.end_round()
        await late

    run(scenario)


def test_marks_that_come_during_a_round_make_another_one_due() -> None:
    async def scenario(queue: EventQueue) -> None:
        queue.path_changed("/a")
        queue.path_changed("/a")
        assert queue.changed_paths == {"/a": None}
        queue.begin_round()
        queue.topic_changed("t")
        queue.end_round()
        await asyncio.wait_for(queue.round_due(), 60)
        queue.begin_round()
        idle = asyncio.ensure_future(queue.round_due())
        await step()
        assert not idle.done()
        idle.cancel()

    run(scenario)


def test_requests_are_answered_in_turn_where_a_caller_still_waits() -> None:
    async def scenario(queue: EventQueue) -> None:
        nothing = Decision((), ClusterImage.empty(), ())
        asked = [
            asyncio.ensure_future(queue.submit(lambda _, n=n: (nothing, n)))  # type: ignore[misc]
            for n in range(3)
        ]
        await step()
        asked[1].cancel()
        await step()
        queue.settle_first(0)
        queue.settle_first(1)
        queue.settle_first(error=UnknownTopicOrPartition())
        assert await asked[0] == 0
        with pytest.raises(UnknownTopicOrPartition):
            await asked[2]
        assert not queue.requests

    run(scenario)


def test_the_end_reaches_every_caller_even_in_the_middle_of_a_round() -> None:
    """ZK-3: each is to look for the next controller."""

    async def scenario(queue: EventQueue) -> None:
        served = asyncio.ensure_future(queue.whole_round())
        await step()
        queue.begin_round()
        later = asyncio.ensure_future(queue.whole_round())
        question = asyncio.ensure_future(
            queue.submit(lambda machine: machine.isr_proposed(1, 1, []))
        )
        await step()
        queue.end(OSError("first"))
        queue.end(ValueError("second"))
        with pytest.raises(OSError, match="first"):
            await queue.round_due()
        queue.close(NotController("resigned"))
        for waiting in (served, later, question):
            with pytest.raises(NotController):
                await waiting
        with pytest.raises(NotController):
            await queue.whole_round()

    run(scenario)


# --- reports of replicas -------------------------------------------------------------------------


def test_the_last_report_of_a_replica_counts() -> None:
    reports = ReplicaReports()
    assert reports.last(3, 61, T0) is None
    reports.add(3, ANY_EPOCH, [T0, T1], is_lost=True)
    assert reports.last(3, 61, T0) is True
    reports.add(3, 61, [T0], is_lost=False)
    assert reports.last(3, 61, T0) is False
    assert reports.last(3, 61, T1) is True
    assert reports.last(2, 61, T1) is None
    assert len(reports) == 2
    assert reports.take() == {(3, ANY_EPOCH): {T1: True}, (3, 61): {T0: False}}


def test_one_of_an_ended_registration_says_nothing_of_the_next_one() -> None:
    reports = ReplicaReports()
    reports.add(3, 48, [T0], is_lost=True)
    assert reports.last(3, 61, T0) is None
    reports.add(3, 61, [T0], is_lost=True)
    assert reports.take() == {(3, 48): {}, (3, 61): {T0: True}}


def test_what_a_round_processes_counts_until_it_is_in_the_image() -> None:
    reports = ReplicaReports()
    reports.add(3, 61, [T0], is_lost=True)
    taken = reports.take()
    assert (len(reports), reports.last(3, 61, T0)) == (0, True)
    reports.add(3, 61, [T0], is_lost=False)
    assert reports.last(3, 61, T0) is False, "it came later"
    assert taken == {(3, 61): {T0: True}}
    reports.on_processed()
    assert reports.take() == {(3, 61): {T0: False}}
