"""One Spark session that reads a topic as often as requested; imports nothing of ours.

    spark_reading_job.py FORMAT CORES [JARS]

`spark_beside_connector.py` runs it under two interpreters: ours with `format("barnabas")`, and one
whose PySpark fits the JVM connector with `format("kafka")` and its jars. Every line on standard
input is one reading, `{"kind": "batch" | "stream", "options": {...}}`; every line on standard
output answers it with `{"seconds": ..., "seen": [...]}`. CPU time is read from outside.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

# Over every column, so that Spark has to look at all of them.
EVERY_COLUMN = (
    "count(1)",
    "sum(length(key))",
    "sum(length(value))",
    "sum(length(topic))",
    "sum(partition)",
    "sum(offset)",
    "cast(max(timestamp) as string)",
    "sum(timestampType)",
)


def main(source: str, cores: str, jars: str = "") -> None:
    spark = session(cores, jars)
    say({"pyspark": spark.version, "python": sys.version.split()[0], "java": java_of(spark)})
    for line in sys.stdin:
        reading = json.loads(line)
        read = read_stream if reading["kind"] == "stream" else read_batch
        began = time.perf_counter()
        seen = read(spark, source, reading["options"])
        say({"seconds": time.perf_counter() - began, "seen": seen})
    spark.stop()


def session(cores: str, jars: str) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{cores}]").appName("reading")
    builder = builder.config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.sql.shuffle.partitions", cores)
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    builder = builder.config("spark.log.level", "ERROR")
    if jars:
        builder = builder.config("spark.jars", ",".join(map(str, Path(jars).glob("*.jar"))))
    return builder.getOrCreate()


def java_of(spark: SparkSession) -> str:
    return str(spark.sparkContext._jvm.java.lang.System.getProperty("java.version"))


def read_batch(spark: SparkSession, source: str, options: dict[str, str]) -> list[Any]:
    [row] = spark.read.format(source).options(**options).load().selectExpr(*EVERY_COLUMN).collect()
    return list(row)


def read_stream(spark: SparkSession, source: str, options: dict[str, str]) -> list[Any]:
    """To the sink that drops every row, in micro-batches of what `options` say."""
    frame = spark.readStream.format(source).options(**options).load()
    with tempfile.TemporaryDirectory() as checkpoint:
        sink = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = sink.trigger(availableNow=True).start()
        query.awaitTermination()
        return [sum(progress["numInputRows"] for progress in query.recentProgress)]


def say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
