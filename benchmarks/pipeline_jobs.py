"""A pipeline's job from topics that are filled to committed tables: what the benchmarks of both
pipelines time.

A first batch in a new session, small batches, then everything; and the memory behind that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import psutil

from barnabas.client import NewTopic, SyncAdmin
from barnabas_pipeline.job import Job
from barnabas_pipeline.session import SHORT_LIVED, start_session
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.work import Definition

LARGE, SMALL = "large", "small"
"""The topics with all lines, and with `SMALL_LINES`."""
_BATCH, _BATCHES = 3_000, 10
SMALL_LINES = _BATCH * _BATCHES
_PARTITIONS = 3


def create_topics(servers: str) -> None:
    with SyncAdmin(servers) as admin:
        admin.create_topics([NewTopic(each, _PARTITIONS) for each in (LARGE, SMALL, "dead")])


def time_jobs(definition: Definition, servers: str, directory: Path, lines: int) -> Snapshot:
    """Print the figures; the tables of all lines. `lines`: of the topic `LARGE`."""
    begin_s = time.monotonic()
    spark = start_session(
        "benchmark", master="local[2]", settings=SHORT_LIVED, log=directory / "spark.log"
    )
    print(f"{'a Spark session':<44} {time.monotonic() - begin_s:6.1f} s")

    def run(topic: str, name: str, batch: int) -> list[float]:
        places = directory / name, directory / f"{name}-checkpoint"
        job = Job(definition, servers, topic, "dead", *places, batch)
        query = job.start(spark)
        query.awaitTermination()
        return [
            each["durationMs"]["triggerExecution"] / 1_000
            for each in query.recentProgress
            if each["numInputRows"]
        ]

    first = run(SMALL, "first", SMALL_LINES)
    print(f"{'its first batch, of 30,000 lines':<44} {first[0]:6.1f} s")
    each_s = sorted(run(SMALL, "batches", _BATCH)[1:])
    print(f"{'a batch of 3,000 records, median':<44} {each_s[len(each_s) // 2]:6.2f} s")
    seconds = seconds_of(lambda: run(LARGE, "whole", 250_000))
    report("Barnabas, from topic to committed tables", lines, seconds)
    _report_memory()
    spark.stop()
    return Snapshot(directory / "whole", definition.layout)


def _report_memory() -> None:
    """At the end of the largest job, with Spark's JVM, which is a child of the driver's Python."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    sizes = [(each.name(), each.memory_info().rss) for each in processes]
    for what, name in (("the largest Python process", "python"), ("Spark's JVM", "java")):
        largest = max(size_bytes for found, size_bytes in sizes if name in found)
        print(f"{what:<44} {largest / 1e6:6.0f} MB")
    print(f"{'all processes of the job':<44} {sum(size for _, size in sizes) / 1e6:6.0f} MB")


def seconds_of(action: Callable[[], object]) -> float:
    begin_s = time.monotonic()
    action()
    return time.monotonic() - begin_s


def report(what: str, lines: int, seconds: float) -> None:
    print(f"{what:<44} {seconds:6.1f} s  {lines / seconds:9,.0f} lines/s")
