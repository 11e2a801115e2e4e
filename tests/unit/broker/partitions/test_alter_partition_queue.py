"""ISR changes between the leaders that propose them and the one that sends them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from barnabas.broker.partitions.alter_partition_queue import AlterPartitionQueue
from barnabas.cluster.controller_requests import IsrAnswer, IsrMember, IsrProposal
from barnabas.cluster.image import PartitionImage
from barnabas.metrics import Registry
from barnabas.replication.partition import Partition
from barnabas.types import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def leader(name: TopicPartition) -> Partition:
    partition = Partition(name, 0)
    partition.become_leader(PartitionImage(0, 3, (0, 1), (0, 1), 5, 1), 0)
    return partition


def proposal(name: TopicPartition, *isr: int) -> IsrProposal:
    members = tuple(IsrMember(each, -1) for each in isr)
    return IsrProposal(name, bytes(16), 3, members, 5)


def run(scenario: Callable[[AlterPartitionQueue], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(60):
            await scenario(AlterPartitionQueue(Registry()))

    asyncio.run(whole())


def test_what_one_turn_brings_is_taken_together_and_the_last_of_a_partition_counts() -> None:
    async def scenario(queue: AlterPartitionQueue) -> None:
        taking = asyncio.ensure_future(queue.take())
        await asyncio.sleep(0)
        queue.submit(leader(T0), proposal(T0, 0))
        queue.submit(leader(T1), proposal(T1, 0))
        queue.submit(leader(T0), proposal(T0, 0, 2))
        taken = await taking
        assert [each.proposal for each in taken] == [proposal(T0, 0, 2), proposal(T1, 0)]
        assert queue.take_now() == []

    run(scenario)


def test_what_the_leader_has_given_up_is_not_sent() -> None:
    async def scenario(queue: AlterPartitionQueue) -> None:
        queue.submit(leader(T0), proposal(T0, 0)).cancel()
        partition = leader(T1)
        queue.submit(partition, proposal(T1, 0))
        partition.become_leader(PartitionImage(0, 3, (0,), (0, 1), 6, 1), 0)
        assert await queue.take() == []

    run(scenario)


def test_what_was_not_answered_goes_again_unless_there_is_a_newer_one() -> None:
    async def scenario(queue: AlterPartitionQueue) -> None:
        answer = queue.submit(leader(T0), proposal(T0, 0))
        (pending,) = await queue.take()
        queue.put_back(pending)
        (again,) = await queue.take()
        assert again is pending
        newer = proposal(T0, 0, 2)
        queue.submit(leader(T0), newer)
        queue.put_back(pending)
        assert [each.proposal for each in await queue.take()] == [newer]
        again.answer.set_result(IsrAnswer(0, 0, 3, (0,), 6))
        assert (await answer).isr == (0,)

    run(scenario)
