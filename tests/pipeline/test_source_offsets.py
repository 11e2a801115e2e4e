"""Which offsets a micro-batch covers (SP-1, SP-4): the stream reader against a broker, no Spark.

`run` does what Spark does: it hands each end back as the next start, in JSON, and reads between.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, ReadMinRows

import barnabas
from barnabas.client import Consumer
from barnabas.errors import ConfigError
from barnabas.records.batch import iterate_batches
from barnabas.testing.embedded.broker import Broker
from barnabas.types import TopicPartition
from pyspark_barnabas.connections import consumers_of_process
from pyspark_barnabas.loss import DataLoss
from pyspark_barnabas.offsets import StreamOffset
from pyspark_barnabas.options import source_options
from pyspark_barnabas.reader import RECORDS_OF_ONE_TASK
from pyspark_barnabas.schema import read_schema
from pyspark_barnabas.stream import TopicStreamReader
from tests.kit.pipeline.topics import NOW_MS, create, delete, numbered, send

ALL = ReadAllAvailable()


@pytest.fixture(autouse=True)
def no_connection_outlives_a_test() -> Iterator[None]:
    yield
    consumers_of_process().close()


class SteppedClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.ms = NOW_MS

    def monotonic_ms(self) -> int:
        return self.ms

    wall_ms = monotonic_ms


def reader_of(
    broker: Broker, clock: SteppedClock | None = None, **options: str
) -> TopicStreamReader:
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers}
    given |= {"startingOffsets": "earliest", **options}
    return TopicStreamReader(source_options(given, streaming=True), read_schema(False), clock)


def next_batch(
    reader: TopicStreamReader, start: dict[str, Any], limit: ReadLimit | None = None
) -> dict[str, Any]:
    end = reader.latestOffset(start, limit or reader.getDefaultReadLimit())
    return dict(json.loads(json.dumps(end)))


def numbers(offset: dict[str, Any]) -> dict[str, Any]:
    """An offset without the ids, which are others in each run."""
    return {name: each for name, each in offset.items() if name != "@ids"}


def values(reader: TopicStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[bytes]:
    return [
        value
        for partition in reader.partitions(start, end)
        for batch in reader.read(partition)
        for value in batch.column("value").to_pylist()
    ]


def test_latest_is_pinned_in_the_first_batchs_end(broker: Broker) -> None:
    """`initialOffset` is called twice and stored nowhere; another process must not differ."""
    create(broker, "pinned", 2)
    send(broker, "pinned", numbered(0, 5))
    first, restarted = (
        reader_of(broker, subscribe="pinned", startingOffsets="latest") for _ in range(2)
    )
    assert first.initialOffset() == first.initialOffset() == restarted.initialOffset() == {}
    end = next_batch(first, {})
    assert numbers(end) == {"@start": {"pinned": {"0": 5, "1": 0}}, "pinned": {"0": 5, "1": 0}}
    assert first.partitions({}, end) == []
    send(broker, "pinned", numbered(5, 8))
    # The query died before its first batch was done: it is planned again from the offset log.
    assert values(restarted, restarted.initialOffset(), end) == []
    assert values(restarted, end, next_batch(restarted, end)) == numbered(5, 8)


def test_a_replay_plans_the_same_ranges_and_reads_the_same_rows(broker: Broker) -> None:
    create(broker, "replay", 2)
    for partition in (0, 1):
        send(broker, "replay", numbered(0, 50), partition)
    first, again = (reader_of(broker, subscribe="replay") for _ in range(2))
    end = next_batch(first, {}, ReadMaxRows(30))
    read = values(first, {}, end)
    send(broker, "replay", numbered(50, 60))
    assert values(again, {}, end) == read
    assert len(read) == 30


def test_nothing_new_is_the_same_offset(broker: Broker) -> None:
    create(broker, "quiet")
    send(broker, "quiet", numbered(0, 3))
    reader = reader_of(broker, subscribe="quiet")
    end = next_batch(reader, {})
    assert json.dumps(next_batch(reader, end)) == json.dumps(end)
    assert reader.reportLatestOffset() == {"quiet": {"0": 3}}


def test_max_offsets_per_trigger_shares_and_loses_nothing(broker: Broker) -> None:
    create(broker, "limited", 3)
    for partition, count in enumerate((90, 9, 1)):
        send(broker, "limited", numbered(0, count), partition)
    reader = reader_of(broker, subscribe="limited", maxOffsetsPerTrigger="20")
    assert reader.getDefaultReadLimit() == ReadMaxRows(20)
    start, read = {}, []
    for _ in range(5):
        end = next_batch(reader, start)
        batch = values(reader, start, end)
        assert len(batch) == 20
        read += batch
        start = end
    assert next_batch(reader, start) == start
    assert sorted(read) == sorted(numbered(0, 90) + numbered(0, 9) + numbered(0, 1))
    assert len(values(reader, {}, next_batch(reader, {}, ALL))) == 100, "Spark may ask for all"


def test_available_now_does_not_look_beyond_its_beginning(broker: Broker) -> None:
    create(broker, "bounded")
    send(broker, "bounded", numbered(0, 10))
    reader = reader_of(broker, subscribe="bounded", maxOffsetsPerTrigger="6")
    reader.prepareForTriggerAvailableNow()
    send(broker, "bounded", numbered(10, 20))
    first = next_batch(reader, {})
    second = next_batch(reader, first)
    assert values(reader, {}, first) + values(reader, first, second) == numbered(0, 10)
    assert next_batch(reader, second) == second
    following = reader_of(broker, subscribe="bounded")
    following.prepareForTriggerAvailableNow()
    assert values(following, second, next_batch(following, second)) == numbered(10, 20)


def test_a_topic_that_comes_while_the_query_runs_is_read_from_its_beginning(
    broker: Broker,
) -> None:
    reader = reader_of(broker, subscribePattern="coming-.*", startingOffsets="latest")
    before = next_batch(reader, {})
    assert before == {"@start": {}}
    create(broker, "coming-1")
    send(broker, "coming-1", numbered(0, 4))
    end = next_batch(reader, before)
    assert numbers(end) == {"@start": {"coming-1": {"0": 0}}, "coming-1": {"0": 4}}
    assert values(reader, before, end) == numbered(0, 4)
    assert next_batch(reader, end) == end


def test_min_offsets_wait_for_the_delay_at_most(broker: Broker) -> None:
    create(broker, "slow")
    send(broker, "slow", numbered(0, 1))
    clock = SteppedClock()
    options = {"minOffsetsPerTrigger": "5", "maxTriggerDelay": "10s", "maxOffsetsPerTrigger": "6"}
    reader = reader_of(broker, clock, subscribe="slow", **options)
    assert reader.getDefaultReadLimit() == ReadMinRows(5)
    start = next_batch(reader, {})
    send(broker, "slow", numbered(1, 4))
    assert next_batch(reader, start) == start
    clock.ms += 10_000
    end = next_batch(reader, start)
    assert values(reader, start, end) == numbered(1, 4), "after the delay what there is"
    send(broker, "slow", numbered(4, 14))
    assert len(values(reader, end, next_batch(reader, end))) == 6
    ending = reader_of(broker, clock, subscribe="slow", **options)
    ending.prepareForTriggerAvailableNow()
    assert next_batch(ending, start) != start, "a run that ends does not wait"


def test_offsets_by_timestamp(broker: Broker) -> None:
    create(broker, "timed", 2)
    send(broker, "timed", numbered(0, 10), 0)
    send(broker, "timed", numbered(0, 3), 1)
    at = str(NOW_MS + 4500)
    with pytest.raises(ConfigError, match="timed-1 has no record with the timestamp"):
        next_batch(reader_of(broker, subscribe="timed", startingTimestamp=at), {})
    latest = {"startingOffsetsByTimestampStrategy": "latest"}
    reader = reader_of(broker, subscribe="timed", startingTimestamp=at, **latest)
    assert values(reader, {}, next_batch(reader, {})) == numbered(5, 10)
    by_partition = json.dumps({"timed": {"0": NOW_MS + 8000, "1": NOW_MS + 2000}})
    reader = reader_of(broker, subscribe="timed", startingOffsetsByTimestamp=by_partition)
    assert values(reader, {}, next_batch(reader, {})) == [b"8", b"9", b"2"]


def test_starting_offsets_must_cover_the_partitions_and_lie_in_the_log(broker: Broker) -> None:
    create(broker, "explicit", 2)
    send(broker, "explicit", numbered(0, 10))
    good = '{"explicit": {"0": 7, "1": -1}}'
    reader = reader_of(broker, subscribe="explicit", startingOffsets=good)
    assert values(reader, {}, next_batch(reader, {})) == numbered(7, 10)
    half = reader_of(broker, subscribe="explicit", startingOffsets='{"explicit": {"0": 7}}')
    with pytest.raises(
        ConfigError,
        match="it has explicit-0, but the subscribed partitions are explicit-0, explicit-1",
    ):
        next_batch(half, {})
    beyond = '{"explicit": {"0": 11, "1": 0}}'
    with pytest.raises(DataLoss, match=r"has 11 for explicit-0.*from 0 to 10"):
        next_batch(reader_of(broker, subscribe="explicit", startingOffsets=beyond), {})


def test_a_topic_that_is_not_there_is_named(broker: Broker) -> None:
    with pytest.raises(ConfigError, match="absent not found"):
        next_batch(reader_of(broker, subscribe="absent"), {})


def test_assigned_partitions_only(broker: Broker) -> None:
    create(broker, "assigned", 3)
    for partition in range(3):
        send(broker, "assigned", [b"%d" % partition], partition)
    reader = reader_of(broker, assign='{"assigned": [0, 2]}')
    assert values(reader, {}, next_batch(reader, {})) == [b"0", b"2"]


def test_a_deleted_topic_is_a_loss(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    create(broker, "kept")
    create(broker, "deleted")
    send(broker, "deleted", numbered(0, 5))
    subscribe = {"subscribe": "kept,deleted"}
    end = next_batch(reader_of(broker, **subscribe), {})
    delete(broker, "deleted")
    with pytest.raises(
        DataLoss, match=r"deleted-0: deleted, or no longer.*failOnDataLoss to false"
    ):
        next_batch(reader_of(broker, **subscribe), end)
    lenient = reader_of(broker, **subscribe, failOnDataLoss="false")
    with caplog.at_level(logging.WARNING):
        after = next_batch(lenient, end)
    assert "deleted-0" in caplog.text
    assert numbers(after) == {"kept": {"0": 0}}


def test_a_topic_deleted_between_plan_and_read_is_a_loss(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """Of the batch that was planned, and of each of its replays: with failOnDataLoss=false it ends
    without those rows."""
    create(broker, "gone")
    send(broker, "gone", numbered(0, 5))
    end = next_batch(reader_of(broker, subscribe="gone"), {})
    delete(broker, "gone")
    with pytest.raises(DataLoss, match=r"offsets 0 to 5 of gone-0 .* deleted.*failOnDataLoss"):
        values(reader_of(broker, subscribe="gone"), {}, end)
    lenient = reader_of(broker, subscribe="gone", failOnDataLoss="false")
    with caplog.at_level(logging.WARNING):
        assert values(lenient, {}, end) == []
    assert "gone-0" in caplog.text


def test_only_the_subscribed_topics_are_asked_for(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster may have many thousands, and a query asks at each trigger."""
    asked: list[object] = []
    original = Consumer.list_topics

    async def list_topics(self: Consumer, topics: object = None) -> dict[str, list[int]]:
        asked.append(topics)
        return await original(self, topics)  # type: ignore[arg-type]

    create(broker, "asked-for", 2)
    monkeypatch.setattr(Consumer, "list_topics", list_topics)
    for options in ({"subscribe": "asked-for"}, {"assign": '{"asked-for": [0, 1]}'}):
        end = next_batch(reader_of(broker, **options), {})
        assert StreamOffset.from_json(end).positions.keys() == {("asked-for", 0), ("asked-for", 1)}
    assert [list(topics or ()) for topics in asked] == [["asked-for"], ["asked-for"]]  # type: ignore[call-overload]


def remake(broker: Broker, topic: str, values: list[bytes]) -> None:
    delete(broker, topic)
    create(broker, topic)
    send(broker, topic, values)


def test_a_topic_made_again_is_a_loss(broker: Broker) -> None:
    create(broker, "again")
    send(broker, "again", numbered(0, 5))
    end = next_batch(reader_of(broker, subscribe="again"), {})
    remake(broker, "again", [b"new"])
    with pytest.raises(DataLoss, match="again: deleted and created again"):
        next_batch(reader_of(broker, subscribe="again"), end)
    with pytest.raises(DataLoss, match="up to offset 5, but its log now ends at 1"):
        next_batch(reader_of(broker, subscribe="again"), numbers(end))
    lenient = reader_of(broker, subscribe="again", failOnDataLoss="false")
    assert values(lenient, end, next_batch(lenient, end)) == [b"new"]


def test_a_topic_made_again_that_has_grown_past_the_old_position_is_a_loss(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """By its id alone: the position lies within the new log, five of whose records would be skipped
    without a word."""
    create(broker, "grown")
    send(broker, "grown", numbered(0, 5))
    end = next_batch(reader_of(broker, subscribe="grown"), {})
    remake(broker, "grown", numbered(100, 110))
    with pytest.raises(DataLoss, match=r"grown: deleted and created again.*failOnDataLoss"):
        next_batch(reader_of(broker, subscribe="grown"), end)
    lenient = reader_of(broker, subscribe="grown", failOnDataLoss="false")
    with caplog.at_level(logging.WARNING):
        after = next_batch(lenient, end)
    assert "created again" in caplog.text
    assert values(lenient, end, after) == numbered(100, 110)
    assert next_batch(lenient, after) == after, "said once"


def test_a_topic_made_again_that_is_as_long_as_before_is_a_loss(broker: Broker) -> None:
    create(broker, "as-long")
    end = next_batch(reader_of(broker, subscribe="as-long"), {})
    remake(broker, "as-long", [])
    with pytest.raises(DataLoss, match="as-long: deleted and created again"):
        next_batch(reader_of(broker, subscribe="as-long"), end)
    lenient = reader_of(broker, subscribe="as-long", failOnDataLoss="false")
    after = next_batch(lenient, end)
    assert numbers(after) == {"as-long": {"0": 0}}
    assert next_batch(lenient, after) == after != end


def test_a_batch_that_was_planned_reads_no_other_topics_records(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor does its replay."""
    create(broker, "other")
    send(broker, "other", numbered(0, 5))
    end = next_batch(reader_of(broker, subscribe="other"), {})
    remake(broker, "other", numbered(100, 110))
    with pytest.raises(DataLoss, match=r"offsets 0 to 5 of other-0 .* deleted"):
        values(reader_of(broker, subscribe="other"), {}, end)
    lenient = reader_of(broker, subscribe="other", failOnDataLoss="false")
    with caplog.at_level(logging.WARNING):
        assert values(lenient, {}, end) == []
    assert "other-0" in caplog.text


def test_a_checkpoint_without_ids_goes_on_and_gets_them(broker: Broker) -> None:
    """The connector's, or one of an earlier version; with topicIds=false it stays so."""
    create(broker, "without")
    send(broker, "without", numbered(0, 5))
    before = {"without": {"0": 3}}
    plain = reader_of(broker, subscribe="without", topicIds="false")
    assert next_batch(plain, before) == {"without": {"0": 5}}
    reader = reader_of(broker, subscribe="without")
    end = next_batch(reader, before)
    assert numbers(end) == {"without": {"0": 5}} != end
    assert values(reader, before, end) == numbered(3, 5)
    assert next_batch(reader, numbers(end)) == numbers(end), "no batch for the ids alone"
    remake(broker, "without", numbered(0, 9))
    assert next_batch(plain, end) == {"without": {"0": 9}}, "the ids are not looked at"


SEGMENTED = {"log.segment.bytes": "2000"}


def segments(directory: Path, topic: str) -> list[Path]:
    return sorted((directory / f"{topic}-0").glob("*.log"))


def test_records_below_the_logs_start_are_a_loss(tmp_path: Path) -> None:
    """As retention leaves a log: its first segments are gone."""
    with barnabas.Broker(tmp_path, config=SEGMENTED) as broker:
        create(broker, "lost")
        for number in range(6):
            send(broker, "lost", [b"%d" % number * 900])
        reader = reader_of(broker, subscribe="lost")
        end = next_batch(reader, {}, ReadMaxRows(1))
        planned = next_batch(reader, {}, ALL)
        reader.stop()
    first, second, *_ = segments(tmp_path, "lost")
    for file in (tmp_path / "lost-0").glob(f"{first.stem}.*"):
        file.unlink()
    log_start = int(second.stem)
    assert log_start > 1
    with barnabas.Broker(tmp_path, config=SEGMENTED) as broker:
        strict = reader_of(broker, subscribe="lost")
        lenient = reader_of(broker, subscribe="lost", failOnDataLoss="false")
        with pytest.raises(DataLoss, match=f"offsets 1 to {log_start} of lost-0 were deleted"):
            next_batch(strict, end)
        after = next_batch(lenient, end)
        assert numbers(after) == {"@start": {"lost": {"0": log_start}}, "lost": {"0": 6}}
        kept = [b"%d" % number * 900 for number in range(log_start, 6)]
        assert values(lenient, end, after) == kept
        # Planned before the loss, read after it.
        with pytest.raises(
            DataLoss, match=f"offsets 0 to 6 of lost-0.*has offsets from {log_start} to"
        ):
            values(strict, {}, planned)
        assert values(lenient, {}, planned) == kept


def test_a_gap_inside_the_log_is_no_loss(tmp_path: Path) -> None:
    """As compaction leaves a log: batches are gone from the middle of a segment."""
    with barnabas.Broker(tmp_path) as broker:
        create(broker, "gap")
        for number in range(6):
            send(broker, "gap", [b"%d" % number])
    (segment,) = segments(tmp_path, "gap")
    data = segment.read_bytes()
    kept = [
        data[position : position + header.size_bytes]
        for position, header in iterate_batches(data)
        if header.base_offset not in (0, 2, 3)
    ]
    segment.write_bytes(b"".join(kept))
    with barnabas.Broker(tmp_path) as broker:
        reader = reader_of(broker, subscribe="gap", maxOffsetsPerTrigger="3")
        first = next_batch(reader, {})
        second = next_batch(reader, first)
        assert values(reader, {}, first) == [b"1"]
        assert values(reader, first, second) == [b"4", b"5"]


def test_ranges_are_cut_for_more_tasks(broker: Broker) -> None:
    create(broker, "cut", 2)
    send(broker, "cut", numbered(0, 100), 0)
    send(broker, "cut", numbered(0, 10), 1)
    reader = reader_of(broker, subscribe="cut", maxRecordsPerPartition="40")
    end = next_batch(reader, {})
    ranges = [each for partition in reader.partitions({}, end) for each in partition.value]
    assert [(each.start, each.end) for each in ranges] == [(0, 33), (33, 66), (66, 100), (0, 10)]
    assert ranges[0].topic_partition == TopicPartition("cut", 0)
    assert values(reader, {}, end) == numbered(0, 100) + numbered(0, 10)


def packed_values(
    reader: TopicStreamReader, start: dict[str, Any], end: dict[str, Any]
) -> list[list[bytes]]:
    """The values of each task, whose rows are packed."""
    return [
        sorted(
            value
            for batch in reader.read(partition)
            for stream in batch.column("batch").to_pylist()
            for value in pa.ipc.open_stream(stream).read_all().column("value").to_pylist()
        )
        for partition in reader.partitions(start, end)
    ]


def packed_reader(broker: Broker, **options: str) -> TopicStreamReader:
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers}
    given |= {"startingOffsets": "earliest", "recordBatches": "true", **options}
    return TopicStreamReader(source_options(given, streaming=True), read_schema(False, True))


def test_packed_ranges_with_few_records_share_a_task(broker: Broker) -> None:
    create(broker, "small", 3)
    create(broker, "large", 1)
    for partition in range(3):
        send(broker, "small", numbered(10 * partition, 10 * partition + 10), partition)
    send(broker, "large", numbered(0, RECORDS_OF_ONE_TASK))
    reader = packed_reader(broker, subscribe="small,large")
    end = next_batch(reader, {})
    assert packed_values(reader, {}, end) == [
        sorted(numbered(0, RECORDS_OF_ONE_TASK)),
        sorted(numbered(0, 30)),
    ]
    reader = packed_reader(broker, subscribe="small", maxRecordsPerPartition="5")
    tasks = packed_values(reader, {}, next_batch(reader, {}))
    assert [len(each) for each in tasks] == [5] * 6, "the user has set the size of a task"


def test_a_loss_in_a_packed_task_leaves_the_other_ranges_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One partition has lost its first segment, one its last, one is deleted, and one is whole."""
    topics = ["begun", "deleted", "ended", "whole"]
    given = {"subscribe": ",".join(topics), "kafkaConsumer.pollTimeoutMs": "400"}
    with barnabas.Broker(tmp_path, config=SEGMENTED) as broker:
        for topic in topics:
            create(broker, topic)
            for number in range(6):
                send(broker, topic, [b"%s %d" % (topic.encode(), number) * 150])
        reader = packed_reader(broker, **given)
        end = next_batch(reader, {})
        assert len(reader.partitions({}, end)) == 1
        (intact,) = packed_values(reader, {}, end)
        reader.stop()
        delete(broker, "deleted")
    first, second, *_ = segments(tmp_path, "begun")
    for file in (tmp_path / "begun-0").glob(f"{first.stem}.*"):
        file.unlink()
    begun_at, ended_at = int(second.stem), cut_behind(tmp_path, "ended")
    kept = {"begun": range(begun_at, 6), "ended": range(ended_at), "whole": range(6)}
    with barnabas.Broker(tmp_path, config=SEGMENTED) as broker:
        with pytest.raises(DataLoss):
            packed_values(packed_reader(broker, **given), {}, end)
        lenient = packed_reader(broker, **given, failOnDataLoss="false")
        with caplog.at_level(logging.WARNING):
            (found,) = packed_values(lenient, {}, end)
    assert len(intact) == 24
    assert found == [b"%s %d" % (topic.encode(), n) * 150 for topic in kept for n in kept[topic]]
    for text in (f"log has offsets from {begun_at}", f"ends at {ended_at}", "deleted-0 cannot"):
        assert text in caplog.text


def cut_behind(directory: Path, topic: str) -> int:
    """As an unclean leader election leaves a log, or a disk from a copy: its last segments are
    gone, and the topic is the same. Returns where it ends now."""
    _, *lost = segments(directory, topic)[-3:]
    assert len(lost) == 2
    for file in (each for segment in lost for each in segment.parent.glob(f"{segment.stem}.*")):
        file.unlink()
    return int(lost[0].stem)


@pytest.mark.parametrize("ids", ["true", "false"])
def test_a_log_that_ends_below_the_position_is_a_loss(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, ids: str
) -> None:
    """Of a topic that is known to be the same, nothing is read again: as the connector, the query
    goes on at the end. If the id is unknown, the topic may be another one: its records are new."""
    given = {"subscribe": "short", "topicIds": ids, "kafkaConsumer.pollTimeoutMs": "400"}
    with barnabas.Broker(tmp_path, config=SEGMENTED) as broker:
        create(broker, "short")
        for number in range(6):
            send(broker, "short", [b"%d" % number * 900])
        reader = reader_of(broker, **given)
        half, whole = next_batch(reader, {}, ReadMaxRows(1)), next_batch(reader, {}, ALL)
        rest = next_batch(reader, half, ALL)
        reader.stop()
    log_end = cut_behind(tmp_path, "short")
    kept = [b"%d" % number * 900 for number in range(log_end)]
    assert 1 < log_end < 6
    with barnabas.Broker(tmp_path, config=SEGMENTED) as broker:
        strict, lenient = reader_of(broker, **given), reader_of(
            broker, **given, failOnDataLoss="false"
        )  # fmt: skip
        reason = "it is the same topic" if ids == "true" else "deleted and created again, or"
        with pytest.raises(
            DataLoss, match=rf"short-0.*offset 6.*now ends at {log_end}.*{reason}.*failOnDataLoss"
        ):
            next_batch(strict, whole)
        with caplog.at_level(logging.WARNING):
            after = next_batch(lenient, whole)
        assert "now ends at" in caplog.text
        again = [] if ids == "true" else kept
        assert values(lenient, whole, after) == again
        # A batch that was planned before: what is left of it, without a wait for the rest.
        for start, end, left in (({}, whole, kept), (half, rest, kept[1:])):
            caplog.clear()
            with pytest.raises(DataLoss, match=rf"to 6 of short-0.*now ends at {log_end}"):
                values(strict, start, end)
            assert values(lenient, start, end) == left
            assert "now ends at" in caplog.text
        send(broker, "short", [b"new"])
        follow = next_batch(lenient, after)
        assert values(lenient, after, follow) == [b"new"]
        assert next_batch(lenient, follow) == follow
