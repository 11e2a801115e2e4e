"""A pipeline's job from topics that are filled to committed tables: what the benchmarks of both
pipelines time.

A first batch in a new session, small batches, then everything; and the memory behind that. A
service is timed with lines that arrive while it waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import psutil
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.client import NewTopic, SyncAdmin
from barnabas_collector.registry import Registry
from barnabas_pipeline.collector import Collector
from barnabas_pipeline.job import Job
from barnabas_pipeline.session import SHORT_LIVED, start_session
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.work import Definition

LARGE, SMALL, SERVICE = "large", "small", "service"
"""The topics with all lines, with `SMALL_LINES`, and of a service, which is empty at first."""
_BATCH, _BATCHES = 3_000, 10
SMALL_LINES = _BATCH * _BATCHES
_SERVICE_BATCH, _SERVICE_BATCHES, _WARM_UP = 1_000, 28, 12
_PARTITIONS = 3


def create_topics(servers: str) -> None:
    with SyncAdmin(servers) as admin:
        admin.create_topics(
            [NewTopic(each, _PARTITIONS) for each in (LARGE, SMALL, SERVICE, "dead")]
        )


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
        return _batches_s(query)

    first = run(SMALL, "first", SMALL_LINES)
    print(f"{'its first batch, of 30,000 lines':<44} {first[0]:6.1f} s")
    each_s = sorted(run(SMALL, "batches", _BATCH)[1:])
    print(f"{'a batch of 3,000 records, median':<44} {each_s[len(each_s) // 2]:6.2f} s")
    seconds = seconds_of(lambda: run(LARGE, "whole", 250_000))
    report("Barnabas, from topic to committed tables", lines, seconds)
    _report_memory()
    spark.stop()
    return Snapshot(directory / "whole", definition.layout)


def time_service(definition: Definition, servers: str, directory: Path, log: Path) -> None:
    """Print how long a service takes for 1,000 new lines, from the trigger to the committed tables.

    `log`: a file with at least `SMALL_LINES`.
    """
    spark = start_session("service", master="local[2]", log=directory / "service.log")
    places = directory / "service", directory / "service-checkpoint"
    job = Job(definition, servers, SERVICE, "dead", *places)
    query = job.start(spark, every_seconds=0)
    followed = directory / "followed.log"
    registry = Registry(directory / "followed.json")
    each_s: list[float] = []
    with log.open("rb") as lines, Collector(servers, SERVICE, registry) as collector:
        for _ in range(_SERVICE_BATCHES):
            with followed.open("ab") as file:
                file.writelines(islice(lines, _SERVICE_BATCH))
            # All of them arrive in one transaction, and so in one batch.
            collector.collect(followed)
            while len(done := _batches_s(query)) == len(each_s):
                query.awaitTermination(0.05)
            each_s = done
    query.stop()
    spark.stop()
    warm_s = sorted(each_s[_WARM_UP:])
    print(f"{'a service: 1,000 new lines, median':<44} {warm_s[len(warm_s) // 2]:6.2f} s")


def _batches_s(query: StreamingQuery) -> list[float]:
    return [
        each["durationMs"]["triggerExecution"] / 1_000
        for each in query.recentProgress
        if each["numInputRows"]
    ]


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
