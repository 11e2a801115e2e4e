"""Commits each micro-batch exactly once from a `foreachBatch` function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.errors import PySparkAttributeError

from barnabas.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def once(path: str, **options: str) -> Callable[[DataFrame, int], None]:
    """Return a function for `foreachBatch` that appends each micro-batch to a table once.

        df.writeStream.foreachBatch(once("/tables/events", partitionBy="day")).start()

    `options`: the options of `format("barnabas.delta")`. To write to several tables, call the
    returned functions from your own function. Every micro-batch is then appended to each table
    once, but the tables do not change at the same moment. Call the returned function for every
    micro-batch, even if it has no rows, because a gap in the numbers is treated as a lost
    micro-batch. This does not work over Spark Connect, which does not pass the query's id to a
    `foreachBatch` function.
    """

    def write(batch: DataFrame, batch_id: int) -> None:
        query = _query(batch)
        (
            batch.write.format("barnabas.delta")
            .options(
                **{"txnAppId": query, **options, "txnQuery": query, "txnVersion": str(batch_id)}
            )
            .mode("append")
            .save(path)
        )

    return write


def _query(batch: DataFrame) -> str:
    """Return the id of the query that produced this micro-batch. Raises `ConfigError`."""
    try:
        query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    except PySparkAttributeError:
        raise ConfigError(
            "once() does not work over Spark Connect, which does not name the query to a function"
            " for foreachBatch: use a session without Connect, or write with"
            ' .writeStream.format("barnabas.delta"), which commits each micro-batch once, too'
        ) from None
    if query is None:
        raise ConfigError("once() is for foreachBatch: the query of this batch is unknown")
    return query
