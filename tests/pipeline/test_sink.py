"""Writing topics from Spark (SP-1): the connector's write schema, at least once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from barnabas.testing.embedded.broker import Broker
from tests.kit.pipeline.topics import create, numbered, records_of, send

ROWS = (
    "key string, value string, topic string, partition int,"
    " headers array<struct<key: string, value: binary>>"
)


def write(frame: DataFrame, broker: Broker, **options: Any) -> None:
    writer = frame.write.format("barnabas").mode("append").options(**options)
    writer.option("kafka.bootstrap.servers", broker.bootstrap_servers).save()


def test_every_column_reaches_the_record(spark: SparkSession, broker: Broker) -> None:
    create(broker, "all-columns", 3)
    headers = [("h", b"1"), ("h", None)]
    frame = spark.createDataFrame(
        [("k", "v", "all-columns", 2, headers), (None, None, "all-columns", 2, None)], ROWS
    ).coalesce(1)
    write(frame, broker)
    full, empty = records_of(broker, "all-columns", 2)
    assert (full.key, full.value, full.headers) == (b"k", b"v", (("h", b"1"), ("h", None)))
    assert (empty.key, empty.value, empty.headers) == (None, None, ())


def test_a_topic_round_trip(spark: SparkSession, broker: Broker) -> None:
    """What was read can be written: columns that a record does not have are left out."""
    create(broker, "from", 2)
    create(broker, "to")
    for partition in (0, 1):
        send(broker, "from", numbered(0, 5000), partition)
    source = spark.read.format("barnabas").option("subscribe", "from")
    frame = source.option("kafka.bootstrap.servers", broker.bootstrap_servers).load()
    write(frame.drop("partition"), broker, topic="to", **{"kafka.compression.type": "lz4"})
    written = sorted(record.value or b"" for record in records_of(broker, "to"))
    assert written == sorted(numbered(0, 5000) * 2)


def test_a_stream_is_written_through(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    create(broker, "stream-in", 2)
    create(broker, "stream-out")
    servers = {"kafka.bootstrap.servers": broker.bootstrap_servers}

    def run() -> None:
        source = spark.readStream.format("barnabas").options(**servers, subscribe="stream-in")
        source = source.option("startingOffsets", "earliest")
        frame = source.option("maxOffsetsPerTrigger", 40).load()
        sink = frame.selectExpr("'stream-out' as topic", "value").writeStream.format("barnabas")
        sink = sink.options(**servers, checkpointLocation=str(tmp_path / "checkpoint"))
        assert sink.trigger(availableNow=True).start().awaitTermination(240)

    send(broker, "stream-in", numbered(0, 100))
    run()
    send(broker, "stream-in", numbered(100, 120), 1)
    run()
    written = sorted(int(record.value or b"") for record in records_of(broker, "stream-out"))
    assert written == list(range(120))


def test_mistakes_are_named(spark: SparkSession, broker: Broker) -> None:
    create(broker, "strict", 1)

    def fails(columns: str, message: str, **options: Any) -> None:
        frame = spark.sql(f"select {columns}")
        with pytest.raises(PySparkException, match=message):
            write(frame, broker, **options)

    fails("'k' as key", "a column named value is missing", topic="strict")
    fails("'v' as value", "no topic to write to")
    fails("1 as value", "column value is int, but must be binary or string", topic="strict")
    fails("'v' as value, 1L as partition", "column partition is bigint, but must be int", topic="x")
    fails("'v' as value, cast(null as string) as topic", "a row's topic is null")
    fails("'v' as value", "has no option 'subscribe'", topic="strict", subscribe="strict")
    fails("'v' as value, 7 as partition", "7", topic="strict")
    overwriting = spark.sql("select 'v' as value").write.format("barnabas").mode("overwrite")
    overwriting = overwriting.option("bootstrap.servers", broker.bootstrap_servers)
    with pytest.raises(PySparkException, match="a topic cannot be overwritten"):
        overwriting.option("topic", "strict").save()


def test_a_record_that_is_refused_fails_the_query(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    create(broker, "small-in")
    create(broker, "small", configs={"max.message.bytes": "1000"})
    send(broker, "small-in", [b"x" * 5000])
    servers = {"kafka.bootstrap.servers": broker.bootstrap_servers}
    source = spark.readStream.format("barnabas").options(**servers, subscribe="small-in")
    frame = source.option("startingOffsets", "earliest").load()
    sink = frame.select("value").writeStream.format("barnabas").options(**servers, topic="small")
    sink = sink.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    with pytest.raises(StreamingQueryException, match=r"(?i)large"):
        sink.start().awaitTermination(240)


def test_rows_of_several_topics_and_with_headers_keep_their_order(
    spark: SparkSession, broker: Broker
) -> None:
    """Columns where they will do, records where not: of a key all rows are in one order."""
    for topic in ("mixed-a", "mixed-b"):
        create(broker, topic, 2)
    rows = [("k", str(number), f"mixed-{'ab'[number % 2]}", None, None) for number in range(1000)]
    frame = spark.createDataFrame(rows, ROWS).coalesce(1)
    write(frame.drop("headers"), broker)
    given = spark.createDataFrame([("k", "x", "mixed-a", None, [("h", b"1")])], ROWS)
    write(given.union(frame).coalesce(1), broker, **{"kafka.compression.type": "lz4"})
    numbers = {"mixed-a": range(0, 1000, 2), "mixed-b": range(1, 1000, 2)}
    for topic, expected in numbers.items():
        found = [record for record in records_of(broker, topic) if record.headers == ()]
        assert {record.key for record in found} == {b"k"}
        assert [int(record.value or b"") for record in found] == [*expected] * 2


def test_a_partition_per_row_is_kept(spark: SparkSession, broker: Broker) -> None:
    create(broker, "placed", 3)
    frame = spark.range(900).selectExpr(
        "cast(id as string) as value", "cast(id % 3 as int) as partition"
    )
    write(frame, broker, topic="placed")
    for partition in range(3):
        found = sorted(
            int(record.value or b"") for record in records_of(broker, "placed", partition)
        )
        assert found == [*range(partition, 900, 3)]
