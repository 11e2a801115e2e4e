"""Logs that may have lost their ends, until each of them has a leader."""

from __future__ import annotations

import asyncio

from barnabas.broker.partitions.unplaced_logs import UnplacedLogs
from barnabas.types import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_the_last_one_that_is_placed_ends_the_waiting() -> None:
    async def scenario() -> None:
        logs = UnplacedLogs()
        logs.on_placed([T0])  # before the start has looked
        logs.on_found([T0, T1])
        waiting = asyncio.ensure_future(logs.until_placed())
        logs.on_placed([T1, TopicPartition("u", 0)])
        await asyncio.sleep(0)
        assert not waiting.done() and len(logs) == 1
        logs.on_placed([T0])
        async with asyncio.timeout(60):
            await waiting
        assert not logs

    asyncio.run(scenario())
