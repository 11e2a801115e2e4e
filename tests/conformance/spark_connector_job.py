"""A Spark job for a Python whose PySpark fits the JVM connector; it imports nothing of ours.

    spark_connector_job.py OPTIONS TOPIC ROWS JARS DIRECTORY

OPTIONS say as JSON how the connector reaches the broker. Writes rows through `format("kafka")`,
reads them back as a batch and as a stream that ends when everything is read, and prints what it
saw as one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession


def main(options: str, topic: str, rows: str, jars: str, directory: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(map(str, Path(jars).glob("*.jar"))))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    reach = json.loads(options)
    source = {**reach, "subscribe": topic, "startingOffsets": "earliest"}

    numbered = spark.range(int(rows)).selectExpr(
        "cast(id as string) as key", "concat('value ', id) as value"
    )
    sink = numbered.write.format("kafka").options(**reach)
    sink.option("topic", topic).save()

    batch = spark.read.format("kafka").options(**source).load()

    stream = spark.readStream.format("kafka").options(**source).load()
    query = (
        stream.writeStream.format("parquet")
        .option("path", f"{directory}/table")
        .option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    table = spark.read.parquet(f"{directory}/table")
    print(json.dumps({"batch": summary(batch), "stream": summary(table)}))
    spark.stop()


def summary(records: DataFrame) -> list[int]:
    """Rows, distinct values, distinct places: what a loss or a repetition would change."""
    [row] = records.selectExpr(
        "count(*)", "count(distinct value)", "count(distinct partition, offset)"
    ).collect()
    return list(row)


if __name__ == "__main__":
    main(*sys.argv[1:])
