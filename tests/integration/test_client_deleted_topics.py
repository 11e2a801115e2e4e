"""Consumers whose topics are deleted under them (CO-4, CO-6)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.client import (
    Admin,
    Consumer,
    NewTopic,
    Producer,
    ProducerRecord,
    RebalanceListener,
    TopicPartition,
)
from barnabas.client.errors import UnknownPartition
from barnabas.errors import UnknownTopicOrPartition

if TYPE_CHECKING:
    import barnabas

pytestmark = pytest.mark.secured

PATIENCE_S = 60
# A commit that is repeated takes until the end of the test.
ENDLESS: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "request_timeout_ms": 600_000,
    "default_api_timeout_ms": 600_000,
    "allow_auto_create_topics": False,
}


class Revocations(RebalanceListener):
    """Counts the partitions that were revoked."""

    def __init__(self) -> None:
        self.count = 0

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.count += len(partitions)


def fill(broker: barnabas.Broker, stem: str) -> tuple[str, str]:
    """Two topics with a record each: the one that stays, and the one that is deleted."""
    names = f"{stem}-kept", f"{stem}-gone"
    for name in names:
        broker.topic(name, partitions=1).send(b"one")
    return names


async def read_two(
    consumer: Consumer, topics: Sequence[str], listener: RebalanceListener | None = None
) -> None:
    """Subscribe to both topics, and read the record of each."""
    consumer.subscribe(topics, listener)
    found = 0
    while found < 2:
        found += len(await consumer.poll(1_000))


async def committed(servers: str, group: str) -> dict[TopicPartition, int]:
    async with Admin(servers) as admin:
        offsets = await admin.list_group_offsets(group)
    return {name: at.offset for name, at in offsets.items()}


@pytest.mark.parametrize("how", ["commit_sync", "commit_async", "close"])
def test_co_4_a_commit_leaves_out_a_deleted_topic_at_once(
    broker: barnabas.Broker, how: str
) -> None:
    kept, gone = fill(broker, how)
    at_its_end = {TopicPartition(kept, 0): 1}
    errors: list[BaseException | None] = []

    async def run() -> None:
        servers = broker.bootstrap_servers
        async with Consumer(servers, group_id=how, **ENDLESS) as consumer, Admin(servers) as admin:
            await read_two(consumer, [kept, gone])
            await admin.delete_topics([gone])
            if how == "commit_sync":
                with pytest.raises(UnknownTopicOrPartition, match=f"{gone}-0"):
                    await consumer.commit_sync()
            elif how == "commit_async":
                done = asyncio.Event()

                def note(_: object, error: BaseException | None) -> None:
                    errors.append(error)
                    done.set()

                consumer.commit_async(when_done=note)
                await done.wait()
                assert isinstance(errors[0], UnknownTopicOrPartition)
            if how != "close":
                assert await committed(servers, how) == at_its_end
                consumer.stop_auto_commit()
        assert await committed(servers, how) == at_its_end

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_poll_ends_in_time_whatever_a_rebalance_has_to_commit(
    broker: barnabas.Broker, strategy: str
) -> None:
    """CO-6: the commit goes on between the polls, and the partitions are revoked after it."""
    kept, gone = fill(broker, strategy)
    other = f"{strategy}-other"

    async def run() -> None:
        servers = broker.bootstrap_servers
        listener = Revocations()
        options = {**ENDLESS, "partition_assignment_strategy": strategy}
        async with (
            Consumer(servers, group_id=strategy, **options) as consumer,
            Admin(servers) as admin,
        ):
            await read_two(consumer, [kept, gone], listener)
            refusals = broker.faults.add(api="OffsetCommit", error="COORDINATOR_LOAD_IN_PROGRESS")
            consumer.subscribe([kept, other], listener)
            while not refusals.hits:
                assert await consumer.poll(10) == []
            await admin.create_topics([NewTopic(other, 1)])
            broker.topic(kept).send(b"two")
            for _ in range(5):
                # What is read now would be read twice: its partition may go to another member.
                assert await consumer.poll(10) == []
            assert listener.count == 0
            refusals.remove()
            records = []
            while not records:
                records = await consumer.poll(1_000)
            assert [record.value for record in records] == [b"two"]
            assert listener.count > 0
            assert (await committed(servers, strategy))[TopicPartition(gone, 0)] == 1

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


def test_pr_7_offsets_of_a_deleted_topic_fail_their_transaction(broker: barnabas.Broker) -> None:
    """... soon, and after the abort the producer goes on."""
    kept, gone = (TopicPartition(topic, 0) for topic in fill(broker, "transaction"))

    async def work() -> None:
        async with (
            Admin(broker.bootstrap_servers) as admin,
            Producer(
                broker.bootstrap_servers, transactional_id="deleted", max_block_ms=600_000
            ) as producer,
        ):
            await admin.delete_topics([gone.topic])
            await producer.init_transactions()
            producer.begin_transaction()
            with pytest.raises(UnknownTopicOrPartition, match=f"{gone}: .*abort the transaction"):
                await producer.send_offsets_to_transaction({kept: 1, gone: 1}, "transaction")
            with pytest.raises(UnknownTopicOrPartition):
                await producer.commit_transaction()
            await producer.abort_transaction()
            producer.begin_transaction()
            await producer.send_offsets_to_transaction({kept: 2}, "transaction")
            await producer.commit_transaction()
        assert await committed(broker.bootstrap_servers, "transaction") == {kept: 2}

    asyncio.run(asyncio.wait_for(work(), PATIENCE_S))


@pytest.mark.parametrize("how", ["rebalance", "commit_sync", "commit_async", "close"])
def test_co_4_no_commit_reaches_a_topic_that_was_made_again(
    broker: barnabas.Broker, how: str
) -> None:
    """CO-4, CO-5: a commit names its topic, so it would skip the first records of the new one."""
    name = f"again-{how}"
    options = {"group_id": name, "auto_offset_reset": "earliest"}

    async def read(consumer: Consumer, count: int) -> list[bytes | None]:
        found: list[bytes | None] = []
        while len(found) < count:
            found += [record.value for record in await consumer.poll(1_000)]
        return found

    def fill(word: str, count: int) -> list[bytes]:
        values = [f"{word} {number}".encode() for number in range(count)]
        broker.topic(name, partitions=1).send_many(values)
        return values

    async def run() -> None:
        servers = broker.bootstrap_servers
        fill("old", 5)
        async with Consumer(servers, **options) as consumer:
            consumer.subscribe([name])
            await read(consumer, 5)
            assert await consumer.poll(200) == []  # the next fetch waits at the broker
            await asyncio.to_thread(broker.topic(name).delete)
            new = await asyncio.to_thread(fill, "new", 8)
            if how == "rebalance":
                assert await read(consumer, 8) == new
                return
            if how == "commit_sync":
                # It raises unless the consumer has already noticed the new topic.
                with contextlib.suppress(UnknownTopicOrPartition):
                    await consumer.commit_sync()
            elif how == "commit_async":
                done: asyncio.Queue[BaseException | None] = asyncio.Queue()
                consumer.commit_async(when_done=lambda _, error: done.put_nowait(error))
                assert isinstance(await done.get(), UnknownTopicOrPartition | None)
            if how != "close":
                consumer.stop_auto_commit()
        assert await committed(servers, name) == {}
        async with Consumer(servers, **options) as consumer:
            consumer.subscribe([name])
            assert await read(consumer, 8) == new

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


@pytest.mark.parametrize("kind", ["idempotent", "transactional"])
def test_pr_9_records_for_a_partition_that_is_gone_fail_soon(
    broker: barnabas.Broker, kind: str
) -> None:
    """PR-9: of a topic that was made again with fewer partitions; the next records arrive."""
    name = f"fewer-{kind}"
    options: dict[str, Any] = {"delivery_timeout_ms": 600_000}
    if kind == "transactional":
        options["transactional_id"] = name

    async def send(producer: Producer, partition: int) -> None:
        if kind == "idempotent":
            await producer.send_record(ProducerRecord(name, b"x", partition=partition))
            await producer.flush()
            return
        async with producer.transaction():
            await producer.send_record(ProducerRecord(name, b"x", partition=partition))
            # Its partition cannot be added, either.
            await producer.send_record(ProducerRecord(f"{name}-other", b"y", partition=0))

    async def run() -> None:
        broker.topic(f"{name}-other", partitions=1)
        broker.topic(name, partitions=3)
        async with Producer(broker.bootstrap_servers, **options) as producer:
            if kind == "transactional":
                await producer.init_transactions()
            await send(producer, 2)
            await asyncio.to_thread(broker.topic(name).delete)
            await asyncio.to_thread(broker.topic, name, partitions=1)
            delivery = None
            with pytest.raises(UnknownPartition, match="partitions 0 to 0, not 2"):
                if kind == "idempotent":
                    delivery = await producer.send_record(ProducerRecord(name, b"x", partition=2))
                    await delivery
                else:
                    await send(producer, 2)
            await send(producer, 0)
        assert len(broker.topic(name).records()) == 1

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))
