"""A task of a client that ends by a mistake: what it owed fails with the cause, and nothing hangs.

The mistake comes in at a seam: the clock, or the making of connections.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from barnabas.client import Consumer, NewTopic, Producer, SyncAdmin, SyncProducer, TopicPartition
from barnabas.client.channel import Seams, dial_tcp, system_seams
from barnabas.client.errors import ClientFailed
from barnabas.client.producer.batch import ProducerRecord
from barnabas.clock import SystemClock
from barnabas.net.connection import Connection
from tests.kit.waiting import until

if TYPE_CHECKING:
    from barnabas.client.security.tls import ClientTls
    from barnabas.testing.embedded.broker import Broker

pytestmark = pytest.mark.secured

T = TypeVar("T")


class Mistake(Exception):
    """An error that no code expects."""


class Fault:
    """Seams that work until they are broken."""

    def __init__(self) -> None:
        self.is_broken = False
        self.after_dials = -1  # then dialling is broken

    def strike(self) -> None:
        if self.is_broken:
            raise Mistake("broken")

    def seams(self) -> Seams:
        return system_seams()._replace(clock=_Clock(self), dial=self.dial)

    async def dial(
        self, make: Callable[[], Connection], host: str, port: int, tls: ClientTls | None = None
    ) -> Connection:
        if self.after_dials == 0:
            raise Mistake("cannot dial")
        self.after_dials -= 1
        return await dial_tcp(make, host, port, tls)


class _Clock(SystemClock):
    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self._fault = fault

    def wall_ms(self) -> int:
        self._fault.strike()
        return super().wall_ms()

    def monotonic_ms(self) -> int:
        self._fault.strike()
        return super().monotonic_ms()


async def in_time(waiting: Awaitable[T]) -> T:
    async with asyncio.timeout(60):
        return await waiting


def fatal(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno == logging.CRITICAL]


def test_records_fail_with_the_cause_when_the_sender_fails(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """PR-8: those that wait, those in flight, and any call of flush or send."""

    async def work() -> None:
        fault = Fault()
        producer = Producer(broker.bootstrap_servers, seams=fault.seams(), linger_ms=60_000)
        await producer.start()
        delivery = await producer.send("supervised", b"v")
        flush = asyncio.create_task(producer.flush())
        fault.is_broken = True
        with pytest.raises(ClientFailed, match="broken") as failed:
            await in_time(delivery)
        assert isinstance(failed.value.__cause__, Mistake)
        with pytest.raises(ClientFailed):
            await in_time(flush)
        fault.is_broken = False
        with pytest.raises(ClientFailed):
            await in_time(producer.send("supervised", b"v"))
        with pytest.raises(ClientFailed):
            await in_time(producer.close())

    asyncio.run(work())
    assert len(fatal(caplog)) == 1, "logged once"


def test_the_sync_producer_says_that_it_has_failed(broker: Broker) -> None:
    """PR-8: to flush and to close as well, for something accepted was not sent; and it ends."""
    fault = Fault()
    options: Any = {"seams": fault.seams(), "linger_ms": 60_000}
    producer = SyncProducer(broker.bootstrap_servers, **options)
    heard: list[BaseException | None] = []
    producer.send_many([ProducerRecord("supervised-sync", b"v")])  # the topic is known by now
    delivery = producer.send("supervised-sync", b"v")
    delivery.add_done_callback(lambda delivery: heard.append(delivery.exception()))
    fault.is_broken = True
    with pytest.raises(ClientFailed):
        producer.flush()
    assert isinstance(delivery.exception(60), ClientFailed | Mistake)  # it may meet it itself
    with pytest.raises(ClientFailed):
        producer.send("supervised-sync", b"v")
    with pytest.raises(ClientFailed):
        producer.close()
    assert heard == [delivery.exception()]
    assert not [t for t in threading.enumerate() if t.name.startswith("barnabas-producer")]


def test_a_caller_that_waits_for_metadata_gets_its_failure(broker: Broker) -> None:
    """PR-9: a topic that is asked for is not waited for until max.block.ms."""

    async def work() -> None:
        fault = Fault()
        async with Consumer(broker.bootstrap_servers, seams=fault.seams()) as consumer:
            asking = asyncio.create_task(consumer.partitions_for("asked-for"))
            await asyncio.sleep(0)  # it waits for the refresh
            fault.is_broken = True
            with pytest.raises(ClientFailed, match="the metadata refresh"):
                await in_time(asking)
            fault.is_broken = False
            with pytest.raises(ClientFailed):
                await in_time(consumer.partitions_for("asked-for"))

    asyncio.run(work())


def test_a_connection_that_cannot_even_be_tried_fails_the_records(broker: Broker) -> None:
    """PR-8: the connection to the leader is another one than that of the bootstrap server."""

    async def work() -> None:
        fault = Fault()
        fault.after_dials = 1
        producer = Producer(broker.bootstrap_servers, seams=fault.seams())
        await producer.start()
        with pytest.raises(ClientFailed, match="cannot dial"):
            await in_time(_sent(producer))
        with pytest.raises(ClientFailed):
            await in_time(producer.close())

    asyncio.run(work())


async def _sent(producer: Producer) -> None:
    await (await producer.send("supervised", b"v"))


def test_a_poll_hears_that_its_fetch_has_failed(broker: Broker) -> None:
    """CO-1."""

    async def work() -> None:
        with SyncAdmin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("fetched", 1)])
        fault = Fault()
        async with Consumer(broker.bootstrap_servers, seams=fault.seams()) as consumer:
            name = TopicPartition("fetched", 0)
            consumer.assign([name])
            consumer.seek(name, 0)
            await consumer.partitions_for("fetched")
            fault.after_dials = 0
            with pytest.raises(ClientFailed, match="cannot dial"):
                await in_time(consumer.poll(3_600_000))
            with pytest.raises(ClientFailed):
                await in_time(consumer.poll(0))

    asyncio.run(work())


def test_a_commit_that_fails_by_a_mistake_is_reported(broker: Broker) -> None:
    """CO-4: its callback is called, with what went wrong."""

    async def work() -> None:
        fault = Fault()
        errors: list[object] = []
        async with Consumer(
            broker.bootstrap_servers, seams=fault.seams(), group_id="g"
        ) as consumer:
            fault.after_dials = 0
            wanted = {TopicPartition("fetched", 0): 0}
            consumer.commit_async(wanted, lambda offsets, error: errors.append(error))
            await until(lambda: errors)
        assert isinstance(errors[0], ClientFailed)

    asyncio.run(work())


def test_a_commits_callback_that_raises_is_logged(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """CO-4: and the next one is called."""

    async def work() -> None:
        async with Consumer(broker.bootstrap_servers, group_id="callbacks") as consumer:
            errors: list[object] = []
            wanted = {TopicPartition("fetched", 0): 0}
            consumer.commit_async(wanted, lambda offsets, error: 1 / 0)  # type: ignore[arg-type, return-value]
            consumer.commit_async(wanted, lambda offsets, error: errors.append(error))
            await until(lambda: errors)

    asyncio.run(work())
    assert "the callback of a commit of 1 offset failed" in caplog.text
    assert fatal(caplog) == []
