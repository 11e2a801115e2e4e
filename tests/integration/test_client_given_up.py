"""A member that its group has given up, in the middle of a transaction: it must not be heard."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.client import Consumer, Producer, TopicPartition
from barnabas.errors import IllegalGeneration, UnknownMemberId
from tests.kit.client_transactions import PATIENCE_S, committed, make, name

pytestmark = pytest.mark.secured


def test_a_transaction_of_a_member_that_the_group_has_given_up_is_refused(servers: str) -> None:
    """PR-7, DL-1: its partitions have other readers, who begin where the group had committed;
    offsets that name no generation would be taken, and what was read would be copied twice."""
    source, target = name("source"), name("target")
    partition = TopicPartition(source, 0)

    async def run() -> None:
        await make(servers, source, target, partitions=1)
        async with Producer(servers) as producer:
            await producer.send(source, b"once")
        options: dict[str, Any] = {
            "group_id": source,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
        }
        async with (
            Consumer(
                servers, max_poll_interval_ms=6_000, session_timeout_ms=6_000, **options
            ) as one,
            Consumer(servers, **options) as other,
            Producer(servers, transactional_id=target) as producer,
        ):
            await producer.init_transactions()
            one.subscribe([source])
            other.subscribe([source])
            async with asyncio.timeout(PATIENCE_S):
                while not await one.poll(100):
                    pass
                producer.begin_transaction()
                await producer.send(target, b"once")
                while not await other.poll(100):
                    pass
            assert one.group_metadata().generation > 0, "who reads in a generation names it"
            with pytest.raises((UnknownMemberId, IllegalGeneration)):
                offsets = {partition: 1}
                await producer.send_offsets_to_transaction(offsets, one.group_metadata())
            await producer.abort_transaction()
        assert await committed(servers, source, partition) == [-1]

    asyncio.run(run())
