"""What a consumer has fetched and what it is committing, when its user goes elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from barnabas.client import Consumer, SyncProducer, TopicPartition
from barnabas.client.commits import WhenCommitted
from barnabas.errors import BarnabasError
from barnabas.protocol.api import FETCH, OFFSET_COMMIT
from tests.integration.answer_proxy import AnswerProxy, Fate, behind_a_proxy
from tests.waiting import until

PATIENCE_MS = 60_000


@pytest.fixture
def proxy() -> Iterator[AnswerProxy]:
    with behind_a_proxy() as made:
        yield made


def filled(proxy: AnswerProxy, topic: str) -> TopicPartition:
    """A partition with ten batches of one record each, which is its offset."""
    with SyncProducer(proxy.servers) as producer:
        for n in range(10):
            producer.send(topic, b"%d" % n, partition=0).result(60)
    return TopicPartition(topic, 0)


async def read(consumer: Consumer, count: int) -> list[int]:
    offsets: list[int] = []
    while len(offsets) < count:
        offsets += [record.offset for record in await consumer.poll(PATIENCE_MS)]
    return offsets


def test_what_was_buffered_before_a_seek_is_dropped(proxy: AnswerProxy) -> None:
    """CO-2: records come from where the user went, and not from where it was before."""
    name = filled(proxy, "buffered")

    async def work() -> None:
        options = {"max_partition_fetch_bytes": 100, "max_poll_records": 1}
        async with Consumer(proxy.servers, **options) as consumer:  # type: ignore[arg-type]
            consumer.assign([name])
            consumer.seek(name, 5)
            assert await read(consumer, 1) == [5]
            state = consumer._assignment.of(name)
            await until(lambda: state.buffered)  # the next chunk is there
            consumer.seek(name, 0)
            assert await read(consumer, 10) == list(range(10))

    asyncio.run(work())


def test_what_was_asked_for_before_a_seek_is_dropped(proxy: AnswerProxy) -> None:
    """CO-2: the answer comes after it."""
    name = filled(proxy, "asked-for")

    async def work() -> None:
        async with Consumer(proxy.servers) as consumer:
            consumer.assign([name])
            consumer.seek(name, 5)
            proxy.rule = lambda key: Fate.HOLD if key == FETCH.key else Fate.PASS
            while not proxy.count(FETCH.key):
                assert await consumer.poll(10) == []
            consumer.seek(name, 0)
            proxy.may_go.set()
            assert await read(consumer, 10) == list(range(10))

    asyncio.run(work())


@pytest.mark.parametrize("is_subscribed", [True, False])
def test_whoever_leaves_waits_for_commits_under_way(
    proxy: AnswerProxy, is_subscribed: bool
) -> None:
    """CO-4: their callbacks are called; and what they have committed is not asked again."""
    name = filled(proxy, f"committed-{is_subscribed}")
    outcomes: list[BarnabasError | None] = []
    done: WhenCommitted = lambda offsets, error: outcomes.append(error)  # noqa: E731

    async def work() -> None:
        async with Consumer(
            proxy.servers, group_id=name.topic, auto_offset_reset="earliest"
        ) as consumer:
            if is_subscribed:
                consumer.subscribe([name.topic])
            else:
                consumer.assign([name])
            await read(consumer, 10)
            proxy.rule = lambda key: Fate.DELAY if key == OFFSET_COMMIT.key else Fate.PASS
            consumer.commit_async(when_done=done)
            consumer.stop_auto_commit()
        assert outcomes == [None]
        async with Consumer(proxy.servers, group_id=name.topic) as consumer:
            found = (await consumer.committed(name))[name]
            assert found is not None and found.offset == 10

    asyncio.run(work())
