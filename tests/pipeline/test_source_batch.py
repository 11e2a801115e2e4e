"""`spark.read.format("barnabas")` (SP-1): by name alone, with the connector's schema."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from barnabas.client.producer.batch import ProducerRecord
from barnabas.testing.embedded.broker import Broker
from pyspark_barnabas.schema import arrow_schema, read_schema
from tests.kit.pipeline.topics import NOW_MS, create, numbered, send, send_records


def read(spark: SparkSession, broker: Broker, **options: Any) -> DataFrame:
    reader = spark.read.format("barnabas").options(**options)
    return reader.option("kafka.bootstrap.servers", broker.bootstrap_servers).load()


def texts(frame: DataFrame) -> list[str]:
    rows = frame.orderBy("topic", "partition", "offset").selectExpr("cast(value as string)")
    return [row[0] for row in rows.collect()]


@pytest.mark.parametrize("include_headers", [False, True])
def test_our_arrow_schema_is_what_spark_makes_of_the_columns(include_headers: bool) -> None:
    ours = arrow_schema(include_headers)
    assert ours.equals(to_arrow_schema(read_schema(include_headers), timezone="UTC"))


def test_rows_have_the_connectors_columns(spark: SparkSession, broker: Broker) -> None:
    create(broker, "columns", 2)
    send_records(
        broker,
        [
            ProducerRecord("columns", b"v", b"k", 1, NOW_MS, (("h", b"1"), ("h", None))),
            ProducerRecord("columns", None, None, 1, NOW_MS + 1),
        ],
    )
    frame = read(spark, broker, subscribe="columns", includeHeaders=True)
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    full, empty = (row.asDict(recursive=True) for row in frame.orderBy("offset").collect())
    at = full.pop("timestamp")
    assert at.astimezone(datetime.UTC).timestamp() * 1000 == NOW_MS
    assert full == {
        "key": b"k",
        "value": b"v",
        "topic": "columns",
        "partition": 1,
        "offset": 0,
        "timestampType": 0,
        "headers": [{"key": "h", "value": b"1"}, {"key": "h", "value": None}],
    }
    assert (empty["key"], empty["value"], empty["headers"]) == (None, None, None)
    assert "headers" not in read(spark, broker, subscribe="columns").columns


def test_rows_may_come_packed(spark: SparkSession, broker: Broker) -> None:
    """`recordBatches`: the same rows, as Arrow IPC streams that Spark does not look into."""
    create(broker, "packed", 2)
    for partition in (0, 1):
        send(broker, "packed", numbered(0, 20_000), partition)
    plain = read(spark, broker, subscribe="packed", includeHeaders=True)
    packed = read(spark, broker, subscribe="packed", includeHeaders=True, recordBatches=True)
    assert packed.schema.simpleString() == "struct<batch:binary>"
    streams = [bytes(row["batch"]) for row in packed.collect()]
    tables = [pa.ipc.open_stream(stream).read_all() for stream in streams]
    rows = pa.concat_tables(tables)
    assert 2 <= len(streams) <= 8
    assert rows.schema == arrow_schema(include_headers=True)
    order = [("partition", "ascending"), ("offset", "ascending")]
    assert rows.sort_by(order).equals(plain.toArrow().cast(rows.schema).sort_by(order))


def test_bounds(spark: SparkSession, broker: Broker) -> None:
    create(broker, "bounds", 2)
    send(broker, "bounds", numbered(0, 10), 0)
    send(broker, "bounds", numbered(10, 20), 1)

    def bounded(**options: object) -> list[str]:
        given = {name: text if isinstance(text, str) else json.dumps(text)
                 for name, text in options.items()}  # fmt: skip
        return texts(read(spark, broker, subscribe="bounds", **given))

    everything = [str(number) for number in range(20)]
    assert bounded() == everything
    assert bounded(
        startingOffsets={"bounds": {"0": 8, "1": -2}}, endingOffsets={"bounds": {"0": -1, "1": 1}}
    ) == ["8", "9", "10"]
    assert bounded(startingTimestamp=str(NOW_MS + 2000), endingTimestamp=str(NOW_MS + 4000)) == [
        "2",
        "3",
        "12",
        "13",
    ]
    assert bounded(startingTimestamp=str(NOW_MS + 8500)) == ["9", "19"]
    assert (
        bounded(endingOffsetsByTimestamp={"bounds": {"0": NOW_MS, "1": NOW_MS + 10**9}})
        == (everything[10:])
    )


def test_several_topics_and_patterns(spark: SparkSession, broker: Broker) -> None:
    for name in ("many-a", "many-b", "many-c"):
        send(broker, create(broker, name), [name.encode()])
    assert texts(read(spark, broker, subscribe="many-a,many-c")) == ["many-a", "many-c"]
    assert texts(read(spark, broker, subscribePattern="many-[bc]")) == ["many-b", "many-c"]
    assert texts(read(spark, broker, subscribePattern="many")) == [], "the whole name must match"
    assert texts(read(spark, broker, assign='{"many-b": [0]}')) == ["many-b"]


def test_ranges_become_tasks(spark: SparkSession, broker: Broker) -> None:
    create(broker, "tasks")
    send(broker, "tasks", numbered(0, 1000))
    frame = read(spark, broker, subscribe="tasks", minPartitions=4)
    assert frame.rdd.getNumPartitions() == 4
    assert texts(frame) == [str(number) for number in range(1000)]
    assert read(spark, broker, subscribe="tasks").limit(3).count() == 3, "a reader left early"
    assert texts(read(spark, broker, subscribe="tasks"))[-1] == "999"


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_codecs(spark: SparkSession, broker: Broker, codec: str) -> None:
    create(broker, f"codec-{codec}", configs={"compression.type": codec})
    send(broker, f"codec-{codec}", numbered(0, 300))
    assert len(texts(read(spark, broker, subscribe=f"codec-{codec}"))) == 300


def test_a_view_in_sql_and_why_not_a_table(spark: SparkSession, broker: Broker) -> None:
    """Spark 4.3 keeps a table's options from a source in Python, so there is nothing to read."""
    send(broker, create(broker, "viewed"), numbered(0, 4))
    options = f"(`kafka.bootstrap.servers` '{broker.bootstrap_servers}', subscribe 'viewed')"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW viewed USING barnabas OPTIONS {options}")
    [row] = spark.sql("SELECT count(*), max(cast(value AS string)) FROM viewed").collect()
    assert tuple(row) == (4, "3")
    with pytest.raises(PySparkException, match="Use CREATE TEMPORARY VIEW"):
        spark.sql(f"CREATE TABLE kept USING barnabas OPTIONS {options}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "x", "maxOffsetPerTrigger": 5}, "did you mean maxOffsetsPerTrigger"),
        ({}, "nothing to read"),
        ({"subscribe": "x", "kafka.bootstrap.servers": "nowhere"}, "'nowhere' is not HOST:PORT"),
    ],
)
def test_wrong_options_show_at_load(
    spark: SparkSession, broker: Broker, options: dict[str, Any], message: str
) -> None:
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, **options}
    with pytest.raises(PySparkException, match=message):
        spark.read.format("barnabas").options(**given).load()


def test_what_is_wrong_with_a_batch_shows_when_it_is_planned(
    spark: SparkSession, broker: Broker
) -> None:
    create(broker, "present")
    with pytest.raises(PySparkException, match="startingOffsets=latest would read nothing"):
        read(spark, broker, subscribe="present", startingOffsets="latest").count()
    with pytest.raises(PySparkException, match="absent not found: create the topic first"):
        read(spark, broker, subscribe="absent").count()
    schema = StructType.fromDDL("value string")
    reader = spark.read.format("barnabas").schema(schema).option("subscribe", "present")
    with pytest.raises(PySparkException, match="accepts no other"):
        reader.option("bootstrap.servers", broker.bootstrap_servers).load().count()
