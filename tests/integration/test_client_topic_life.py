"""Topics that come and go under our clients: who brings one back, and who finds a new one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from barnabas.client.channel import Seams, system_seams
from barnabas.errors import UnknownTopicOrPartition
from tests.kit.set_clock import SetClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import barnabas
    from barnabas.testing.faults.rule import Rule

pytestmark = pytest.mark.secured

PATIENCE_S = 60
OFTEN: dict[str, Any] = {"metadata_max_age_ms": 20, "retry_backoff_ms": 5}


def requests(broker: barnabas.Broker, client_id: str, **of: str) -> Rule:
    """A rule that counts requests for metadata, and does them no harm."""
    return broker.faults.add(api="Metadata", client_id=client_id, delay_ms=1, **of)


async def until(done: Callable[[], bool], consumer: Consumer | None = None) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not done():
            if consumer is None:
                await asyncio.sleep(0.005)
            else:
                await consumer.poll(5)


async def sent_to(servers: str, topic: str) -> Producer:
    producer = Producer(servers, client_id=topic, **OFTEN)
    await producer.start()
    await (await producer.send(topic, b"one"))
    return producer


async def subscribed_to(servers: str, topic: str) -> Consumer:
    consumer = Consumer(servers, client_id=topic, group_id=topic, **OFTEN)
    await consumer.start()
    consumer.subscribe([topic])
    await until(lambda: bool(consumer.assignment()), consumer)
    return consumer


async def assigned(servers: str, topic: str) -> Consumer:
    consumer = Consumer(servers, client_id=topic, auto_offset_reset="earliest", **OFTEN)
    await consumer.start()
    consumer.assign([TopicPartition(topic, 0)])
    await consumer.position(TopicPartition(topic, 0))
    return consumer


@pytest.mark.parametrize("client", [sent_to, subscribed_to, assigned])
def test_an_idle_client_does_not_bring_a_deleted_topic_back(
    broker: barnabas.Broker, client: Callable[..., Any]
) -> None:
    topic = f"idle-{client.__name__}"

    async def run() -> None:
        servers = broker.bootstrap_servers
        async with Admin(servers) as admin:
            await admin.create_topics([NewTopic(topic, 1)])
            idle = await client(servers, topic)
            await admin.delete_topics([topic])
            asked = requests(broker, topic, topic=topic)
            reads = isinstance(idle, Consumer)
            await until(lambda: asked.hits > 5, idle if reads else None)
            asked.remove()
            assert topic not in await admin.list_topics()
            await idle.close()

    asyncio.run(run())


def test_what_waits_for_a_topic_creates_it(broker: barnabas.Broker) -> None:
    """A send, a subscription, an assignment; a question does not."""

    async def run() -> None:
        servers = broker.bootstrap_servers
        async with AsyncExitStack() as stack, Admin(servers) as admin:
            for client in (sent_to, subscribed_to, assigned):
                made = await client(servers, f"made-{client.__name__}")
                stack.push_async_callback(made.close)
            consumer = await stack.enter_async_context(Consumer(servers))
            with pytest.raises(UnknownTopicOrPartition):
                await consumer.partitions_for("made-by-no-one")
            with pytest.raises(UnknownTopicOrPartition):
                await Consumer.available_partitions_for(consumer, "made-by-no-one")
            assert {name for name in await admin.list_topics() if name.startswith("made-")} == {
                "made-sent_to", "made-subscribed_to", "made-assigned",
            }  # fmt: skip

    asyncio.run(run())


def test_the_kits_own_clients_do_not_bring_a_topic_back(broker: barnabas.Broker) -> None:
    broker.topic("kit", partitions=1).send(b"one")

    async def names_without_it() -> set[str]:
        async with Admin(broker.bootstrap_servers) as admin:
            await admin.delete_topics(["kit"])
            broker.topic("kit-next", partitions=1).send(b"one")  # asks for all that it knows
            return set(await admin.list_topics())

    assert "kit" not in asyncio.run(names_without_it())


@asynccontextmanager
async def at_a_set_time(servers: str, client_id: str) -> AsyncIterator[tuple[Producer, SetClock]]:
    clock, real = SetClock(), system_seams()
    seams = Seams(clock, real.random, real.dial)
    async with Producer(servers, client_id=client_id, seams=seams) as producer:
        yield producer, clock


def test_a_topic_that_is_not_used_leaves_the_metadata(broker: barnabas.Broker) -> None:
    """KIP-526: after `metadata.max.idle.ms`; one that is sent to stays."""

    async def run() -> None:
        async with at_a_set_time(broker.bootstrap_servers, "leaving") as (producer, clock):
            for topic in ("used", "unused"):
                await (await producer.send(topic, b"one"))
            clock.at_ms += 300_001
            await (await producer.send("used", b"two"))
            used = requests(broker, "leaving", topic="used")
            await producer.partitions_for("other")
            assert used.hits > 0
            used.remove()
            unused = requests(broker, "leaving", topic="unused")
            await producer.partitions_for("used")
            assert unused.hits == 0
            await (await producer.send("unused", b"two"))
            assert unused.hits > 0
            unused.remove()

    asyncio.run(run())


def test_what_is_no_longer_read_is_no_longer_asked_for(broker: barnabas.Broker) -> None:
    async def run() -> None:
        async with Admin(broker.bootstrap_servers) as admin:
            await admin.create_topics([NewTopic("left", 1)])
        consumer = await subscribed_to(broker.bootstrap_servers, "left")
        await consumer.unsubscribe()
        both = requests(broker, "left", topic="left"), requests(broker, "left")
        await until(lambda: both[1].hits > 3)
        assert both[0].hits <= 1  # one may have been on its way
        for rule in both:
            rule.remove()
        await consumer.close()

    asyncio.run(run())


@pytest.mark.parametrize("how", ["subscribe", "assign"])
def test_a_topic_that_is_waited_for_is_read_soon_after_it_is_made(
    broker: barnabas.Broker, how: str
) -> None:
    """At the pace of the retry backoff, and not of `metadata.max.age.ms`."""
    topic = f"later-{how}"

    async def run() -> None:
        servers = broker.bootstrap_servers
        options: dict[str, Any] = {
            "client_id": topic,
            "group_id": topic,
            "auto_offset_reset": "earliest",
            "allow_auto_create_topics": False,
            "retry_backoff_ms": 5,
            "retry_backoff_max_ms": 20,
        }
        async with Consumer(servers, **options) as consumer, Admin(servers) as admin:
            if how == "subscribe":
                consumer.subscribe([topic])
            else:
                consumer.assign([TopicPartition(topic, 0)])
            asked = requests(broker, topic, topic=topic)
            await until(lambda: asked.hits > 5, consumer)
            asked.remove()
            await admin.create_topics([NewTopic(topic, 1)])
            async with Producer(servers) as producer:
                await producer.send(topic, b"one")
            async with asyncio.timeout(PATIENCE_S):
                found: list[bytes] = []
                while not found:
                    found = [record.value for record in await consumer.poll(1_000)]
            assert found == [b"one"]

    asyncio.run(run())
