"""Our clients on another event loop than their own, and on none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest

from barnabas.client import Admin, Consumer, Producer, ProducerRecord, TopicPartition
from barnabas.client.errors import ClientClosed

if TYPE_CHECKING:
    import barnabas

pytestmark = pytest.mark.secured

NAME = TopicPartition("loops", 0)
USES: list[Callable[[Consumer], Awaitable[object]]] = [
    lambda consumer: consumer.poll(60_000),
    lambda consumer: consumer.end_offsets([NAME]),
    lambda consumer: consumer.partitions_for("loops"),
    lambda consumer: consumer.commit_sync({NAME: 0}),
    lambda consumer: consumer.close(),
]


def test_another_loop_is_refused_in_words(broker: barnabas.Broker) -> None:
    broker.topic("loops", partitions=1)

    async def started() -> Consumer:
        consumer = Consumer(broker.bootstrap_servers, group_id="loops")
        await consumer.start()
        consumer.subscribe(["loops"])
        return consumer

    async def use(how: Callable[[Consumer], Awaitable[object]], consumer: Consumer) -> None:
        await asyncio.wait_for(how(consumer), 30)

    with asyncio.Runner() as its_own:
        consumer = its_own.run(started())
        for each in USES:
            with pytest.raises(ClientClosed, match="started on another event loop"):
                asyncio.run(use(each, consumer))
        its_own.run(consumer.close())


async def send(producer: Producer) -> None:
    """Join the batch that is open, and wait for it."""
    await (await producer.send("sent", b"joins"))


SENDS: list[Callable[[Producer], Awaitable[object]]] = [
    send,
    lambda producer: producer.send("sent-first", b"in a new batch"),
    lambda producer: producer.send_columns("sent-first", [b"a column"]),
    lambda producer: producer.send_record(ProducerRecord("sent-first", b"x", partition=0)),
    lambda producer: producer.flush(),
    lambda producer: producer.close(),
]


def test_another_loop_is_refused_in_words_by_a_producer(broker: barnabas.Broker) -> None:
    """Nothing that is accepted there is lost: what joins a batch is sent with it."""
    topics = [broker.topic(name, partitions=1) for name in ("sent", "sent-first")]

    async def started() -> Producer:
        producer = Producer(broker.bootstrap_servers, linger_ms=600_000)
        await producer.start()
        await producer.partitions_for("sent-first")
        await producer.send("sent", b"first")
        return producer

    async def use(how: Callable[[Producer], Awaitable[object]], producer: Producer) -> None:
        await asyncio.wait_for(how(producer), 30)

    with asyncio.Runner() as its_own:
        producer = its_own.run(started())
        for each in SENDS:
            with pytest.raises(ClientClosed, match="started on another event loop"):
                asyncio.run(use(each, producer))
        its_own.run(producer.close())
    assert [record.value for record in topics[0].records()] == [b"first", b"joins"]
    assert not topics[1].records()


def test_another_loop_is_refused_in_words_by_transactions(broker: barnabas.Broker) -> None:
    """The transaction goes on where it was begun."""
    topic = broker.topic("sent-in-one", partitions=1)

    async def begun() -> Producer:
        producer = Producer(broker.bootstrap_servers, transactional_id="loops")
        await producer.start()
        await producer.init_transactions()
        producer.begin_transaction()
        await (await producer.send("sent-in-one", b"x"))
        return producer

    async def end(producer: Producer) -> None:
        await producer.commit_transaction()
        await producer.close()

    with asyncio.Runner() as its_own:
        producer = its_own.run(begun())
        for each in (
            lambda: producer.send_offsets_to_transaction({NAME: 0}, "loops"),
            producer.commit_transaction,
            producer.abort_transaction,
        ):
            with pytest.raises(ClientClosed, match="started on another event loop"):
                asyncio.run(asyncio.wait_for(each(), 30))
        its_own.run(end(producer))
    assert [record.value for record in topic.records()] == [b"x"]


@pytest.mark.parametrize("client", [Admin, Consumer, Producer])
def test_no_loop_at_all_is_refused_in_words(
    broker: barnabas.Broker, client: type[Admin | Consumer | Producer]
) -> None:
    """As under trio, which runs coroutines without an asyncio loop."""
    start = client(broker.bootstrap_servers).start()
    with pytest.raises(ClientClosed, match="no asyncio event loop is running here"):
        start.send(None)
