"""A streaming query from a topic into a table, run twice: the second run takes only what is new.

pip install '.[spark]'
python examples/spark_stream.py
"""

from __future__ import annotations

import os
import sys
import tempfile

# Before the session is made, or workers start whatever `python3` comes first on the PATH.
os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import SparkSession

import barnabas
from barnabas.client import SyncProducer


def main() -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    with barnabas.Broker() as broker, tempfile.TemporaryDirectory() as directory:
        servers = broker.bootstrap_servers
        send(servers, range(3))
        run(spark, servers, directory)
        send(servers, range(3, 5))
        run(spark, servers, directory)
        spark.read.parquet(f"{directory}/table").orderBy("offset").show()
    spark.stop()


def send(servers: str, numbers: range) -> None:
    with SyncProducer(servers) as producer:
        for number in numbers:
            producer.send("numbers", f"number {number}".encode())


def run(spark: SparkSession, servers: str, directory: str) -> None:
    """Everything that is in the topic now and was not there the last time."""
    records = (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "numbers")
        .option("startingOffsets", "earliest")
        .load()
    )
    (
        records.selectExpr("offset", "cast(value as string) as value")
        .writeStream.format("parquet")
        .option("path", f"{directory}/table")
        .option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )


if __name__ == "__main__":
    main()
