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
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from barnabas_pipeline.session import SHORT_LIVED, start_session
from tests.kit.pipeline.streams import records_of

Passing = Callable[[Iterator[Any]], Iterator[Any]]

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
    copy(session_on(master), servers, (source, target), Path(directory), _hold_in)


def copy(
    spark: SparkSession,
    servers: str,
    topics: tuple[str, str],
    place: Path,
    passing: Callable[[str], Passing],
) -> None:
    """One query after the other. `passing`: what each lets its rows pass through, in a directory
    of its own."""
    source, target = topics
    rows = _rows(spark, servers, source)

    def passed(directory: Path) -> DataFrame:
        return rows.mapInArrow(passing(str(directory)), rows.schema)

    into_topic = (
        passed(place / "topic")
        .writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", target)
    )
    into_table = (
        passed(place / "table")
        .writeStream.format("barnabas.delta")
        .option("path", str(place / "table" / "rows"))
    )
    for name, writer in (
        ("topic", into_topic.option("exactlyOnce", "true")),
        ("table", into_table),
    ):
        writer.option("checkpointLocation", str(place / name / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()


def session_on(master: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """With two executors of one core each, on a cluster."""
    more = _LOCAL_CLUSTER_SETTINGS if master.startswith("local-cluster") else {}
    return start_session(
        "cluster", master=master, settings={**_SETTINGS, **more, **(settings or {})}
    )


def _rows(spark: SparkSession, servers: str, source: str) -> DataFrame:
    return records_of(spark, servers, source).select("value")


def _hold_in(directory: str) -> Passing:
    def hold(batches: Iterator[Any]) -> Iterator[Any]:
        place, passed = Path(directory), 0
        for batch in batches:
            yield batch
            passed += batch.num_rows
            if passed >= HOLD_AFTER and not (place / "go").exists():
                (place / f"held-{os.getpid()}").touch()
                wait_for(place / "go")

    return hold


def wait_for(file: Path) -> None:
    ends_at_s = time.monotonic() + _PATIENCE_S
    while not file.exists():
        assert time.monotonic() < ends_at_s, f"no {file}"
        time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])
