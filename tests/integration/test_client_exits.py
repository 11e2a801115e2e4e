"""SystemExit and its like from a user's code that our clients call: it reaches the program.

Everything else has its outcome meanwhile, and nothing waits for what will not come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import barnabas
from barnabas.client import Producer, ProducerRecord, RebalanceListener, SyncConsumer, SyncProducer
from barnabas.types import TopicPartition
from tests.kit.client_transactions import name

pytestmark = pytest.mark.secured

COUNT = 20


class Stop(BaseException):
    """An error beyond Exception that no library knows, as pytest has some."""


def stop(*arguments: object) -> Any:
    raise SystemExit(3)


def stop_oddly(*arguments: object) -> Any:
    raise Stop


@pytest.mark.parametrize(("callback", "kind"), [(stop, SystemExit), (stop_oddly, Stop)])
@pytest.mark.parametrize("method", ["flush", "close"])
def test_pr_8_a_callback_that_exits_ends_the_next_flush(
    broker: barnabas.Broker,
    callback: Callable[[object], None],
    kind: type[BaseException],
    method: str,
) -> None:
    topic, called = name("exits"), []
    producer = SyncProducer(broker.bootstrap_servers, linger_ms=60_000)
    sent = [producer.send(topic, b"a", on_delivery=callback)]
    sent += [producer.send(topic, b"b", on_delivery=called.append) for _ in range(COUNT)]
    with pytest.raises(kind):
        getattr(producer, method)()
    assert all(each.result().offset >= 0 for each in sent)
    assert called == sent[1:]
    producer.close()


def test_pr_8_a_callback_of_send_many_that_exits(broker: barnabas.Broker) -> None:
    topic = name("exits")
    with pytest.raises(SystemExit), SyncProducer(broker.bootstrap_servers) as producer:
        producer.send_many([ProducerRecord(topic, b"x")] * COUNT, on_delivery=stop)
    assert len(broker.topic(topic).records()) == COUNT


class Interceptor:
    def __init__(self) -> None:
        self.seen = 0

    def on_acknowledgement(self, metadata: object, error: BaseException | None) -> None:
        self.seen += 1
        if self.seen == 1:
            raise SystemExit(3)


def test_pr_10_an_interceptor_that_exits_on_the_clients_loop(broker: barnabas.Broker) -> None:
    topic, seen = name("exits"), Interceptor()
    producer = SyncProducer(broker.bootstrap_servers, linger_ms=60_000, interceptor_classes=[seen])
    sent = [producer.send(topic, b"x") for _ in range(COUNT)]
    with pytest.raises(SystemExit):
        producer.flush()
    assert seen.seen == COUNT and all(each.result().offset >= 0 for each in sent)
    last = producer.send(topic, b"it goes on")
    producer.close()
    assert last.result().offset >= 0


def test_pr_2_a_partitioner_that_exits_on_the_clients_loop(broker: barnabas.Broker) -> None:
    topic = name("exits")
    producer = SyncProducer(broker.bootstrap_servers, partitioner=stop)
    placed = producer.send(topic, b"x", partition=0)
    refused = [producer.send(topic, b"x") for _ in range(COUNT)]
    with pytest.raises(SystemExit):
        producer.flush()
    assert placed.result(60).offset == 0
    assert all(isinstance(each.exception(60), SystemExit) for each in refused)
    producer.close()


@pytest.mark.parametrize("method", ["send", "send_many"])
def test_pr_1_a_serializer_that_exits(broker: barnabas.Broker, method: str) -> None:
    topic = name("exits")

    def serializer(value: bytes) -> bytes:
        return stop() if value == b"stop" else value

    producer = SyncProducer(broker.bootstrap_servers, value_serializer=serializer)
    with pytest.raises(SystemExit):
        if method == "send":
            producer.send(topic, b"before")
            producer.send(topic, b"stop")
        else:
            producer.send_many([ProducerRecord(topic, text) for text in (b"before", b"stop")])
    producer.close()
    assert broker.topic(topic).values() == [b"before"]


class Listener(RebalanceListener):
    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        raise SystemExit(3)


def test_cs_3_a_listener_that_exits_ends_the_poll(broker: barnabas.Broker) -> None:
    topic = name("exits")
    broker.topic(topic).send("x")
    with (
        pytest.raises(SystemExit),
        SyncConsumer(broker.bootstrap_servers, group_id=name("group")) as consumer,
    ):
        consumer.subscribe([topic], listener=Listener())
        while True:
            consumer.poll(1.0)


@pytest.mark.parametrize("is_batch", [False, True])
def test_pr_8_a_callback_on_the_programs_loop_ends_the_program(
    broker: barnabas.Broker, is_batch: bool
) -> None:
    topic, called = name("exits"), []

    async def main() -> None:
        async with Producer(broker.bootstrap_servers, linger_ms=60_000) as producer:
            if is_batch:
                await producer.send_many([ProducerRecord(topic, b"x")], on_delivery=stop)
            else:
                await producer.send(topic, b"x", on_delivery=stop)
            for partition in range(COUNT):
                await producer.send(topic, b"x", key=b"%d" % partition, on_delivery=called.append)
            await producer.flush()

    with pytest.raises(SystemExit):
        asyncio.run(main())
    assert len(broker.topic(topic).records()) == COUNT + 1
    assert len(called) == COUNT and all(each.result().offset >= 0 for each in called)


def test_pr_10_an_interceptor_on_the_programs_loop(broker: barnabas.Broker) -> None:
    topic, seen = name("exits"), Interceptor()

    async def main() -> None:
        options: dict[str, Any] = {"linger_ms": 60_000, "interceptor_classes": [seen]}
        async with Producer(broker.bootstrap_servers, **options) as producer:
            for _ in range(COUNT):
                await producer.send(topic, b"x")

    with pytest.raises(SystemExit):
        asyncio.run(main())
    assert seen.seen == COUNT == len(broker.topic(topic).records())
