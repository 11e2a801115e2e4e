"""Our consumer against our broker, by assignment."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from barnabas.client.admin.admin import NewTopic
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.errors import NoOffsetForPartition, UnknownPartition
from barnabas.client.sync.producer import SyncAdmin, SyncConsumer, SyncProducer
from barnabas.errors import UnknownTopicOrPartition
from barnabas.records.record import iterate_records
from barnabas.types import TopicPartition
from tests.kit.waiting import wait_until

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

pytestmark = pytest.mark.secured


def fill(broker: Broker, topic: str, count: int, *, partitions: int = 1, batch_size: int = 1_000,
         codec: str = "none") -> list[TopicPartition]:  # fmt: skip
    """A topic with the numbers from 0 in each partition, timestamp 1000 + the number."""
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, partitions)])
    with SyncProducer(
        broker.bootstrap_servers, batch_size=batch_size, linger_ms=1_000, compression_type=codec
    ) as producer:
        for n in range(count):
            for partition in range(partitions):
                producer.send(topic, b"%d" % n, partition=partition, timestamp_ms=1_000 + n)
    return [TopicPartition(topic, partition) for partition in range(partitions)]


def numbers(consumer: SyncConsumer, count: int) -> list[int]:
    """The values of the next `count` records."""
    found: list[int] = []
    for _ in range(50):
        found += [int(record.value or b"-1") for record in consumer.poll(1_000)]
        if len(found) >= count:
            break
    return found


@pytest.fixture
def consumer(broker: Broker) -> Iterator[SyncConsumer]:
    with SyncConsumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        yield consumer


def test_what_is_being_read_is_given_whole_before_a_reset(broker: Broker) -> None:
    """CO-5: the next fetch is refused while the user is still at records of the one before."""
    (name,) = fill(broker, "read-whole", 300)
    with SyncAdmin(broker.bootstrap_servers) as admin:

        async def work() -> list[int]:
            found: list[int] = []
            async with Consumer(
                broker.bootstrap_servers,
                auto_offset_reset="earliest",
                max_poll_records=1,
                max_partition_fetch_bytes=1,  # a batch at a time
            ) as consumer:
                consumer.assign([name])
                while not found:
                    found += [record.offset for record in await consumer.poll(1_000)]
                # The next fetch cannot leave before this is done: it blocks the consumer's loop.
                admin.delete_records({name: 290})
                while found[-1] < 299:
                    await asyncio.sleep(0.01)
                    found += [record.offset for record in await consumer.poll(1_000)]
            return found

        found = asyncio.run(work())
    size = len(found) - 10
    assert 1 < size < 290
    assert found == [*range(size), *range(290, 300)]


def test_a_first_read_does_not_wait_out_a_backoff(broker: Broker) -> None:
    """Nothing has failed: the topic's leader is merely not known yet."""
    (name,) = fill(broker, "read-first", 10)
    backoff = {"retry_backoff_ms": 600_000, "retry_backoff_max_ms": 600_000}
    with SyncConsumer(broker.bootstrap_servers, **backoff) as consumer:
        consumer.assign([name])
        consumer.seek(name, 0)
        assert numbers(consumer, 10) == list(range(10))


def test_each_partition_comes_in_order_and_once(broker: Broker, consumer: SyncConsumer) -> None:
    """CO-2, CO-7: several partitions, more records than one poll gives."""
    names = fill(broker, "ordered", 1_200, partitions=3)
    consumer.assign(names)
    assert consumer.assignment() == names
    seen: dict[int, list[int]] = {0: [], 1: [], 2: []}
    polls = 0
    while sum(map(len, seen.values())) < 3_600:
        records = consumer.poll(60_000)
        assert 0 < len(records) <= 500, "max.poll.records"
        polls += 1
        for record in records:
            assert record.offset == len(seen[record.partition])
            seen[record.partition].append(int(record.value or b"-1"))
    assert all(found == list(range(1_200)) for found in seen.values())
    assert polls >= 8
    assert [consumer.position(name) for name in names] == [1_200] * 3
    assert consumer.poll(50) == []


def test_a_poll_returns_as_soon_as_there_is_a_record(
    broker: Broker, consumer: SyncConsumer
) -> None:
    """CO-1: a poll of seven days on a topic with data returns at once, and one that waits soon."""
    consumer.assign(fill(broker, "polled", 1))
    week_ms = 7 * 24 * 3_600_000
    began = time.monotonic()
    assert len(consumer.poll(week_ms)) == 1
    with SyncProducer(broker.bootstrap_servers) as producer:
        timer = threading.Timer(0.2, lambda: producer.send("polled", b"late"))
        timer.start()
        assert [record.value for record in consumer.poll(week_ms)] == [b"late"]
        timer.join()
    assert time.monotonic() - began < 60, "not a week"


def test_a_poll_of_nothing_takes_its_time_and_no_more(
    broker: Broker, consumer: SyncConsumer
) -> None:
    """CO-1: empty when nothing came."""
    consumer.assign(fill(broker, "silent", 0))
    began = time.monotonic()
    assert consumer.poll(300) == []
    assert 0.29 < time.monotonic() - began < 30
    for _ in range(50):
        assert consumer.poll(0) == []


def test_seek_reads_from_the_middle_of_a_batch(broker: Broker, consumer: SyncConsumer) -> None:
    """CO-2: the broker sends the batch whole; the user sees it from the position on."""
    (name,) = fill(broker, "middle", 100, batch_size=100_000)
    consumer.assign([name])
    for offset in (0, 57, 99, 3):
        consumer.seek(name, offset)
        assert numbers(consumer, 100 - offset) == list(range(offset, 100))
    consumer.seek(name, 100)
    assert consumer.poll(50) == []
    consumer.seek_to_beginning(name)
    assert consumer.position(name) == 0
    consumer.seek_to_end()
    assert consumer.position(name) == 100
    with pytest.raises(ValueError, match="offset: -1"):
        consumer.seek(name, -1)
    with pytest.raises(ValueError, match="not assigned"):
        consumer.seek(TopicPartition("middle", 9), 0)


@pytest.mark.parametrize(("reset", "expected"), [("earliest", [0, 1, 2]), ("latest", [])])
def test_without_a_position_the_reset_policy_decides(
    broker: Broker, reset: str, expected: list[int]
) -> None:
    """CO-5: where to begin, and where to go when the position is out of range."""
    topic = f"reset-{reset}"
    (name,) = fill(broker, topic, 3)
    with SyncConsumer(broker.bootstrap_servers, auto_offset_reset=reset) as consumer:
        consumer.assign([name])
        assert numbers(consumer, 3) == expected if expected else consumer.poll(300) == []
        consumer.seek(name, 1_000)
        assert numbers(consumer, 3) == expected if expected else consumer.poll(300) == []
        # Where nothing is read, nothing has shown yet that the new position is in effect.
        wait_until(lambda: consumer.poll(0) == [] and consumer.position(name) == 3)


def test_reset_none_raises(broker: Broker) -> None:
    """CO-5: no position, and one that is out of range."""
    (name,) = fill(broker, "reset-none", 3)
    with SyncConsumer(broker.bootstrap_servers, auto_offset_reset="none") as consumer:
        consumer.assign([name])
        with pytest.raises(NoOffsetForPartition, match="seek to an offset"):
            consumer.poll(60_000)
        consumer.seek(name, 99)
        with pytest.raises(NoOffsetForPartition, match=r"offset 99 of reset-none-0"):
            consumer.poll(60_000)
        consumer.seek(name, 1)
        assert numbers(consumer, 2) == [1, 2]


def test_a_paused_partition_is_silent_and_loses_nothing(
    broker: Broker, consumer: SyncConsumer
) -> None:
    """CO-2: pause and resume."""
    names = fill(broker, "paused", 1_000, partitions=2)
    consumer.assign(names)
    first = consumer.poll(60_000)
    consumer.pause(names[0])
    during = []
    while batch := consumer.poll(2_000):
        during += batch
    assert {record.partition for record in during} == {1}
    consumer.resume(names[0])
    after = []
    while len(first) + len(during) + len(after) < 2_000:
        after += consumer.poll(60_000)
    per_partition: dict[int, list[int]] = {0: [], 1: []}
    for record in [*first, *during, *after]:
        per_partition[record.partition].append(record.offset)
    assert per_partition == {0: list(range(1_000)), 1: list(range(1_000))}


def test_a_record_above_every_limit_arrives(broker: Broker) -> None:
    """CO-1: a first batch larger than the limits is returned all the same."""
    (name,) = fill(broker, "large", 1)
    with SyncProducer(broker.bootstrap_servers) as producer:
        producer.send("large", b"x" * 900_000)
        producer.send("large", b"end")
    with SyncConsumer(
        broker.bootstrap_servers,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=1_000,
        fetch_max_bytes=1_000,
    ) as consumer:
        consumer.assign([name])
        sizes: list[int] = []
        while len(sizes) < 3:
            sizes += [len(record.value or b"") for record in consumer.poll(60_000)]
    assert sizes == [1, 900_000, 3]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_fetch_batches_gives_the_bytes_that_are_stored(
    broker: Broker, consumer: SyncConsumer, codec: str
) -> None:
    """CO-1: raw batches, whole, with the offsets to go on by."""
    names = fill(broker, f"raw-{codec}", 500, partitions=2, codec=codec)
    consumer.assign(names)
    consumer.seek(names[0], 123)
    seen: dict[TopicPartition, list[int]] = {name: [] for name in names}
    after = {names[0]: 123, names[1]: 0}
    while any(offset < 500 for offset in after.values()):
        fetched = consumer.fetch_batches(60_000)
        assert fetched, "data that is there comes within the timeout"
        for name, part in fetched.items():
            assert part.offset == after[name]
            assert (part.high_watermark, part.last_stable_offset) == (500, 500)
            assert part.log_start_offset == 0
            after[name] = part.next_offset
            seen[name] += [
                int(record.value or b"-1")
                for record in iterate_records(part.records)
                if record.offset >= part.offset
            ]
            assert consumer.position(name) == part.next_offset
    assert seen == {names[0]: list(range(123, 500)), names[1]: list(range(500))}
    assert consumer.fetch_batches(50) == {}


def test_poll_and_fetch_batches_share_their_position(
    broker: Broker, consumer: SyncConsumer
) -> None:
    (name,) = fill(broker, "mixed", 1_000, batch_size=100_000)
    consumer.assign([name])
    assert len(consumer.poll(60_000)) == 500
    (part,) = consumer.fetch_batches(60_000).values()
    assert part.offset == 500
    assert part.next_offset == 1_000


def test_offsets_by_time_and_at_both_ends(broker: Broker, consumer: SyncConsumer) -> None:
    """CO-2, ST-4: the first record that is not older."""
    names = fill(broker, "times", 100, partitions=2)
    assert consumer.beginning_offsets(names) == dict.fromkeys(names, 0)
    assert consumer.end_offsets(names) == dict.fromkeys(names, 100)
    found = consumer.offsets_for_times({names[0]: 1_040, names[1]: 5_000})
    first = found[names[0]]
    assert first is not None
    assert (first.offset, first.timestamp_ms) == (40, 1_040)
    assert found[names[1]] is None
    with pytest.raises(ValueError, match="timestamps: -3"):
        consumer.offsets_for_times({names[0]: -3})


def test_what_is_not_there_is_named(broker: Broker) -> None:
    with SyncConsumer(broker.bootstrap_servers, allow_auto_create_topics=False) as consumer:
        with pytest.raises(UnknownTopicOrPartition, match="no-such-topic"):
            consumer.partitions_for("no-such-topic")
        assert "no-such-topic" not in consumer.list_topics()
        fill(broker, "one-only", 0)
        assert consumer.partitions_for("one-only") == [0]
        ids = consumer.topic_ids(["one-only", "no-such-topic"])
        assert list(ids) == ["one-only"] and len(ids["one-only"]) == 16 and any(ids["one-only"])
        assert consumer.list_topics()["one-only"] == [0]
        assert consumer.list_topics(["one-only", "no-such-topic"]) == {"one-only": [0]}
        with pytest.raises(UnknownPartition, match="partitions 0 to 0, not 5"):
            consumer.end_offsets([TopicPartition("one-only", 5)])


def test_a_new_assignment_or_a_seek_drops_what_is_buffered(
    broker: Broker, consumer: SyncConsumer
) -> None:
    """CO-2: partitions that stay keep their position, the others are silent at once."""
    names = fill(broker, "assigned", 1_000, partitions=3)
    consumer.assign(names)
    begun = TopicPartition("assigned", consumer.poll(60_000)[0].partition)
    dropped, sought = (name for name in names if name != begun)
    consumer.assign([begun, sought])
    consumer.seek(sought, 990)
    with pytest.raises(ValueError, match="not assigned"):
        consumer.position(dropped)
    records = []
    while len(records) < 510:
        records += consumer.poll(60_000)
    assert consumer.poll(300) == []
    rest = [record.offset for record in records if record.partition == begun.partition]
    assert rest == list(range(500, 1_000))
    rest = [record.offset for record in records if record.partition == sought.partition]
    assert rest == list(range(990, 1_000))
    assert len(records) == 510
