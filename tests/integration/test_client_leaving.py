"""Consumers that leave their group while its coordinator does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.client import Consumer, TopicPartition
from barnabas.client.errors import CommitFailed
from tests.kit.waiting import until

if TYPE_CHECKING:
    import barnabas

pytestmark = pytest.mark.secured

PATIENCE_S = 60
# What waits for an answer waits until the end of the test.
ENDLESS: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "request_timeout_ms": 600_000,
    "default_api_timeout_ms": 600_000,
    "session_timeout_ms": 600_000,
}


def run(work: Coroutine[Any, Any, None], broker: barnabas.Broker) -> None:
    async def bounded() -> None:
        working = asyncio.create_task(work)
        try:
            await asyncio.wait_for(asyncio.shield(working), PATIENCE_S)
        finally:
            broker.resume()
            await asyncio.gather(working, return_exceptions=True)

    asyncio.run(bounded())


async def read_one(consumer: Consumer, topic: str) -> None:
    consumer.subscribe([topic])
    while not await consumer.poll(1_000):
        pass


def test_a_cancelled_consumer_leaves_a_silent_coordinator(broker: barnabas.Broker) -> None:
    """LeaveGroup is best effort: without its answer a task that was cancelled ends, too."""
    broker.topic("leaving", partitions=1).send(b"x")
    paused = asyncio.Event()

    async def read() -> None:
        async with Consumer(broker.bootstrap_servers, group_id="cancelled", **ENDLESS) as consumer:
            await read_one(consumer, "leaving")
            broker.pause()
            paused.set()
            await consumer.poll(600_000)

    async def work() -> None:
        reading = asyncio.create_task(read())
        await paused.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    run(work(), broker)


def test_a_close_says_that_it_waits_for_its_commit(
    broker: barnabas.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """CO-4: what was processed is committed before the consumer leaves."""
    broker.topic("leaving", partitions=1).send(b"x")
    name = TopicPartition("leaving", 0)

    async def work() -> None:
        async with Consumer(broker.bootstrap_servers, group_id="slow", **ENDLESS) as consumer:
            await read_one(consumer, "leaving")
            broker.pause()
            closing = asyncio.create_task(consumer.close())
            await until(
                lambda: "close is waiting for the coordinator of group 'slow'" in caplog.text
            )
            assert not closing.done()
            broker.resume()
            await closing
        async with Consumer(broker.bootstrap_servers, group_id="slow") as consumer:
            committed = (await consumer.committed(name))[name]
            assert committed is not None and committed.offset >= 1

    run(work(), broker)


def test_max_poll_interval_holds_while_a_heartbeat_has_no_answer(
    broker: barnabas.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """KIP-62: the member stops being one, whatever its coordinator does."""
    broker.topic("leaving", partitions=1).send(b"x")
    options = {**ENDLESS, "heartbeat_interval_ms": 50, "max_poll_interval_ms": 2_000}
    options["enable_auto_commit"] = False

    async def work() -> None:
        async with Consumer(broker.bootstrap_servers, group_id="hanging", **options) as consumer:
            await read_one(consumer, "leaving")
            broker.pause()
            await until(lambda: "leaving: no poll within 2000 ms" in caplog.text)
            await until(lambda: "no longer a member" in caplog.text)
            with pytest.raises(CommitFailed):
                await consumer.commit_sync()

    run(work(), broker)
