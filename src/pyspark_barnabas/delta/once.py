"""Commits each micro-batch of the user's own `foreachBatch` once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def once(path: str, **options: str) -> Callable[[DataFrame, int], None]:
    """A function for `foreachBatch` that appends each micro-batch to a table, once.

        df.writeStream.foreachBatch(once("/tables/events", partitionBy="day")).start()

    `options`: those of `format("barnabas.delta")`. Call the returned function from a function of
    your own to write to several tables: each of them has every micro-batch once, but they do not
    change together. Call it for each micro-batch, even one without rows: a missing number counts as
    lost.
    """

    def write(batch: DataFrame, batch_id: int) -> None:
        context = batch.sparkSession.sparkContext
        query = context.getLocalProperty("sql.streaming.queryId")
        if query is None:
            raise ConfigError("once() is for foreachBatch: the query of this batch is unknown")
        (
            batch.write.format("barnabas.delta")
            .options(
                **{"txnAppId": query, **options, "txnQuery": query, "txnVersion": str(batch_id)}
            )
            .mode("append")
            .save(path)
        )

    return write
