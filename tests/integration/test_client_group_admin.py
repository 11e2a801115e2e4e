"""Groups, their offsets and transactions, from outside: our broker's and Kafka's."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from barnabas.client import (
    Admin,
    Consumer,
    NewTopic,
    OffsetAndMetadata,
    Producer,
    SyncAdmin,
    TopicPartition,
)
from barnabas.client.offsets import EARLIEST, LATEST
from barnabas.errors import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    NonEmptyGroup,
    OffsetOutOfRange,
    ProducerFenced,
    TransactionalIdNotFound,
    UnknownMemberId,
    UnknownTopicOrPartition,
)

pytestmark = pytest.mark.secured

PATIENCE_S = 120.0


def name(stem: str) -> str:
    """Of a topic, a group and a transactional id that no other run of a test has."""
    return f"{stem}-{uuid4().hex[:8]}"


async def until_assigned(consumer: Consumer) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not consumer.assignment():
            await consumer.poll(100)


def test_offsets_of_a_group_without_members(servers: str) -> None:
    """CO-4: set, listed, deleted; the group comes and goes with them."""
    topic = name("offsets")
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)

    async def run() -> None:
        async with Admin(servers) as admin:
            await admin.create_topics([NewTopic(topic, 2)])
            await admin.alter_group_offsets(topic, {zero: 3, one: OffsetAndMetadata(4, "note")})
            assert await admin.list_group_offsets(topic) == {
                zero: (3, "", -1),
                one: (4, "note", -1),
            }
            assert list(await admin.list_group_offsets(topic, [one])) == [one]
            (listing,) = [each for each in await admin.list_groups() if each.group_id == topic]
            assert (listing.state, listing.protocol_type) == ("Empty", "")
            assert not [
                each for each in await admin.list_groups(states=["Stable"]) if each == listing
            ]
            with pytest.raises(UnknownTopicOrPartition):
                await admin.alter_group_offsets(topic, {TopicPartition(name("no"), 0): 3})
            with pytest.raises(ValueError, match="offsets: -1 is not between 0 and"):
                await admin.alter_group_offsets(topic, {zero: -1})
            await admin.delete_group_offsets(topic, [one])
            assert list(await admin.list_group_offsets(topic)) == [zero]
            await admin.delete_groups([topic])
            assert await admin.list_group_offsets(topic) == {}
            assert (await admin.describe_groups([topic]))[topic].state == "Dead"
            with pytest.raises(GroupIdNotFound):
                await admin.delete_groups([topic])

    asyncio.run(run())


def test_a_living_group_is_described_and_protected(servers: str) -> None:
    """CO-3: member, host, client id, partitions; no one changes its offsets behind its back."""
    topic = name("living")
    zero = TopicPartition(topic, 0)

    async def run() -> None:
        async with (
            Admin(servers) as admin,
            Consumer(
                servers, group_id=topic, client_id="reader", group_instance_id="blue"
            ) as consumer,
        ):
            await admin.create_topics([NewTopic(topic, 2)])
            consumer.subscribe([topic])
            await until_assigned(consumer)
            await consumer.commit_sync({zero: 1})
            described = await admin.describe_groups([topic, name("other")])
            group = described.pop(topic)
            assert [each.state for each in described.values()] == ["Dead"]
            assert (group.state, group.protocol_type, group.assignor) == (
                "Stable",
                "consumer",
                "range",
            )
            assert group.coordinator.node_id in {
                each.broker_id for each in (await admin.describe_cluster()).brokers
            }
            (member,) = group.members
            assert (member.client_id, member.host, member.instance_id) == (
                "reader",
                "/127.0.0.1",
                "blue",
            )
            assert member.member_id == consumer.group_metadata().member_id
            assert (member.topics, member.partitions) == ((topic,), (zero, (topic, 1)))
            with pytest.raises(UnknownMemberId):
                await admin.alter_group_offsets(topic, {zero: 0})
            with pytest.raises(GroupSubscribedToTopic):
                await admin.delete_group_offsets(topic, [zero])
            with pytest.raises(NonEmptyGroup):
                await admin.delete_groups([topic])
            with pytest.raises(UnknownMemberId):
                await admin.remove_members(topic, instance_ids=["red"])
            await admin.remove_members(topic, instance_ids=["blue"])
            assert (await admin.describe_groups([topic]))[topic].members == ()

    asyncio.run(run())


def test_transactions_are_listed_described_and_fenced(servers: str) -> None:
    """PR-7: what is open where, since when; who fences it aborts it."""
    topic = name("listed")
    partition = TopicPartition(topic, 0)

    async def run() -> None:
        async with Admin(servers) as admin, Producer(servers, transactional_id=topic) as producer:
            await admin.create_topics([NewTopic(topic)])
            with pytest.raises(TransactionalIdNotFound):
                await admin.describe_transactions([topic])
            await producer.init_transactions()
            producer.begin_transaction()
            await producer.send(topic, b"x")
            await producer.flush()
            ongoing = await admin.list_transactions(states=["Ongoing"])
            (listing,) = [each for each in ongoing if each.transactional_id == topic]
            described = (await admin.describe_transactions([topic]))[topic]
            assert described.state == listing.state == "Ongoing"
            assert described.producer_id == listing.producer_id
            assert (described.partitions, described.timeout_ms) == ((partition,), 60_000)
            assert described.started_at_ms > 0
            assert listing in await admin.list_transactions(producer_ids=[listing.producer_id])
            assert await admin.list_transactions(producer_ids=[1 << 40]) == []
            with pytest.raises(ValueError, match="not a transaction state: Sleeping"):
                await admin.list_transactions(states=["Sleeping"])
            await admin.fence_producers([topic])
            with pytest.raises(ProducerFenced):
                await producer.commit_transaction()

    asyncio.run(run())


def test_a_hanging_transaction_is_found_and_aborted(servers: str) -> None:
    """PR-7, KIP-664: an abort marker by hand lets read_committed readers go on."""
    topic = name("hanging")
    partition = TopicPartition(topic, 0)

    async def run() -> None:
        async with Admin(servers) as admin, Producer(servers, transactional_id=topic) as producer:
            await admin.create_topics([NewTopic(topic)])
            await producer.init_transactions()
            producer.begin_transaction()
            await producer.send(topic, b"x")
            await producer.flush()
            ends = {partition: LATEST}
            assert (await admin.list_offsets(ends))[partition].offset == 1
            stable = await admin.list_offsets(ends, read_committed=True)
            assert stable[partition].offset == 0
            (state,) = (await admin.describe_producers([partition]))[partition]
            assert (state.transaction_start_offset, state.last_sequence) == (0, 0)
            await admin.abort_transaction(partition, state.producer_id, state.producer_epoch)
            stable = await admin.list_offsets(ends, read_committed=True)
            assert stable[partition].offset == 2, "the record and the marker"
            (state,) = (await admin.describe_producers([partition]))[partition]
            assert state.transaction_start_offset == -1

    asyncio.run(run())


def test_records_are_deleted_up_to_an_offset(servers: str) -> None:
    """ST-10: the log begins there afterwards; -1 is all of it. Through the blocking client."""
    topic = name("deleted")
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)

    async def fill() -> None:
        async with Producer(servers) as producer:
            for number in range(10):
                await producer.send(topic, b"%d" % number, partition=number % 2)

    with SyncAdmin(servers) as admin:
        admin.create_topics([NewTopic(topic, 2)])
        asyncio.run(fill())
        assert admin.delete_records({zero: 3, one: -1}) == {zero: 3, one: 5}
        begins = admin.list_offsets({zero: EARLIEST, one: EARLIEST})
        assert [each.offset for each in begins.values()] == [3, 5]
        with pytest.raises(OffsetOutOfRange):
            admin.delete_records({zero: 6})
        admin.alter_group_offsets(topic, {zero: 4})
        assert admin.list_group_offsets(topic) == {zero: OffsetAndMetadata(4)}
        assert topic in {each.group_id for each in admin.list_groups()}
        assert admin.describe_groups([topic])[topic].members == ()
        admin.delete_groups([topic])
