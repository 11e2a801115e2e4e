"""The ways to read with our consumer: iteration, by partition, with deserializers, and lookups."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.client import (
    Consumer,
    ConsumerRecord,
    NewTopic,
    OffsetAndMetadata,
    SyncAdmin,
    SyncConsumer,
    SyncProducer,
    TopicPartition,
)
from barnabas.client.errors import ClientClosed, RecordDeserializationError
from barnabas.errors import ConfigError

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

pytestmark = pytest.mark.secured

PATIENCE_MS = 60_000


def filled(
    broker: Broker, topic: str, partitions: int, *values: bytes | None
) -> list[TopicPartition]:
    """A topic with these values, dealt to its partitions in turn; each one's time is its number."""
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, partitions)])
    with SyncProducer(broker.bootstrap_servers) as producer:
        for number, value in enumerate(values):
            producer.send(topic, value, partition=number % partitions, timestamp_ms=number).result(
                60
            )
    return [TopicPartition(topic, number) for number in range(partitions)]


def in_group(group_id: str, **options: Any) -> Any:
    return {"group_id": group_id, "auto_offset_reset": "earliest", **options}


def test_an_iteration_goes_on_until_the_consumer_is_closed(broker: Broker) -> None:
    """CO-1: by another task; what was given by then is committed."""
    names = filled(broker, "iterated", 2, *(b"%d" % n for n in range(10)))
    options = in_group("iterated", max_poll_records=3)

    async def run() -> list[ConsumerRecord]:
        got = []
        async with Consumer(broker.bootstrap_servers, **options) as consumer:
            consumer.subscribe(["iterated"])
            closing: asyncio.Task[None] | None = None
            async for record in consumer:
                got.append(record)
                position = await consumer.position(record.topic_partition)
                assert position == record.offset + 1, "the position goes record by record"
                if len(got) == 10:
                    closing = asyncio.create_task(consumer.close())
            assert closing is not None
            await closing
            with pytest.raises(ClientClosed, match="create a new one"):
                await consumer.poll(0)
            assert "closed" in repr(consumer)
        return got

    got = asyncio.run(run())
    assert sorted(int(record.value) for record in got) == list(range(10))
    with SyncConsumer(broker.bootstrap_servers, group_id="iterated") as consumer:
        found = consumer.committed(names)
        assert found == {name: OffsetAndMetadata(5, "", 0) for name in names}


def test_a_blocking_iteration_is_ended_by_another_thread(broker: Broker) -> None:
    """CO-1: and what it gave is committed, and its group left."""
    (name,) = filled(broker, "ended", 1, *(b"%d" % n for n in range(7)))
    ends: list[str] = []

    class Ending:
        def on_commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
            ends.append(f"committed {offsets[name].offset}")

        def close(self) -> None:
            ends.append("closed")

    options = in_group("ended", interceptor_classes=Ending)
    consumer = SyncConsumer(broker.bootstrap_servers, **options)
    consumer.subscribe(["ended"])
    has_all = threading.Event()

    def close() -> None:
        assert has_all.wait(60)
        consumer.close()

    closing = threading.Thread(target=close)
    closing.start()
    got = []
    for record in consumer:
        got.append(record.value)
        if len(got) == 7:
            has_all.set()
    closing.join(60)
    assert got == [b"%d" % n for n in range(7)]
    assert list(consumer) == []
    assert ends == ["committed 7", "closed"]
    consumer.close()
    with SyncAdmin(broker.bootstrap_servers) as admin:
        assert admin.describe_groups(["ended"])["ended"].state == "Empty"


def test_what_an_iteration_gave_counts_as_processed_at_the_next_one(broker: Broker) -> None:
    """CO-4: auto commit on the way commits no record whose work is under way."""
    (name,) = filled(broker, "under-way", 1, *(b"%d" % n for n in range(4)))
    options = in_group("under-way", auto_commit_interval_ms=0, max_poll_records=1)
    with (
        SyncConsumer(broker.bootstrap_servers, **options) as consumer,
        SyncConsumer(broker.bootstrap_servers, group_id="under-way") as watching,
    ):
        consumer.subscribe(["under-way"])
        for record in consumer:
            found = watching.committed(name)[name]
            assert (0 if found is None else found.offset) <= record.offset
            if record.offset == 3:
                break


def test_records_come_by_partition_and_of_those_asked_for(broker: Broker) -> None:
    """CO-1: as users of aiokafka expect it."""
    names = filled(broker, "by-partition", 3, *(b"%d" % n for n in range(30)))

    async def run() -> None:
        async with Consumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign(names)
            first = await consumer.getone(names[1])
            assert (first.partition, first.value) == (1, b"1")
            got: dict[TopicPartition, list[ConsumerRecord]] = {}
            while sum(map(len, got.values())) < 19:
                found = await consumer.getmany(names[1:], timeout_ms=PATIENCE_MS, max_records=4)
                assert 0 < sum(map(len, found.values())) <= 4
                assert names[0] not in found
                for name, records in found.items():
                    got.setdefault(name, []).extend(records)
            assert [record.offset for record in got[names[1]]] == list(range(1, 10))
            assert [record.offset for record in got[names[2]]] == list(range(10))
            assert await consumer.lag(names[0]) == {names[0]: 10}
            rest = await consumer.getmany(timeout_ms=PATIENCE_MS)
            assert [record.offset for record in rest[names[0]]] == list(range(10))
            assert set((await consumer.lag()).values()) == {0}
            assert consumer.current_lag(names[0]) == 0 and consumer.highwater(names[0]) == 10

    asyncio.run(run())


def test_partitions_are_given_as_one_several_or_a_list(broker: Broker) -> None:
    """CO-2: as TopicPartition or as a plain pair."""
    one, two = filled(broker, "given", 2, *(b"%d" % n for n in range(6)))
    with SyncConsumer(broker.bootstrap_servers, **in_group("given")) as consumer:
        consumer.assign([("given", 0), two])
        assert consumer.assignment() == [one, two]
        for given in (
            (one, two),
            ([one, two],),
            (("given", 0), ["given", 1]),
            ([("given", 0), two],),
        ):
            consumer.seek_to_end(*given)
            assert (consumer.position(one), consumer.position(two)) == (3, 3)
            consumer.seek_to_beginning(*given)
            assert (consumer.position(one), consumer.position(("given", 1))) == (0, 0)
            consumer.pause(*given)
            assert consumer.paused() == {one, two}
            consumer.resume(*given)
            assert consumer.paused() == set()
            assert consumer.committed(*given) == {one: None, two: None}
        consumer.commit({one: 2})
        consumer.seek_to_committed()
        assert (consumer.position(one), consumer.position(two)) == (2, 0)
        assert consumer.beginning_offsets(one) == {one: 0}
        assert consumer.end_offsets([one, two]) == {one: 3, two: 3}
        assert consumer.partitions_for_topic("given") == [0, 1]
        assert "given" in consumer.topics()
        since, after = consumer.offsets_for_times({one: 3, two: 100}).values()
        assert since is not None and (since.offset, after) == (2, None)
        assert repr(consumer).startswith("<SyncConsumer 'barnabas', group 'given'")


def test_naive_misuse_is_refused_with_what_to_do(broker: Broker) -> None:
    """CO-2."""
    filled(broker, "naive", 1, b"v")
    with SyncConsumer(broker.bootstrap_servers) as consumer:
        with pytest.raises(ValueError, match="subscribe to topics or assign partitions first"):
            consumer.poll(0)
        with pytest.raises(TypeError, match="topic_partitions: must be a TopicPartition, not str"):
            consumer.assign("naive")  # type: ignore[arg-type]
        consumer.assign(("naive", 0))
        with pytest.raises(ValueError, match="partition naive-1 is not assigned"):
            consumer.pause([("naive", 1)])
        with pytest.raises(ValueError, match="partition naive-1 is not assigned"):
            consumer.getmany(("naive", 1))
        with pytest.raises(ValueError, match="max_records: 0 is not between 1 and"):
            consumer.poll(0, max_records=0)
    for call in (consumer.poll, consumer.topics, consumer.assignment):
        with pytest.raises(ClientClosed):
            call()

    async def run() -> None:
        unstarted = Consumer(broker.bootstrap_servers)
        unstarted.assign(("naive", 0))
        with pytest.raises(ClientClosed, match=r"call start\(\) first"):
            await unstarted.poll(0)
        await unstarted.close()
        with pytest.raises(ClientClosed, match="create a new one"):
            unstarted.assign(("naive", 0))

    asyncio.run(run())
    with pytest.raises(ConfigError, match=r"value\.deserializer: 'jsn' .*did you mean json"):
        SyncConsumer(broker.bootstrap_servers, value_deserializer="jsn")


def test_pr_10_values_are_deserialized_and_a_bad_one_can_be_skipped(broker: Broker) -> None:
    """Names or callables; the error names the place, and the position stays there."""
    (name,) = filled(broker, "typed", 1, b"1", b"{", b"3")
    options: Any = {"bootstrap.servers": broker.bootstrap_servers, "value.deserializer": "json"}
    with SyncConsumer({**options, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign(name)
        assert next(consumer).value == 1
        for _ in range(2):
            with pytest.raises(RecordDeserializationError, match="offset 1 of typed-0") as raised:
                next(consumer)
            assert consumer.position(name) == raised.value.offset == 1
        consumer.seek(name, raised.value.offset + 1)
        assert next(consumer).value == 3


def test_pr_10_interceptors_see_records_and_commits(broker: Broker) -> None:
    """One that raises is skipped."""
    (name,) = filled(broker, "seen", 1, b"a", b"b")
    seen: list[object] = []

    class Failing:
        def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
            raise RuntimeError("no")

    class Upper:
        def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
            return [record._replace(value=record.value.upper()) for record in records]

        def on_commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
            seen.append({each: at.offset for each, at in offsets.items()})

        def close(self) -> None:
            seen.append("closed")

    options = in_group("seen", interceptor_classes=[Failing(), Upper])
    with SyncConsumer(broker.bootstrap_servers, **options) as consumer:
        consumer.assign(name)
        assert [next(consumer).value, next(consumer).value] == [b"A", b"B"]
        consumer.commit()
        assert seen == [{name: 2}]
    assert seen[-1] == "closed"


def test_records_come_as_an_arrow_table(broker: Broker) -> None:
    """CO-1: the same records as by `poll`; positions move past them."""
    pytest.importorskip("pyarrow")
    names = filled(broker, "table", 2, *(b"%d" % n for n in range(300)))
    with SyncProducer(broker.bootstrap_servers) as producer:
        producer.send("table", None, key=b"k", partition=0, timestamp_ms=7, headers=[("h", b"1")])
    with SyncConsumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(names)
        rows: list[dict[str, Any]] = []
        assert next(consumer).offset == 0, "a table begins behind what was read one by one"
        while len(rows) < 300:
            table = consumer.poll_arrow(PATIENCE_MS, with_headers=True)
            assert table.num_rows
            rows += table.to_pylist()
        assert consumer.poll_arrow(0).num_rows == 0
        assert set(consumer.lag().values()) == {0}
    last = rows.pop(next(at for at, row in enumerate(rows) if row["key"]))
    assert last["headers"] == [{"key": "h", "value": b"1"}] and last["value"] is None
    assert last["timestamp"].timestamp() == 0.007
    found = sorted((row["partition"], row["offset"], row["value"]) for row in rows)
    expected = [(n % 2, n // 2, b"%d" % n) for n in range(300)]
    (missing,) = set(expected) - set(found)
    assert len(found) == 299 and missing[1] == 0
    assert {row["topic"] for row in rows} == {"table"}
    assert table.schema.names[:4] == ["topic", "partition", "offset", "timestamp"]


def test_records_come_as_a_frame(broker: Broker) -> None:
    """CO-1: the table as pandas has it, with the dtypes that are documented."""
    pytest.importorskip("pandas")
    (name,) = filled(broker, "frame", 1, b"v", None)
    with SyncProducer(broker.bootstrap_servers) as producer:
        producer.send("frame", b"w", key=b"k", timestamp_ms=7, headers=[("h", b"1")])
    with SyncConsumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(name)
        frame = consumer.poll_pandas(PATIENCE_MS, with_headers=True)
        assert consumer.position(name) == len(frame) == 3
        assert consumer.poll_pandas(0).empty

    async def read() -> Any:
        async with Consumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign(name)
            return await consumer.poll_pandas(PATIENCE_MS)

    assert asyncio.run(read()).equals(frame.drop(columns="headers"))
    assert frame["value"].tolist() == [b"v", None, b"w"]
    assert frame["key"].tolist() == [None, None, b"k"]
    assert frame["offset"].tolist() == [0, 1, 2] and set(frame["topic"]) == {"frame"}
    assert frame["headers"][0] is None and [*frame["headers"][2]] == [{"key": "h", "value": b"1"}]
    assert str(frame["timestamp"][2]) == "1970-01-01 00:00:00.007000+00:00"
    dtypes = frame.dtypes.astype(str)
    assert dtypes["timestamp"] == "datetime64[ms, UTC]" and dtypes["offset"] == "int64"
    assert {dtypes["partition"], dtypes["timestamp_type"]} == {"int32"}
    assert {dtypes["key"], dtypes["value"], dtypes["headers"]} == {"object"}
