"""Commits in the background, and what comes right behind them."""

from __future__ import annotations

import asyncio

import pytest

import barnabas
from barnabas.client import Admin, Consumer, TopicPartition

pytestmark = pytest.mark.secured


def test_co_4_a_consumer_is_closed_when_its_commit_has_been_answered() -> None:
    """In that very turn of the loop: from Python 3.12 on, waiting for what is over takes none."""

    async def run(servers: str) -> None:
        answered = asyncio.get_running_loop().create_future()
        async with Consumer(
            servers, group_id="g", auto_offset_reset="earliest", enable_auto_commit=False
        ) as consumer:
            consumer.subscribe(["orders"])
            assert [record.value for record in await consumer.poll(60_000)] == [b"one"]
            consumer.commit_async(when_done=lambda *outcome: answered.set_result(outcome))
            assert (await answered)[1] is None
        async with Consumer(servers, group_id="g") as consumer:
            committed = await consumer.committed(TopicPartition("orders", 0))
            assert [each.offset for each in committed.values() if each] == [1]

    with barnabas.Broker() as broker:
        broker.topic("orders", partitions=1).send(b"one")
        asyncio.run(run(broker.bootstrap_servers))


def test_co_3_a_member_that_does_not_poll_leaves_when_its_time_is_up() -> None:
    """Not at the heartbeat after that, which here is ten minutes away."""

    async def run(servers: str) -> None:
        async with (
            Admin(servers) as admin,
            Consumer(
                servers,
                group_id="g",
                max_poll_interval_ms=500,
                heartbeat_interval_ms=600_000,
                session_timeout_ms=1_800_000,
            ) as consumer,
        ):
            consumer.subscribe(["orders"])
            while not consumer.assignment():
                await consumer.poll(100)
            async with asyncio.timeout(60):
                while (await admin.describe_groups(["g"]))["g"].members:
                    await asyncio.sleep(0.05)

    with barnabas.Broker() as broker:
        broker.topic("orders", partitions=1)
        asyncio.run(run(broker.bootstrap_servers))
