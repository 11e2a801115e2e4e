"""Cooperative rebalances of our consumer (KIP-429): what is revoked, from whom and when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from barnabas.client import Admin, Consumer, NewTopic, Producer, RebalanceListener, TopicPartition
from barnabas.client.errors import CommitFailed

pytestmark = pytest.mark.secured

PATIENCE_S = 120.0
OPTIONS: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 100,
    "session_timeout_ms": 30_000,
    "partition_assignment_strategy": "cooperative-sticky",
}


class Recorder(RebalanceListener):
    """Records what comes and goes; of a rebalance that brings nothing, nothing."""

    def __init__(self) -> None:
        self.events: list[tuple[str, set[int]]] = []

    def _note(self, event: str, partitions: Sequence[TopicPartition]) -> None:
        if partitions or event != "assigned":
            self.events.append((event, {each.partition for each in partitions}))

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self._note("revoked", partitions)

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._note("assigned", partitions)

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self._note("lost", partitions)


async def made(servers: str, partitions: int) -> str:
    topic = f"cooperative-{uuid4().hex[:8]}"
    async with Admin(servers) as admin:
        await admin.create_topics([NewTopic(topic, partitions)])
    return topic


async def fill(servers: str, topic: str, values: range, partitions: Sequence[int]) -> None:
    async with Producer(servers) as producer:
        for value in values:
            partition = partitions[value % len(partitions)]
            await producer.send(topic, b"%d" % value, partition=partition)


@asynccontextmanager
async def member(
    servers: str, topic: str, listener: RebalanceListener | None = None, **options: Any
) -> AsyncIterator[Consumer]:
    async with Consumer(servers, **{**OPTIONS, "group_id": topic, **options}) as consumer:
        consumer.subscribe([topic], listener)
        yield consumer


async def poll_until(done: Callable[[], bool], *consumers: Consumer) -> list[list[int]]:
    """Let all poll until it is `done`; the numbers that each one got."""
    got: list[list[int]] = [[] for _ in consumers]

    async def poll(consumer: Consumer, into: list[int]) -> None:
        while not done():
            into += [int(record.value or b"-1") for record in await consumer.poll(50)]

    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*map(poll, consumers, got))
    return got


def share(*consumers: Consumer) -> list[int]:
    return [len(consumer.assignment()) for consumer in consumers]


def owned(consumer: Consumer) -> set[int]:
    return {each.partition for each in consumer.assignment()}


def test_as_6_only_partitions_that_move_are_revoked(servers: str) -> None:
    """Of six partitions a second member gets three, a third one two; a leaver's come back."""

    async def run() -> None:
        topic = await made(servers, 6)
        first, second, third = Recorder(), Recorder(), Recorder()
        async with member(servers, topic, first) as one:
            await poll_until(lambda: share(one) == [6], one)
            async with member(servers, topic, second) as two:
                await poll_until(lambda: share(one, two) == [3, 3], one, two)
                of_two = owned(two)
                assert first.events == [("assigned", set(range(6))), ("revoked", of_two)]
                assert second.events == [("assigned", of_two)]
                async with member(servers, topic, third) as three:
                    await poll_until(lambda: share(one, two, three) == [2, 2, 2], one, two, three)
                    (from_one,) = set(range(6)) - of_two - owned(one)
                    (from_two,) = of_two - owned(two)
                    assert owned(three) == {from_one, from_two}
                    assert first.events[2:] == [("revoked", {from_one})]
                    assert second.events[1:] == [("revoked", {from_two})]
                await poll_until(lambda: share(one, two) == [3, 3], one, two)
                assert [each for each, _ in first.events[3:]] == ["assigned"]
                assert [each for each, _ in second.events[2:]] == ["assigned"]
            await poll_until(lambda: share(one) == [6], one)
        assert first.events[-1] == ("revoked", set(range(6))), "at its close"
        assert "lost" not in {each for each, _ in first.events + second.events + third.events}

    asyncio.run(run())


def test_as_6_what_stays_is_read_and_committed_during_the_rebalance(servers: str) -> None:
    """A member that does not poll holds the rebalance up; the other reads on until it ends."""

    async def run() -> None:
        topic = await made(servers, 4)
        manual: dict[str, Any] = {"enable_auto_commit": False}
        async with (
            member(servers, topic, **manual) as one,
            member(servers, topic, **manual) as slow,
            member(servers, topic, **manual) as new,
            Admin(servers) as admin,
        ):

            async def state() -> str:
                return str((await admin.describe_groups([topic]))[topic].state)

            await poll_until(lambda: share(one, slow) == [2, 2], one, slow)
            kept = owned(one)
            async with asyncio.timeout(PATIENCE_S):
                while await state() != "PreparingRebalance":
                    await new.poll(20)
                for _ in range(20):  # so that it hears of it, and joins again
                    await one.poll(20)
            await fill(servers, topic, range(20), sorted(kept))
            got: list[int] = []
            async with asyncio.timeout(PATIENCE_S):
                while len(got) < 20:
                    got += [int(record.value or b"-1") for record in await one.poll(50)]
            assert sorted(got) == list(range(20))
            await one.commit_sync()
            assert await state() == "PreparingRebalance", "all of that was during the rebalance"
            assert owned(one) == kept
            rest = await poll_until(
                lambda: sorted(share(one, slow, new)) == [1, 1, 2], one, slow, new
            )
            assert rest == [[], [], []], "what was committed does not come again"

    asyncio.run(run())


def test_as_6_positions_are_committed_before_partitions_move(servers: str) -> None:
    """CO-4: the new owner goes on where the old one has stopped; the old one reads on."""

    async def run() -> None:
        topic = await made(servers, 4)
        lazy: dict[str, Any] = {"auto_commit_interval_ms": 3_600_000}
        await fill(servers, topic, range(40), range(4))
        async with member(servers, topic, **lazy) as one, member(servers, topic, **lazy) as two:
            count = 0
            async with asyncio.timeout(PATIENCE_S):
                while count < 40:
                    count += len(await one.poll(50))
            assert await poll_until(lambda: share(one, two) == [2, 2], one, two) == [[], []]
            await fill(servers, topic, range(40, 80), range(4))
            got: list[int] = []
            async with asyncio.timeout(PATIENCE_S):
                while len(got) < 40:
                    for consumer in (one, two):
                        got += [int(record.value or b"-1") for record in await consumer.poll(50)]
            assert sorted(got) == list(range(40, 80))

    asyncio.run(run())


def test_as_6_who_was_removed_has_lost_its_partitions(servers: str) -> None:
    """KIP-429: `on_partitions_lost`, and nothing of them can be committed any more."""

    async def run() -> None:
        topic = await made(servers, 2)
        listener = Recorder()
        manual: dict[str, Any] = {"enable_auto_commit": False}
        async with (
            member(servers, topic, listener, max_poll_interval_ms=1_000, **manual) as slow,
            member(servers, topic, **manual) as quick,
        ):
            await fill(servers, topic, range(4), range(2))
            await poll_until(lambda: share(slow) == [2], slow)
            await poll_until(lambda: share(quick) == [2], quick)
            with pytest.raises(CommitFailed, match=r"max\.poll\.interval\.ms"):
                await slow.commit_sync({TopicPartition(topic, 0): 1})
            await poll_until(lambda: share(slow, quick) == [1, 1], slow, quick)
            assert listener.events[:2] == [("assigned", {0, 1}), ("lost", {0, 1})]
            assert {each for each, _ in listener.events[2:]} == {"assigned"}

    asyncio.run(run())


def test_as_6_another_subscription_revokes_only_what_it_leaves_out(servers: str) -> None:
    """CO-2: a topic that stays subscribed to is read on."""

    async def run() -> None:
        topic, other = await made(servers, 2), await made(servers, 3)
        listener = Recorder()
        async with member(servers, topic, listener) as consumer:
            await poll_until(lambda: share(consumer) == [2], consumer)
            consumer.subscribe([topic, other], listener)
            await poll_until(lambda: share(consumer) == [5], consumer)
            assert listener.events == [("assigned", {0, 1}), ("assigned", {0, 1, 2})]
            consumer.subscribe([other], listener)
            await poll_until(lambda: share(consumer) == [3], consumer)
            assert listener.events[2:] == [("revoked", {0, 1})]
            assert {each.topic for each in consumer.assignment()} == {other}

    asyncio.run(run())


@pytest.mark.parametrize("strategy", ["range,cooperative-sticky", "cooperative-sticky,range"])
def test_as_6_beside_an_eager_assignor_everything_is_revoked(servers: str, strategy: str) -> None:
    """As in Kafka: the eager one may be chosen next time, and gives away what others own."""

    async def run() -> None:
        topic = await made(servers, 2)
        listener = Recorder()
        mixed: dict[str, Any] = {"partition_assignment_strategy": strategy}
        async with member(servers, topic, listener, **mixed) as one:
            await poll_until(lambda: share(one) == [2], one)
            async with member(servers, topic, **mixed) as two:
                await poll_until(lambda: share(one, two) == [1, 1], one, two)
                assert listener.events[:2] == [("assigned", {0, 1}), ("revoked", {0, 1})]

    asyncio.run(run())
