"""Who may use a client: a consumer one thread at a time, any one process; and how it is left."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.client import (
    Consumer,
    NewTopic,
    SyncAdmin,
    SyncConsumer,
    SyncProducer,
    TopicPartition,
)
from barnabas.client.errors import ClientClosed, ConcurrentUse

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

pytestmark = pytest.mark.secured


class NotProcessed(Exception):
    """What the user's work raises."""


def filled(broker: Broker, topic: str, *values: bytes) -> TopicPartition:
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, 1)])
    with SyncProducer(broker.bootstrap_servers) as producer:
        for value in values:
            producer.send(topic, value, partition=0)
    return TopicPartition(topic, 0)


def in_group(group_id: str) -> Any:
    return {"group_id": group_id, "auto_offset_reset": "earliest"}


def committed(broker: Broker, group_id: str, name: TopicPartition) -> int | None:
    with SyncConsumer(broker.bootstrap_servers, group_id=group_id) as consumer:
        found = consumer.committed(name)[name]
    return None if found is None else found.offset


@pytest.mark.parametrize("by_hand", [True, False])
def test_what_was_not_processed_is_not_committed(broker: Broker, by_hand: bool) -> None:
    """CO-4: where an exception ends the consumer's block; without one it is."""
    group_id = f"left-{by_hand}"
    name = filled(broker, group_id, b"a", b"b")

    def read(consumer: SyncConsumer) -> None:
        if by_hand:
            consumer.assign([name])
        else:
            consumer.subscribe([name.topic])
        while not consumer.poll(1_000):
            pass

    def fail() -> None:
        with SyncConsumer(broker.bootstrap_servers, **in_group(group_id)) as consumer:
            read(consumer)
            raise NotProcessed

    with pytest.raises(NotProcessed):
        fail()
    assert committed(broker, group_id, name) is None
    with SyncConsumer(broker.bootstrap_servers, **in_group(group_id)) as consumer:
        read(consumer)
    assert committed(broker, group_id, name) == 2


def test_what_was_not_processed_is_not_committed_by_the_async_consumer(broker: Broker) -> None:
    """CO-4."""
    name = filled(broker, "left-async", b"a")

    async def fail() -> None:
        async with Consumer(broker.bootstrap_servers, **in_group("left-async")) as consumer:
            consumer.assign([name])
            while not await consumer.poll(1_000):
                pass
            raise NotProcessed

    with pytest.raises(NotProcessed):
        asyncio.run(fail())
    assert committed(broker, "left-async", name) is None


def test_a_consumer_refuses_a_second_thread(broker: Broker) -> None:
    """CO-2: as Kafka's does, with ConcurrentModificationException."""
    name = filled(broker, "shared")
    with SyncConsumer(broker.bootstrap_servers) as consumer:
        consumer.assign([name])
        # Resolves the position, the latest offset, before the record is sent: a poll that resolved
        # it afterwards would skip the record and wait.
        assert consumer.position(name) == 0
        polls = threading.Event()
        errors: list[BaseException] = []

        def poll() -> None:
            polls.set()
            while True:
                try:
                    consumer.poll(3_600_000)
                    return
                except ConcurrentUse:  # the other one was faster, and will not be inside for long
                    continue

        first = threading.Thread(target=poll)
        first.start()
        assert polls.wait(60)
        while not errors:
            try:
                consumer.position(name)
            except ConcurrentUse as error:
                errors.append(error)
        assert "position: another thread is using this consumer" in str(errors[0])
        with SyncProducer(broker.bootstrap_servers) as producer:
            producer.send("shared", b"v")
        first.join(60)
        assert consumer.position(name) == 1


def test_a_consumer_refuses_a_second_task(broker: Broker) -> None:
    name = filled(broker, "shared-async", b"v")

    async def work() -> None:
        async with Consumer(broker.bootstrap_servers) as consumer:
            consumer.assign([name])
            first = asyncio.create_task(consumer.poll(3_600_000))
            await asyncio.sleep(0)
            with pytest.raises(ConcurrentUse):
                await consumer.poll(0)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            await consumer.poll(0)

    asyncio.run(work())


def _send_in_a_child(producer: SyncProducer, found: Any) -> None:
    try:
        producer.send("forked", b"from the child")
    except ClientClosed as error:
        found.put(str(error))
    else:
        found.put("accepted, and lost")
    producer.close()  # returns: there is nothing of the child's to send


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_gets_an_error_for_the_producer_left_behind(broker: Broker) -> None:
    """PR-8: the thread that sends is not there in the child."""
    forking = multiprocessing.get_context("fork")
    with SyncProducer(broker.bootstrap_servers) as producer:
        producer.send("forked", b"v").result(60)
        found = forking.SimpleQueue()
        child = forking.Process(target=_send_in_a_child, args=(producer, found))
        child.start()
        child.join(60)
        assert child.exitcode == 0
        assert f"belong to process {os.getpid()}" in found.get()
        assert producer.send("forked", b"v").result(60).offset == 1
