"""Our producer where answers are lost: what the log holds is what the producer reports."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from barnabas.client import Producer, SyncConsumer, TopicPartition
from barnabas.client.channel import system_seams
from barnabas.client.errors import BufferFull, DeliveryTimedOut, Unreachable
from barnabas.client.sync.producer import SyncProducer
from barnabas.clock import SystemClock
from barnabas.protocol.api import METADATA, PRODUCE
from tests.kit.processes.answer_proxy import AnswerProxy, behind_a_proxy, let_pass
from tests.kit.waiting import until, wait_until

pytestmark = pytest.mark.secured

RETRY_AT_ONCE = {
    "request_timeout_ms": 300,
    "retry_backoff_ms": 10,
    "retry_backoff_max_ms": 10,
    "reconnect_backoff_ms": 10,
    "reconnect_backoff_max_ms": 10,
}


@pytest.fixture
def proxy() -> Iterator[AnswerProxy]:
    with behind_a_proxy() as made:
        yield made


class SetClock(SystemClock):
    """The machine's, with a jump that the test makes."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead_ms = 0

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self.ahead_ms


def values(proxy: AnswerProxy, topic: str) -> list[bytes | None]:
    """All that the log holds."""
    proxy.rule = let_pass
    name = TopicPartition(topic, 0)
    with SyncConsumer(proxy.servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([name])
        end = consumer.end_offsets([name])[name]
        found: list[bytes | None] = []
        while consumer.position(name) < end:
            found += [record.value for record in consumer.poll(1_000)]
    return found


def end_of(consumer: SyncConsumer, name: TopicPartition) -> int:
    return consumer.end_offsets([name])[name]


def test_what_is_behind_an_expired_batch_is_stored_once(proxy: AnswerProxy) -> None:
    """PR-6, KIP-360: two are stored, their answers lost, and the first one expires."""
    clock = SetClock()
    name = TopicPartition("expired", 0)

    async def work() -> None:
        seams = system_seams()._replace(clock=clock)
        async with Producer(proxy.servers, seams=seams, **RETRY_AT_ONCE) as producer:  # type: ignore[arg-type]
            await (await producer.send("expired", b"first", partition=0))
            with SyncConsumer(proxy.servers) as onlooker:
                proxy.lose(PRODUCE.key)
                older = await producer.send("expired", b"older", partition=0)
                await until(lambda: end_of(onlooker, name) == 2)
                clock.ahead_ms += 60_000
                younger = await producer.send("expired", b"younger", partition=0)
                await until(lambda: end_of(onlooker, name) == 3)
                clock.ahead_ms += 61_000  # 120 seconds is delivery.timeout.ms
                with pytest.raises(DeliveryTimedOut):
                    await older
                proxy.rule = let_pass
                assert (await younger).offset == 2
                assert (await (await producer.send("expired", b"last", partition=0))).offset == 3

    asyncio.run(work())
    assert values(proxy, "expired") == [b"first", b"older", b"younger", b"last"]


def test_send_waits_for_metadata_no_longer_than_it_may(proxy: AnswerProxy) -> None:
    """PR-3, PR-9: max.block.ms, by both producers, while brokers say nothing."""

    async def work() -> None:
        async with Producer(proxy.servers, max_block_ms=200) as producer:
            proxy.lose(METADATA.key)
            async with asyncio.timeout(20):  # request.timeout.ms is 30 seconds
                with pytest.raises(Unreachable, match="unasked"):
                    await producer.send("unasked", b"v")
            proxy.rule = let_pass

    asyncio.run(work())
    with SyncProducer(proxy.servers, max_block_ms=200) as producer:
        proxy.lose(METADATA.key)
        assert isinstance(producer.send("unasked", b"v").exception(20), Unreachable)
        proxy.rule = let_pass


def test_send_waits_for_room_no_longer_than_it_may(proxy: AnswerProxy) -> None:
    """PR-3: max.block.ms, by both producers, while nothing is acknowledged."""
    options = {"max_block_ms": 100, "buffer_memory": 100_000, **RETRY_AT_ONCE}

    async def work() -> None:
        async with Producer(proxy.servers, **options) as producer:  # type: ignore[arg-type]
            await (await producer.send("roomless", b"v"))
            proxy.lose(PRODUCE.key)
            await producer.send("roomless", b"x" * 60_000)
            with pytest.raises(BufferFull, match=r"max\.block\.ms"):
                await producer.send("roomless", b"x" * 60_000)
            proxy.rule = let_pass

    asyncio.run(work())
    with SyncProducer(proxy.servers, **options) as producer:  # type: ignore[arg-type]
        producer.send("roomless", b"v").result(60)
        proxy.lose(PRODUCE.key)
        # What its own loop holds, then what waits for that: no more than a megabyte.
        sent, refused = [], None
        for _ in range(100):
            try:
                sent.append(producer.send("roomless", b"x" * 60_000))
            except BufferFull as error:
                refused = error
                break
        assert refused is not None and "max.block.ms" in str(refused)
        assert 1 < len(sent) < 40
        proxy.rule = let_pass


def test_unknown_topics_do_not_hold_up_others(proxy: AnswerProxy) -> None:
    """PR-8: each waits by itself, and close() for all of them at once."""
    with SyncProducer(proxy.servers, max_block_ms=2_000) as producer:
        producer.send("known", b"v").result(60)
        proxy.lose(METADATA.key)
        lost = [producer.send(f"never-made.{n}", b"v") for n in range(1_000)]
        sent = producer.send("known", b"v")
        assert sent.result(60).offset == 1
        assert all(isinstance(each.exception(60), Unreachable) for each in lost)
        proxy.rule = let_pass


def test_flush_of_one_thread_covers_what_another_has_begun_to_send(proxy: AnswerProxy) -> None:
    """PR-8: the thread that wakes the loop may not have come to it yet."""
    with SyncProducer(proxy.servers) as producer:
        producer.send("flushed", b"v").result(60)
        wake, woken = producer._thread.call_soon, []
        producer._thread.call_soon = woken.append  # type: ignore[method-assign, assignment]
        first = producer.send("flushed", b"v")  # by a thread that stops here
        second = producer.send("flushed", b"v")
        producer._thread.call_soon = wake  # type: ignore[method-assign]
        producer.flush()
        assert first.done() and second.done()
        for call in woken:
            wake(call)
        wait_until(lambda: producer.send("flushed", b"v").result(60).offset >= 3)
