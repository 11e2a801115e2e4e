"""What a consumer has fetched and what it is committing, when its user goes elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import barnabas
from barnabas.client import Consumer, SyncProducer, TopicPartition
from barnabas.client.consumer.commits import WhenCommitted
from barnabas.client.consumer.committed import OffsetAndMetadata
from barnabas.client.errors import NoOffsetForPartition
from barnabas.errors import BarnabasError
from barnabas.protocol.api import FETCH, METADATA, OFFSET_COMMIT, PRODUCE
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.kit.processes.answer_proxy import AnswerProxy, Fate, behind_a_proxy
from tests.kit.raw_client import RawClient, batch
from tests.kit.waiting import until

pytestmark = pytest.mark.secured

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


@pytest.mark.parametrize("reset", ["earliest", "latest", "none"])
def test_only_the_leader_of_new_metadata_puts_a_position_out_of_range(
    proxy: AnswerProxy, reset: str
) -> None:
    """CO-5: an answer from before the position was written, as of a leader that was replaced."""
    name = filled(proxy, f"replaced-{reset}")
    later = TopicProduceData(
        name=name.topic, partition_data=[PartitionProduceData(index=0, records=batch(*[b""] * 5))]
    )
    request = ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[later])

    def write_once_refused(key: int) -> None:
        if key == METADATA.key and proxy.count(FETCH.key):
            proxy.before_request = lambda key: None
            with RawClient(f"127.0.0.1:{proxy.broker_port}") as raw:
                raw.call(PRODUCE, 7, request)

    async def work() -> None:
        async with Consumer(proxy.servers, auto_offset_reset=reset) as consumer:
            consumer.assign([name])
            consumer.seek(name, 13)
            proxy.before_request = write_once_refused
            assert await read(consumer, 2) == [13, 14]

    asyncio.run(work())


def test_positions_are_what_a_commit_writes(proxy: AnswerProxy) -> None:
    """CO-4: behind the last record that was given, with the epoch of its leader."""
    name = filled(proxy, "positions")

    async def work() -> None:
        async with Consumer(proxy.servers, group_id="positions", max_poll_records=3) as consumer:
            consumer.assign([name])
            assert consumer.positions() == {}
            consumer.seek(name, 0)
            assert len(await consumer.poll(PATIENCE_MS)) == 3
            expected = {name: OffsetAndMetadata(3, leader_epoch=0)}
            assert consumer.positions() == expected
            await consumer.commit_sync()
            assert await consumer.committed(name) == expected

    asyncio.run(work())


@pytest.mark.parametrize("is_subscribed", [True, False])
def test_a_consumer_that_leaves_waits_for_commits_under_way(
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


@pytest.mark.parametrize(("reset", "expected"), [("earliest", list(range(8))), ("latest", [8])])
def test_a_topic_that_was_created_again_is_read_by_the_reset_rule(
    broker: barnabas.Broker, caplog: pytest.LogCaptureFixture, reset: str, expected: list[int]
) -> None:
    """CO-5: the new log is longer than the old position, so no offset is out of range."""
    name = TopicPartition(f"again-{reset}", 0)

    async def work() -> None:
        servers = broker.bootstrap_servers
        async with Consumer(servers, auto_offset_reset=reset) as consumer:
            await consume_and_recreate(broker, consumer, name)
            state = consumer._assignment.of(name)
            if reset == "latest":
                while state.position != 8:
                    assert await consumer.poll(10) == []
                await asyncio.to_thread(broker.topic(name.topic).send, b"behind the end")
            assert await read(consumer, len(expected)) == expected
            assert len([each for each in caplog.messages if "created again" in each]) == 1

    asyncio.run(work())


def test_a_topic_that_was_created_again_is_an_error_without_a_reset_rule(
    broker: barnabas.Broker,
) -> None:
    """CO-5: `none` raises, and a seek continues."""
    name = TopicPartition("again-none", 0)

    async def work() -> None:
        async with Consumer(broker.bootstrap_servers, auto_offset_reset="none") as consumer:
            await consume_and_recreate(broker, consumer, name)
            with pytest.raises(NoOffsetForPartition, match="deleted and created again"):
                await read(consumer, 1)
            consumer.seek(name, 0)
            assert await read(consumer, 8) == list(range(8))

    asyncio.run(work())


async def consume_and_recreate(
    broker: barnabas.Broker, consumer: Consumer, name: TopicPartition
) -> None:
    """Read all five records of a topic, which is then replaced by one with eight."""

    def recreate() -> None:
        broker.topic(name.topic).delete()
        broker.topic(name.topic, partitions=1).send_many([b"new"] * 8)

    broker.topic(name.topic, partitions=1).send_many([b"old"] * 5)
    consumer.assign([name])
    consumer.seek(name, 0)
    assert await read(consumer, 5) == list(range(5))
    await asyncio.to_thread(recreate)


def test_a_position_of_a_deleted_topic_is_not_committed_into_its_successor(
    broker: barnabas.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """CO-4: more partitions cause a rebalance, and that must not hide what the new topic has."""
    name = TopicPartition("again-grown", 0)

    def recreate() -> None:
        broker.topic(name.topic).delete()
        broker.topic(name.topic, partitions=3).send_many([b"new"] * 8, partition=0)

    async def work() -> None:
        async with Consumer(
            broker.bootstrap_servers, group_id="again-grown", auto_offset_reset="earliest"
        ) as consumer:
            consumer.subscribe([name.topic])
            assert await read(consumer, 5) == list(range(5))
            await asyncio.to_thread(recreate)
            assert await read(consumer, 8) == list(range(8))
        assert len([each for each in caplog.messages if "created again" in each]) == 1

    broker.topic(name.topic, partitions=1).send_many([b"old"] * 5)
    asyncio.run(work())


def test_auto_commit_commits_an_offset_again_in_a_new_topic(broker: barnabas.Broker) -> None:
    """CO-4: the offset is the one that was committed last, but that was in the old topic."""
    name = TopicPartition("again-same", 0)

    def recreate() -> None:
        broker.topic(name.topic).delete()
        broker.topic(name.topic, partitions=1).send_many([b"new"] * 5)

    async def work() -> None:
        async with Consumer(
            broker.bootstrap_servers,
            group_id="again-same",
            auto_offset_reset="earliest",
            auto_commit_interval_ms=1,
        ) as consumer:
            consumer.subscribe([name.topic])
            for replace in (recreate, None):
                assert await read(consumer, 5) == list(range(5))
                while (await consumer.committed([name])).get(name) is None:
                    await consumer.poll(10)
                if replace is not None:
                    await asyncio.to_thread(replace)

    broker.topic(name.topic, partitions=1).send_many([b"old"] * 5)
    asyncio.run(asyncio.wait_for(work(), 60))


def test_a_look_up_does_not_wait_for_the_backoff_of_another_refresh(
    broker: barnabas.Broker,
) -> None:
    """An assignment requests new metadata, and the backoff after the last request is an hour."""
    with SyncProducer(broker.bootstrap_servers) as producer:
        producer.send("looked-up", b"", partition=0).result(60)

    async def work() -> None:
        hour_ms = 3_600_000
        options = {"retry_backoff_ms": hour_ms, "retry_backoff_max_ms": hour_ms}
        async with Consumer(broker.bootstrap_servers, **options) as consumer:  # type: ignore[arg-type]
            for _ in range(2):
                assert await consumer.partitions_for("looked-up")
                consumer.assign([TopicPartition("looked-up", 0)])
                for _ in range(10):
                    await asyncio.sleep(0)  # the refresh is requested, and backs off
                consumer.assign([])

    asyncio.run(asyncio.wait_for(work(), 30))
