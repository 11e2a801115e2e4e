"""Our producer's transactions: against our broker, and against Kafka itself."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from barnabas.client import (
    Admin,
    Consumer,
    GroupMetadata,
    Producer,
    SyncProducer,
    TopicPartition,
)
from barnabas.client.errors import DeliveryTimedOut, TransactionAborted
from barnabas.errors import (
    ConfigError,
    InvalidTxnState,
    MessageTooLarge,
    ProducerFenced,
    UnknownMemberId,
)
from tests.kit.client_transactions import PATIENCE_S, committed, make, name
from tests.kit.processes.broker_process import broker_process

pytestmark = pytest.mark.secured


async def read(servers: str, topic: str, level: str = "read_committed") -> list[str]:
    """The values of all records in front of the log's end, or of the last stable offset."""
    async with Consumer(servers, auto_offset_reset="earliest", isolation_level=level) as consumer:
        names = [TopicPartition(topic, each) for each in await consumer.partitions_for(topic)]
        consumer.assign(names)
        ends = await consumer.end_offsets(names)
        values: list[str] = []
        async with asyncio.timeout(PATIENCE_S):
            while [await consumer.position(each) for each in names] < list(ends.values()):
                values += [(record.value or b"").decode() for record in await consumer.poll(100)]
        return sorted(values)


def test_a_transaction_is_all_or_nothing(servers: str) -> None:
    """PR-7: over partitions and topics; DL-1: what was aborted was never there for who reads so."""
    one, two = name("one"), name("two")

    async def run() -> None:
        await make(servers, one, two)
        async with Producer(servers, transactional_id=one) as producer:
            await producer.init_transactions()
            producer.begin_transaction()
            for number in range(6):
                await producer.send(one, b"a%d" % number, partition=number % 3)
                await producer.send(two, b"a%d" % number)
            await producer.flush()
            assert await read(servers, one) == [], "nothing before the commit"
            await producer.commit_transaction()
            producer.begin_transaction()
            await producer.send(one, b"b-sent", partition=0)
            await producer.flush()
            unsent = await producer.send(one, b"b-unsent", partition=1)
            await producer.abort_transaction()
            with pytest.raises(TransactionAborted):
                await unsent
            producer.begin_transaction()
            await producer.commit_transaction()
            producer.begin_transaction()
            await producer.abort_transaction()
            producer.begin_transaction()
            await producer.send(one, b"c", partition=0)
            await producer.commit_transaction()
        expected = [f"a{number}" for number in range(6)]
        assert await read(servers, one) == [*expected, "c"]
        assert await read(servers, two) == expected
        assert await read(servers, one, "read_uncommitted") == [*expected, "b-sent", "c"]

    asyncio.run(run())


def test_a_restarted_producer_fences_the_old_one_and_settles_its_transaction(servers: str) -> None:
    """PR-7"""
    topic = name("fence")

    async def run() -> None:
        await make(servers, topic)
        async with Producer(servers, transactional_id=topic) as old:
            await old.init_transactions()
            old.begin_transaction()
            await old.send(topic, b"old")
            await old.flush()
            async with Producer(servers, transactional_id=topic) as new:
                await new.init_transactions()
                assert await read(servers, topic) == [], "the old one's transaction is aborted"
                with pytest.raises(ProducerFenced):
                    await old.commit_transaction()
                for call in (old.abort_transaction, old.commit_transaction, old.init_transactions):
                    with pytest.raises(ProducerFenced):
                        await call()
                with pytest.raises(ProducerFenced):
                    await old.send(topic, b"zombie")
                new.begin_transaction()
                await new.send(topic, b"new")
                await new.commit_transaction()
        assert await read(servers, topic) == ["new"]

    asyncio.run(run())


def test_offsets_are_part_of_the_transaction(servers: str) -> None:
    """PR-7, DL-1: consume, transform, produce; an abort leaves the group where it was."""
    source, target = name("source"), name("target")
    partition = TopicPartition(source, 0)

    async def run() -> None:
        await make(servers, source, target, partitions=1)
        async with Producer(servers) as producer:
            await producer.send_many([])
            for number in range(10):
                await producer.send(source, b"%d" % number)
        options: dict[str, Any] = {
            "group_id": source,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "max_poll_records": 5,
        }
        async with (
            Consumer(servers, **options) as consumer,
            Producer(servers, transactional_id=target) as producer,
        ):
            await producer.init_transactions()
            consumer.subscribe([source])
            for end in ("abort", "commit"):
                records = []
                async with asyncio.timeout(PATIENCE_S):
                    while not records:
                        records = await consumer.poll(500)
                producer.begin_transaction()
                for record in records:
                    await producer.send(target, b"%s:%s" % (end.encode(), record.value))
                offsets = {partition: records[-1].offset + 1}
                await producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
                if end == "abort":
                    await producer.abort_transaction()
                    assert await committed(servers, source, partition) == [-1]
                    consumer.seek(partition, 0)
                else:
                    await producer.commit_transaction()
                    assert await committed(servers, source, partition) == [5]
            producer.begin_transaction()
            stale = consumer.group_metadata()._replace(member_id="somebody-else")
            with pytest.raises(UnknownMemberId):
                await producer.send_offsets_to_transaction({partition: 9}, stale)
            await producer.abort_transaction()
            producer.begin_transaction()
            await producer.send_offsets_to_transaction({partition: 7}, GroupMetadata(name("new")))
            await producer.commit_transaction()
        assert await committed(servers, source, partition) == [5]
        assert await read(servers, target) == [f"commit:{number}" for number in range(5)]

    asyncio.run(run())


def test_a_refused_record_leaves_only_the_abort(servers: str) -> None:
    """PR-7, PR-8: nothing of the transaction may become visible; the next one is as any other."""
    topic = name("refused")

    async def run() -> None:
        await make(servers, topic, partitions=1, max_message_bytes="500")
        async with Producer(servers, transactional_id=topic) as producer:
            await producer.init_transactions()
            producer.begin_transaction()
            await producer.send(topic, b"fine")
            await producer.flush()
            await producer.send(topic, bytes(2_000))
            with pytest.raises(MessageTooLarge):
                await producer.commit_transaction()
            with pytest.raises(MessageTooLarge):
                await producer.send(topic, b"too late")
            with pytest.raises(MessageTooLarge):
                producer.begin_transaction()
            await producer.abort_transaction()
            for number in range(3):
                producer.begin_transaction()
                await producer.send(topic, b"%d" % number)
                await producer.commit_transaction()
        assert await read(servers, topic) == ["0", "1", "2"]

    asyncio.run(run())


def test_wrong_calls_are_refused(servers: str) -> None:
    """PR-7: each with what to do."""
    topic = name("wrong")

    async def run() -> None:
        await make(servers, topic)
        async with Producer(servers) as producer:
            with pytest.raises(ConfigError, match=r"give it a transactional\.id"):
                producer.begin_transaction()
        async with Producer(servers, transactional_id=topic) as producer:
            with pytest.raises(InvalidTxnState, match="call init_transactions first"):
                await producer.send(topic, b"")
            await producer.init_transactions()
            with pytest.raises(InvalidTxnState, match="call begin_transaction first"):
                await producer.send(topic, b"")
            with pytest.raises(InvalidTxnState, match="call begin_transaction first"):
                await producer.commit_transaction()
            producer.begin_transaction()
            with pytest.raises(InvalidTxnState, match="in a transaction"):
                producer.begin_transaction()
            with pytest.raises(InvalidTxnState, match="in a transaction"):
                await producer.init_transactions()
        with pytest.raises(ConfigError, match="needs idempotence, which conflicts with acks=1"):
            Producer(servers, transactional_id=topic, acks=1)

    asyncio.run(run())


def test_the_blocking_producer(servers: str) -> None:
    """PR-7: what was sent before the commit is in it, though another thread sends."""
    topic = name("blocking")
    asyncio.run(make(servers, topic))
    with SyncProducer(servers, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for number in range(500):
            producer.send(topic, b"%03d" % number)
        producer.commit_transaction()
        producer.begin_transaction()
        producer.send(topic, b"never")
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send_offsets_to_transaction({TopicPartition(topic, 0): 3}, topic)
        producer.commit_transaction()
        producer.begin_transaction()
        producer.send(topic, b"open at close")
    assert asyncio.run(read(servers, topic)) == [f"{number:03}" for number in range(500)]
    assert asyncio.run(committed(servers, topic, TopicPartition(topic, 0))) == [3]


def test_many_small_transactions(servers: str) -> None:
    """PR-7: one after the other and from several producers at once."""
    topic = name("small")
    producers, each = 4, 25

    async def run() -> float:
        await make(servers, topic, partitions=1)

        async def work(who: int) -> None:
            async with Producer(servers, transactional_id=f"{topic}-{who}") as producer:
                await producer.init_transactions()
                for number in range(each):
                    producer.begin_transaction()
                    await producer.send(topic, b"%d-%d" % (who, number))
                    await producer.commit_transaction()

        started = time.monotonic()
        await asyncio.gather(*map(work, range(producers)))
        took = time.monotonic() - started
        assert len(await read(servers, topic)) == producers * each
        return took

    took = asyncio.run(run())
    print(f"{producers * each} transactions committed by {producers} producers in {took:.2f} s")


def test_the_coordinator_ends_what_takes_too_long(servers: str) -> None:
    """PR-7: transaction.timeout.ms; the producer learns of it and is done."""
    topic = name("timeout")

    async def run() -> None:
        await make(servers, topic)
        async with (
            Producer(servers, transactional_id=topic, transaction_timeout_ms=2_000) as producer,
            Admin(servers) as admin,
        ):
            await producer.init_transactions()
            producer.begin_transaction()
            await producer.send(topic, b"slow")
            await producer.flush()
            async with asyncio.timeout(PATIENCE_S):
                while (await admin.describe_transactions([topic]))[topic].state != "CompleteAbort":
                    await asyncio.sleep(0.1)
            with pytest.raises(ProducerFenced):
                await producer.commit_transaction()
        assert await read(servers, topic) == []

    asyncio.run(run())


def test_after_a_batch_in_doubt_comes_another_epoch(tmp_path: Path) -> None:
    """PR-6, PR-7: a stopped broker leaves an answer out; the abort settles what is unknown."""
    topic = name("doubt")

    async def run(servers: str, process: Any) -> None:
        await make(servers, topic, partitions=1)
        async with Producer(
            servers,
            transactional_id=topic,
            request_timeout_ms=400,
            delivery_timeout_ms=1_000,
            max_block_ms=20_000,
        ) as producer:
            await producer.init_transactions()
            producer.begin_transaction()
            await producer.send(topic, b"known")
            await producer.flush()
            process.send_signal(signal.SIGSTOP)
            doubtful = await producer.send(topic, b"in doubt")
            with pytest.raises(DeliveryTimedOut):
                await doubtful
            process.send_signal(signal.SIGCONT)
            with pytest.raises(DeliveryTimedOut):
                await producer.commit_transaction()
            await producer.abort_transaction()
            producer.begin_transaction()
            await producer.send(topic, b"after")
            await producer.commit_transaction()
        async with Admin(servers) as admin:
            described = (await admin.describe_transactions([topic]))[topic]
        assert described.producer_epoch == 1, "raised once, by the abort"
        assert await read(servers, topic) == ["after"]

    with broker_process(tmp_path) as broker:
        asyncio.run(run(broker.bootstrap_servers, broker.process))
