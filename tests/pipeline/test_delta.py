"""SP-3: Delta tables from Spark without a jar, each micro-batch once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import deltalake
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from barnabas.testing.embedded.broker import Broker
from pyspark_barnabas_delta import once
from tests.kit.pipeline.streams import records_of
from tests.kit.pipeline.topics import create, numbered, send

PER_BATCH = 40


def read(path: Path, *columns: str) -> list[dict[str, Any]]:
    table = deltalake.DeltaTable(str(path)).to_pyarrow_table(columns=list(columns) or None)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def numbers(path: Path) -> list[int]:
    return sorted(int(row["value"]) for row in read(path, "value"))


def write(frame: DataFrame, path: Path, mode: str = "append", **options: str) -> None:
    frame.write.format("barnabas.delta").mode(mode).options(**options).save(str(path))


def lines(spark: SparkSession, broker: Broker, topic: str) -> DataFrame:
    return records_of(spark, broker.bootstrap_servers, topic, PER_BATCH).select(
        F.col("value").cast("string"),
        F.expr("cast(cast(value as string) as int) % 3").alias("rest"),
    )


def forget_the_last_commit(checkpoint: Path) -> None:
    """As a driver leaves it that dies between the table's commit and Spark's."""
    last = max(int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdigit())
    for name in (f"{last}", f".{last}.crc"):
        (checkpoint / "commits" / name).unlink()


@pytest.mark.parametrize("way", ["format", "foreachBatch"])
def test_sp_3_a_micro_batch_that_runs_again_is_there_once(
    spark: SparkSession, broker: Broker, tmp_path: Path, way: str
) -> None:
    topic, table, checkpoint = f"delta-{way}", tmp_path / "table", tmp_path / "checkpoint"
    create(broker, topic, 2)
    send(broker, topic, numbered(0, 100))

    def run() -> None:
        sink = lines(spark, broker, topic).writeStream.option("checkpointLocation", str(checkpoint))
        if way == "format":
            sink = sink.format("barnabas.delta").option("partitionBy", "rest")
            query = sink.trigger(availableNow=True).start(str(table))
        else:
            sink = sink.foreachBatch(once(str(table), partitionBy="rest"))
            query = sink.trigger(availableNow=True).start()
        assert query.awaitTermination(240)

    run()
    assert numbers(table) == list(range(100))
    forget_the_last_commit(checkpoint)
    send(broker, topic, numbered(100, 120), 1)
    run()
    assert numbers(table) == list(range(120))
    assert deltalake.DeltaTable(str(table)).metadata().partition_columns == ["rest"]


def test_batch_jobs_append_overwrite_and_are_checked(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    frame = spark.range(100).select(F.col("id").cast("string").alias("value"))
    write(frame, table)
    write(frame.limit(0), table)
    write(frame, table, txnAppId="job", txnVersion="1")
    write(frame, table, txnAppId="job", txnVersion="1")
    assert len(read(table)) == 200
    write(frame.limit(3), table, "overwrite")
    assert len(read(table)) == 3
    with pytest.raises(PySparkException, match="value is long, but string in the table"):
        write(spark.range(1).withColumnRenamed("id", "value"), table)
    with pytest.raises(PySparkException, match="no column more"):
        write(frame.withColumn("more", F.lit(1)), table)
    write(frame.limit(1).withColumn("more", F.lit(1)), table, mergeSchema="true")
    assert sorted(str(row["more"]) for row in read(table)) == ["1", "None", "None", "None"]
    with pytest.raises(PySparkException, match="did you mean partitionBy"):
        write(frame, table, partitionedBy="value")


def test_a_complete_result_replaces_the_one_before(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    create(broker, "delta-complete")
    send(broker, "delta-complete", numbered(0, 100))
    counts = lines(spark, broker, "delta-complete").groupBy("rest").count()
    query = (
        counts.writeStream.format("barnabas.delta")
        .outputMode("complete")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "table"))
    )
    assert query.awaitTermination(240)
    found = {row["rest"]: row["count"] for row in read(tmp_path / "table")}
    assert found == {0: 34, 1: 33, 2: 33}


def test_sp_3_micro_batches_without_rows_count(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    create(broker, "delta-empty")
    send(broker, "delta-empty", numbered(0, 100))
    for end in (0, 200):  # nothing passes, and then everything does
        send(broker, "delta-empty", numbered(end, end + 1))
        query = (
            lines(spark, broker, "delta-empty")
            .where(F.lit(bool(end)))
            .writeStream.format("barnabas.delta")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "table"))
        )
        assert query.awaitTermination(240)
    assert numbers(tmp_path / "table") == [200]


def test_sp_3_nested_columns_are_checked_and_read_back(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    item = "named_struct('price', id, 'tags', array(cast(id as string)))"
    frame = spark.range(3).selectExpr(
        "cast(id as string) value", f"array({item}) items", f"map('a', {item}) prices"
    )
    write(frame, table)
    write(frame, table)
    assert read(table)[2]["items"] == [{"price": 2, "tags": ["2"]}]
    double = F.expr("map('a', named_struct('price', 1.5D, 'tags', array(value)))")
    other = frame.withColumn("prices", double)
    with pytest.raises(
        PySparkException, match=r"prices.value.price is double, but long in the table"
    ):
        write(other, table)
    for kind in ("interval 1 day", "interval 1 year", "parse_json('1')", "null"):
        with pytest.raises(PySparkException, match=r"took.* is .*not a type of Delta"):
            write(frame.withColumn("took", F.expr(f"array({kind})")), table, mergeSchema="true")


def test_sp_3_a_null_above_fields_that_are_never_null(spark: SparkSession, tmp_path: Path) -> None:
    """`id` never is, and so Spark promises that of the field."""
    maybe = "if(id = 1, null, named_struct('id', id))"
    frame = spark.range(3).selectExpr(
        "cast(id as string) value",
        f"{maybe} one",
        f"named_struct('inner', {maybe}) two",
        f"array({maybe}) items",
        f"map('a', {maybe}) named",
    )
    write(frame, tmp_path / "table")
    found = {row["value"]: row for row in read(tmp_path / "table")}
    for text, row in found.items():
        inner = None if text == "1" else {"id": int(text)}
        assert (row["one"], row["two"]) == (inner, {"inner": inner})
        assert (row["items"], row["named"]) == ([inner], [("a", inner)])
    assert len(found) == 3


def test_sp_3_the_format_does_not_read_and_says_what_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "table")
    write(spark.range(3), tmp_path / "table")
    for reader in (spark.read, spark.readStream):
        for given in (reader, reader.schema("id long")):
            with pytest.raises(PySparkException, match="does not read them"):
                found = given.format("barnabas.delta").load(path)
                if found.isStreaming:
                    found.writeStream.format("noop").start().awaitTermination(240)
                found.collect()
    assert spark.createDataFrame(deltalake.DeltaTable(path).to_pyarrow_table()).count() == 3


def test_a_secret_of_an_object_store_stays_one(spark: SparkSession, tmp_path: Path) -> None:
    """Neither an error nor Spark's log nor a plan shows it."""
    secret = "c0ffee-secret"
    with pytest.raises(PySparkException) as failed:
        write(
            spark.range(1),
            tmp_path / "table",
            **{"storage.azure_storage_sas_key": secret, "partitionBy": "nothing"},
        )
    assert secret not in str(failed.value)


def test_sp_3_a_task_that_runs_again_has_written_twice_and_counts_once(
    tmp_path: Path,
) -> None:
    """In a session of its own: here tasks may fail."""
    program = """
import sys
from pathlib import Path

from pyspark import TaskContext

from barnabas_pipeline.session import SHORT_LIVED, start_session

spark = start_session("retries", master="local[2,3]", settings=SHORT_LIVED)


def fail_at_first(batches):
    for batch in batches:
        yield batch
    if TaskContext.get().attemptNumber() == 0:
        raise RuntimeError("the first attempt of each task fails when it has written")


frame = spark.range(0, 1000, 1, 4).selectExpr("cast(id as string) value")
frame = frame.mapInArrow(fail_at_first, "value string")
frame.write.format("barnabas.delta").mode("append").save(sys.argv[1])
"""
    result = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "table")], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert "the first attempt of each task fails" in result.stderr
    assert numbers(tmp_path / "table") == list(range(1000))
