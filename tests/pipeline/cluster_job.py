"""A topic into a topic and into a table, each record once, on any Spark cluster.

python -m tests.pipeline.cluster_job MASTER SERVERS SOURCE TARGET DIRECTORY

Each task of the first query waits, when it has passed `HOLD_AFTER` rows on, for the file `go` in
DIRECTORY/topic, and creates a file `held-...` there; those of the second do so in DIRECTORY/table,
where the table is `rows`. Ends when it has read what there is.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from barnabas.pipeline.session import SHORT_LIVED, start_session

HOLD_AFTER = 60_000
_PATIENCE_S = 120

_SETTINGS = {
    **SHORT_LIVED,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
}
_LOCAL_CLUSTER_SETTINGS = {"spark.executor.memory": "1024m"}  # as the master's name says


def main(master: str, servers: str, source: str, target: str, directory: str) -> None:
    spark = session_on(master)
    rows = _rows(spark, servers, source)
    place = Path(directory)
    into_topic = (
        _held(rows, place / "topic")
        .writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", target)
    )
    into_table = (
        _held(rows, place / "table")
        .writeStream.format("barnabas.delta")
        .option("path", str(place / "table" / "rows"))
    )
    for name, writer in (
        ("topic", into_topic.option("exactlyOnce", "true")),
        ("table", into_table),
    ):
        writer.option("checkpointLocation", str(place / name / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()


def session_on(master: str) -> SparkSession:
    """With two executors of one core each, on a cluster."""
    more = _LOCAL_CLUSTER_SETTINGS if master.startswith("local-cluster") else {}
    return start_session("cluster", master=master, settings={**_SETTINGS, **more})


def _rows(spark: SparkSession, servers: str, source: str) -> DataFrame:
    return (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
        .select("value")
    )


def _held(rows: DataFrame, directory: Path) -> DataFrame:
    return rows.mapInArrow(_hold_in(str(directory)), rows.schema)


def _hold_in(directory: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def hold(batches: Iterator[Any]) -> Iterator[Any]:
        place, passed = Path(directory), 0
        for batch in batches:
            yield batch
            passed += batch.num_rows
            if passed >= HOLD_AFTER and not (place / "go").exists():
                (place / f"held-{os.getpid()}").touch()
                ends_at_s = time.monotonic() + _PATIENCE_S
                while not (place / "go").exists():
                    assert time.monotonic() < ends_at_s, f"no {place / 'go'}"
                    time.sleep(0.05)

    return hold


if __name__ == "__main__":
    main(*sys.argv[1:])
