"""Reads the given topics through Spark and prints every row; imports nothing of ours.

    spark_reading_job.py FORMAT [JARS]

`test_spark_beside_connector.py` runs it twice: with our source, and with the JVM connector in an
environment whose PySpark fits it. Every line on standard input is one reading:

    {"options": {...}, "checkpoint": null, or a directory for a stream,
     "pauses": true if the stream waits after its first micro-batch: for a line of input,
     "ends": false if the stream is one that runs on; it is stopped when it has read everything}

Every line on standard output answers one, but for `{"paused": true}`:
`{"schema": ..., "rows": [...]}`, the rows as JSON, keys
and values in hexadecimal, in the order of topic, partition and offset; or `{"error": ...}`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

PLACE = ("topic", "partition", "offset")
COLUMNS = (
    "hex(key) as key",
    "hex(value) as value",
    *PLACE,
    "unix_micros(timestamp) as timestamp",
    "timestampType",
)
HEADERS = "transform(headers, h -> struct(h.key as key, hex(h.value) as value)) as headers"


def main(source: str, jars: str = "") -> None:
    spark = session(jars)
    say({})
    for line in sys.stdin:
        try:
            say(read(spark, source, **json.loads(line)))
        except (PySparkException, Py4JError) as error:
            say({"error": str(error)})
    spark.stop()


def session(jars: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.jars": ",".join(map(str, Path(jars).glob("*.jar"))) if jars else "",
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def read(
    spark: SparkSession,
    source: str,
    options: dict[str, str],
    checkpoint: str | None,
    **how: bool,
) -> dict[str, Any]:
    if checkpoint is None:
        frame = spark.read.format(source).options(**options).load()
        return {"schema": frame.schema.simpleString(), "rows": rows_of(frame)}
    frame = spark.readStream.format(source).options(**options).load()
    return {"schema": frame.schema.simpleString(), "rows": follow(frame, checkpoint, **how)}


def follow(
    frame: DataFrame, checkpoint: str, *, pauses: bool = False, ends: bool = True
) -> list[str]:
    found: list[str] = []

    def take(batch: DataFrame, number: int) -> None:
        found.extend(rows_of(batch))
        if pauses and number == 0:
            say({"paused": True})
            sys.stdin.readline()

    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint)
    if ends:
        writer.trigger(availableNow=True).start().awaitTermination()
        return found
    query = writer.trigger(processingTime="0 seconds").start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    return found


def rows_of(frame: DataFrame) -> list[str]:
    columns = (*COLUMNS, HEADERS) if "headers" in frame.columns else COLUMNS
    return list(frame.selectExpr(*columns).sort(*PLACE).toJSON().collect())


def say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
