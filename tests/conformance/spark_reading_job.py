"""Reads topics through Spark as it is told to and prints every row; imports nothing of ours.

    spark_reading_job.py FORMAT [JARS]

`test_spark_beside_connector.py` runs it twice: with our source, and with the JVM connector in an
environment whose PySpark fits it. Every line on standard input is one reading:

    {"options": {...}, "checkpoint": null, or a directory for a stream that ends by itself}

Every line on standard output answers one: `{"schema": ..., "rows": [...]}`, the rows as JSON, keys
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
    spark: SparkSession, source: str, options: dict[str, str], checkpoint: str | None
) -> dict[str, Any]:
    if checkpoint is None:
        frame = spark.read.format(source).options(**options).load()
        return {"schema": frame.schema.simpleString(), "rows": rows_of(frame)}
    frame = spark.readStream.format(source).options(**options).load()
    found: list[str] = []
    writer = frame.writeStream.foreachBatch(lambda batch, _: found.extend(rows_of(batch)))
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    return {"schema": frame.schema.simpleString(), "rows": found}


def rows_of(frame: DataFrame) -> list[str]:
    columns = (*COLUMNS, HEADERS) if "headers" in frame.columns else COLUMNS
    return list(frame.selectExpr(*columns).sort(*PLACE).toJSON().collect())


def say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
