"""`spark.readStream.format("barnabas")` under Spark's own engine (SP-1, SP-4)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from barnabas.client.admin.admin import NewTopic
from barnabas.client.producer.batch import ProducerRecord
from barnabas.client.sync.producer import SyncAdmin
from barnabas.testing.embedded.broker import Broker
from tests.kit.pipeline.topics import create, delete, numbered, send, send_records

Batches = dict[int, list[str]]

PATIENCE_S = 240


class Query:
    """A query whose batches are collected on the driver, by batch id."""

    def __init__(self, spark: SparkSession, broker: Broker, checkpoint: Path) -> None:
        self.spark = spark
        self.broker = broker
        self.checkpoint = checkpoint
        self.batches: Batches = {}
        self.fail_in: int | None = None

    def start(self, trigger: dict[str, Any], **options: Any) -> StreamingQuery:
        given = {"kafka.bootstrap.servers": self.broker.bootstrap_servers}
        given |= {"startingOffsets": "earliest", **options}
        stream = self.spark.readStream.format("barnabas").options(**given).load()
        writer = stream.selectExpr("cast(value as string)").writeStream.foreachBatch(self._keep)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        return writer.trigger(**trigger).start()

    def run_to_end(self, **options: Any) -> StreamingQuery:
        query = self.start({"availableNow": True}, **options)
        assert query.awaitTermination(PATIENCE_S)
        return query

    def rows(self) -> list[str]:
        return [row for number in sorted(self.batches) for row in self.batches[number]]

    def _keep(self, frame: DataFrame, batch_id: int) -> None:
        self.batches[batch_id] = [row[0] for row in frame.collect()]
        if batch_id == self.fail_in:
            raise RuntimeError("the sink failed")


@pytest.fixture
def query(spark: SparkSession, broker: Broker, tmp_path: Path) -> Iterator[Query]:
    yield Query(spark, broker, tmp_path / "checkpoint")
    for active in spark.streams.active:
        active.stop()


def wait_until(condition: Callable[[], bool], running: StreamingQuery) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert running.exception() is None
        assert time.monotonic() < deadline, "the query did not get there"
        time.sleep(0.05)


def texts(start: int, end: int) -> list[str]:
    return [str(number) for number in range(start, end)]


def test_available_now_in_several_batches_reads_each_row_once(query: Query) -> None:
    create(query.broker, "once", 2)
    send(query.broker, "once", numbered(0, 60), 0)
    send(query.broker, "once", numbered(60, 100), 1)
    options = {"subscribe": "once", "maxOffsetsPerTrigger": 30}
    query.run_to_end(**options)
    assert [len(query.batches[number]) for number in sorted(query.batches)] == [30, 30, 30, 10]
    assert Counter(query.rows()) == Counter(texts(0, 100))
    # Restarted on its checkpoint, the query goes on where it ended.
    query.batches.clear()
    send(query.broker, "once", numbered(100, 105), 1)
    query.run_to_end(**options)
    assert query.rows() == texts(100, 105)
    query.batches.clear()
    query.run_to_end(**options)
    assert query.rows() == []


def test_a_batch_that_failed_is_replayed_with_the_same_rows(query: Query) -> None:
    create(query.broker, "replayed")
    send(query.broker, "replayed", numbered(0, 50))
    options = {"subscribe": "replayed", "maxOffsetsPerTrigger": 20}
    query.fail_in = 1
    with pytest.raises(StreamingQueryException, match="the sink failed"):
        query.run_to_end(**options)
    failed = dict(query.batches)
    send(query.broker, "replayed", numbered(50, 60))
    query.fail_in = None
    query.batches.clear()
    query.run_to_end(**options)
    assert query.batches[1] == failed[1] == texts(20, 40)
    assert failed[0] + query.rows() == texts(0, 60)


def test_a_query_that_starts_at_the_end_misses_nothing_after_its_start(query: Query) -> None:
    """The first batch fails; what came since belongs to the query all the same."""
    create(query.broker, "latest")
    send(query.broker, "latest", numbered(0, 10))
    options = {"subscribe": "latest", "startingOffsets": "latest"}
    query.fail_in = 0
    with pytest.raises(StreamingQueryException):
        query.run_to_end(**options)
    assert query.rows() == []
    send(query.broker, "latest", numbered(10, 15))
    query.fail_in = None
    query.run_to_end(**options)
    assert query.rows() == texts(10, 15)


def test_a_running_query_follows_its_topics_and_finds_new_ones(query: Query) -> None:
    create(query.broker, "running-1")
    running = query.start({"processingTime": "0 seconds"}, subscribePattern="running-.*")
    send(query.broker, "running-1", numbered(0, 3))
    wait_until(lambda: len(query.rows()) == 3, running)
    create(query.broker, "running-2", 2)
    send(query.broker, "running-2", numbered(3, 6), 1)
    wait_until(lambda: len(query.rows()) == 6, running)
    send(query.broker, "running-1", numbered(6, 7))
    wait_until(lambda: len(query.rows()) == 7, running)
    running.processAllAvailable()
    source = running.lastProgress["sources"][0]
    running.stop()
    assert query.rows() == texts(0, 7)
    assert '"running-1":{"0":4}' in source["endOffset"].replace(" ", "")
    assert '"running-2":{"0":0,"1":3}' in source["latestOffset"].replace(" ", "")


def test_a_running_query_finds_partitions_that_are_added(query: Query) -> None:
    """`subscribe` names topics, and means whatever partitions they have (CreatePartitions)."""
    create(query.broker, "growing")
    running = query.start({"processingTime": "0 seconds"}, subscribe="growing")
    send(query.broker, "growing", numbered(0, 3))
    wait_until(lambda: len(query.rows()) == 3, running)
    with SyncAdmin(query.broker.bootstrap_servers) as admin:
        admin.create_partitions("growing", 3)
    send(query.broker, "growing", numbered(3, 8), 2)
    wait_until(lambda: len(query.rows()) == 8, running)
    running.processAllAvailable()
    assert sorted(query.rows(), key=int) == texts(0, 8)
    source = running.lastProgress["sources"][0]
    running.stop()
    assert '"growing":{"0":3,"1":0,"2":5}' in source["endOffset"].replace(" ", "")


def test_many_small_topics_under_one_pattern(query: Query) -> None:
    topics = [f"small-{number}" for number in range(50)]
    with SyncAdmin(query.broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, 1) for topic in topics])
    records = [ProducerRecord(topics[row // 3], b"%d" % row, None, 0) for row in range(150)]
    send_records(query.broker, records)
    query.run_to_end(subscribePattern="small-.*", maxOffsetsPerTrigger=60)
    assert [len(query.batches[number]) for number in sorted(query.batches)] == [60, 60, 30]
    assert sorted(query.rows(), key=int) == texts(0, 150)


def test_a_deleted_topic_stops_the_query_with_advice(query: Query) -> None:
    create(query.broker, "doomed")
    send(query.broker, "doomed", numbered(0, 3))
    query.run_to_end(subscribePattern="doomed")
    delete(query.broker, "doomed")
    with pytest.raises(StreamingQueryException, match="set the option failOnDataLoss to false"):
        query.run_to_end(subscribePattern="doomed")
    query.run_to_end(subscribePattern="doomed", failOnDataLoss=False)
    assert query.rows() == texts(0, 3)


def test_ending_options_are_refused_in_a_stream(query: Query) -> None:
    create(query.broker, "endless")
    with pytest.raises(StreamingQueryException, match="endingOffsets is for batch queries"):
        query.run_to_end(subscribe="endless", endingOffsets="latest")
