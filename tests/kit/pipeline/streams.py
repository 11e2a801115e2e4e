"""The stream that tests of queries read: a topic from its beginning, in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def records_of(
    spark: SparkSession, servers: str, topic: str, per_batch: int | str | None = None
) -> DataFrame:
    """All records of a topic, at most `per_batch` of them in each micro-batch."""
    source = (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
    )
    return (
        source if per_batch is None else source.option("maxOffsetsPerTrigger", per_batch)
    ).load()
