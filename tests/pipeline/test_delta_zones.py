"""SP-3: tables partitioned by times, from sessions whose zone is not UTC."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import deltalake
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql import DataFrame, SparkSession

from barnabas.client.producer.batch import ProducerRecord
from barnabas.testing.embedded.broker import Broker
from pyspark_barnabas.delta.table import Table
from tests.kit.foreign import CHECKOUT
from tests.kit.pipeline.delta_tables import files, of_batch, options_of
from tests.kit.pipeline.streams import records_of
from tests.kit.pipeline.topics import create, send_records
from tests.kit.pipeline.topics import records_of as topic_records

ZONE = "America/New_York"
# Seconds since the epoch: before it, and around the end of a summer time.
SECONDS = (1_767_225_600, -299_883_355.25, 1_793_511_000, 1_793_514_600)
MICROS = [int(each * 1_000_000) for each in SECONDS]
_ZONE_SETTING = "spark.sql.session.timeZone"
_INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"


@pytest.fixture
def zoned(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, in New York for a while."""
    before = {name: spark.conf.get(name) for name in (_ZONE_SETTING, _INFERENCE)}
    spark.conf.set(_ZONE_SETTING, ZONE)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, str(value))


def frame_of(spark: SparkSession) -> DataFrame:
    rows = spark.createDataFrame([(number, each) for number, each in enumerate(MICROS)])
    return rows.toDF("number", "micros").selectExpr(
        "number",
        "timestamp_micros(micros) at",
        "cast(timestamp_micros(micros) as timestamp_ntz) wall",
        "to_date(timestamp_micros(micros)) day",
        "named_struct('at', timestamp_micros(micros)) nested",
    )


def instants(path: Path) -> list[int]:
    table = deltalake.DeltaTable(str(path)).to_pyarrow_table().sort_by("number")
    return [int(each) for each in table["at"].cast(pa.int64()).to_pylist()]


@pytest.mark.parametrize("partition_by", ["at", "wall,day,at", "day", ""])
def test_sp_3_a_sessions_zone_moves_no_instant(
    zoned: SparkSession, tmp_path: Path, partition_by: str
) -> None:
    path = tmp_path / "t"
    writer = frame_of(zoned).write.format("barnabas.delta").mode("append")
    writer.option("partitionBy", partition_by).save(str(path))
    assert instants(path) == MICROS
    table = deltalake.DeltaTable(str(path)).to_pyarrow_table().sort_by("number")
    for row, seconds in zip(table.to_pylist(), SECONDS, strict=True):
        local = datetime.datetime.fromtimestamp(seconds, ZoneInfo(ZONE))
        assert row["nested"]["at"].timestamp() == seconds
        assert row["wall"] == local.replace(tzinfo=None, fold=0)
        assert row["day"] == local.date()


@pytest.mark.slow
def test_sp_3_a_topics_times_arrive_in_a_table_and_in_a_topic(
    zoned: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """The source, the window of an aggregation and both sinks, from the start of a summer time on:
    the page's own partitioning by the record's time."""
    create(broker, "zoned")
    create(broker, "zoned-again")
    skipped_ms = 1_772_953_200_000  # 02:00 on 8 March 2026 in New York, which is 03:00
    times_ms = [skipped_ms + minutes * 60_000 for minutes in (-90, -30, -1, 0, 1, 59)]
    send_records(
        broker, [ProducerRecord("zoned", b"%d" % ms, None, 0, timestamp_ms=ms) for ms in times_ms]
    )
    rows = records_of(zoned, broker.bootstrap_servers, "zoned").selectExpr(
        "offset", "value", "timestamp", "window(timestamp, '1 hour').start hour"
    )

    def run(sink: str, path: str = "", **options: str) -> None:
        checkpoint = str(tmp_path / sink)
        writer = rows.writeStream.format(sink).option("checkpointLocation", checkpoint)
        query = writer.options(**options).trigger(availableNow=True).start(path or None)
        assert query.awaitTermination(240)

    run("barnabas.delta", str(tmp_path / "t"), partitionBy="hour")
    table = deltalake.DeltaTable(str(tmp_path / "t")).to_pyarrow_table().sort_by("offset")
    found = [column.cast(pa.int64()).to_pylist() for column in (table["timestamp"], table["hour"])]
    assert [[each // 1000 for each in column] for column in found] == [
        times_ms,
        [ms // 3_600_000 * 3_600_000 for ms in times_ms],
    ]
    run("barnabas", **{"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "zoned-again"})
    again = topic_records(broker, "zoned-again")
    assert [int(record.value or b"") for record in again] == times_ms


def test_sp_3_a_table_with_moved_instants_is_rewritten_as_the_page_says(
    zoned: SparkSession, tmp_path: Path
) -> None:
    """As an earlier version left it: the local time in the place of the one in UTC. What was added
    since is right and stays, and so does the progress of a query."""
    path = tmp_path / "t"
    schema = pa.schema([("number", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    options = options_of(path, partitionBy="at")

    def walls(numbers: range) -> list[dict[str, object]]:
        zone, utc = ZoneInfo(ZONE), datetime.UTC
        local = [datetime.datetime.fromtimestamp(SECONDS[at], zone) for at in numbers]
        return [
            {"number": number, "at": at.replace(tzinfo=utc, fold=0)}
            for number, at in zip(numbers, local, strict=True)
        ]

    def commit(batch: int, rows: list[dict[str, object]]) -> bool:
        table = Table(of_batch(options, batch))
        return table.commit(schema, files(options, rows, schema), overwrite=False, query="q")

    assert commit(0, [])
    old = pa.Table.from_pylist(walls(range(3)), schema=schema)
    deltalake.write_deltalake(str(path), old, mode="append")
    assert instants(path) != MICROS[:3]
    last = datetime.datetime.fromtimestamp(SECONDS[3], datetime.UTC)
    assert commit(1, [{"number": 3, "at": last}])
    page = (CHECKOUT / "docs" / "exactly-once.md").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^```python no-run\n(TABLE.*?)^```$", page, re.MULTILINE | re.DOTALL)
    recipe = recipe.replace('"tables/events"', repr(str(path)))
    zoned.conf.set(_ZONE_SETTING, "UTC")
    for _ in range(2):  # run again, it changes nothing
        exec(recipe, {"spark": zoned})
        assert instants(path) == MICROS
    assert not commit(1, [{"number": 3, "at": last}])
    assert commit(2, [])
