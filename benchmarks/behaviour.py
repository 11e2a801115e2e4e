"""The user-behaviour job from topic to committed tables, beside programs that read the file alone.

    python -m benchmarks.behaviour [--lines 1000000]

The lines are generated and collected before anything is timed. DuckDB and Polars do what a person
would write for one file: parse, count, cut sessions, write Parquet. They keep no dead letters, know
of no line that came twice, and start again when they die.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import psutil

import barnabas
from barnabas.client import NewTopic, SyncAdmin
from barnabas.collector.registry import Registry
from barnabas.pipeline.behaviour.definition import BEHAVIOUR, Behaviour
from barnabas.pipeline.behaviour.generator import write_log
from barnabas.pipeline.collector import Collector
from barnabas.pipeline.job import Job
from barnabas.pipeline.session import SHORT_LIVED, start_session
from barnabas.pipeline.snapshot import Snapshot

_PARTITIONS = 3
_SMALL = 3_000
_SMALL_BATCHES = 10
_LINE = (
    r'^(\S+) \S+ \S+ \[(\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] "(\S+) (\S+) ?([^"]*)"'
    r' (\d{3}) (\d+|-)(?: "([^"]*)" "([^"]*)")?$'
)
_NAMES = ("client", "time", "method", "target", "protocol", "status", "size", "referrer", "agent")
_SILENCE_S = 1_800


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=1_000_000)
    lines = parser.parse_args().lines
    with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as name:
        directory = Path(name)
        log = directory / "access.log"
        write_log(log, lines, seed=1)
        for program, run in (("DuckDB", _duckdb), ("Polars", _polars)):
            _report(
                f"{program}, the file alone", lines, _seconds(lambda run=run: run(log, directory))
            )  # type: ignore[misc]
        with barnabas.Broker(directory / "broker") as broker:
            _run_jobs(broker.bootstrap_servers, directory, log, lines)


def _run_jobs(servers: str, directory: Path, log: Path, lines: int) -> None:
    small = directory / "small.log"
    write_log(small, _SMALL * _SMALL_BATCHES, seed=2)
    with SyncAdmin(servers) as admin:
        admin.create_topics([NewTopic(each, _PARTITIONS) for each in ("large", "small", "dead")])
    for topic, path in (("large", log), ("small", small)):
        with Collector(servers, topic, Registry(directory / f"{topic}.json")) as collector:
            collector.collect(path)
    begin_s = time.monotonic()
    spark = start_session(
        "benchmark", master="local[2]", settings=SHORT_LIVED, log=directory / "spark.log"
    )
    print(f"{'a Spark session':<44} {time.monotonic() - begin_s:6.1f} s")

    def run(topic: str, name: str, batch: int) -> list[float]:
        places = directory / name, directory / f"{name}-checkpoint"
        job = Job(Behaviour(), servers, topic, "dead", *places, batch)
        query = job.start(spark)
        query.awaitTermination()
        return [
            each["durationMs"]["triggerExecution"] / 1_000
            for each in query.recentProgress
            if each["numInputRows"]
        ]

    first = run("small", "first", _SMALL * _SMALL_BATCHES)
    print(f"{'its first batch, of 30,000 lines':<44} {first[0]:6.1f} s")
    each_s = sorted(run("small", "batches", _SMALL)[1:])
    print(f"{'a batch of 3,000 lines, median':<44} {each_s[len(each_s) // 2]:6.2f} s")
    seconds = _seconds(lambda: run("large", "whole", 250_000))
    _report("Barnabas, from topic to committed tables", lines, seconds)
    accounts = (
        Snapshot(directory / "whole", BEHAVIOUR)
        .frame("files")
        .select("valid", "dead_letters")
        .sum()
    )
    assert sum(accounts.row(0)) == lines
    _report_memory()
    spark.stop()


def _report_memory() -> None:
    """At the end of the largest job, with Spark's JVM, which is a child of the driver's Python."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    sizes = [(each.name(), each.memory_info().rss) for each in processes]
    for what, name in (("the largest Python process", "python"), ("Spark's JVM", "java")):
        largest = max(size_bytes for found, size_bytes in sizes if name in found)
        print(f"{what:<44} {largest / 1e6:6.0f} MB")
    print(f"{'all processes of the job':<44} {sum(size for _, size in sizes) / 1e6:6.0f} MB")


def _seconds(action: Callable[[], object]) -> float:
    begin_s = time.monotonic()
    action()
    return time.monotonic() - begin_s


def _report(what: str, lines: int, seconds: float) -> None:
    print(f"{what:<44} {seconds:6.1f} s  {lines / seconds:9,.0f} lines/s")


def _duckdb(log: Path, directory: Path) -> None:
    out = directory / "duckdb"
    out.mkdir()
    names = ", ".join(f"'{name}'" for name in _NAMES)
    with duckdb.connect() as connection:
        connection.execute("set threads = 2; set timezone = 'UTC'")
        connection.execute(
            f"""create table hits as
            select f.client, f.agent, f.method, f.target, f.referrer, f.status::int as status,
                try_cast(f.size as bigint) as size,
                try_strptime(f.time, '%d/%b/%Y:%H:%M:%S %z') as time
            from (select regexp_extract(line, '{_LINE.replace("'", "''")}', [{names}]) as f
                  from read_csv('{log}', columns = {{'line': 'varchar'}}, delim = '\\0', quote = '',
                                escape = '', header = false, ignore_errors = true,
                                strict_mode = false, auto_detect = false))
            where f.client <> '' and time is not null"""
        )
        queries = {
            "hits": "select * from hits",
            "traffic": "select time_bucket(interval 1 minute, time) as minute, count(*), sum(size)"
            " from hits group by all",
            "pages": "select split_part(target, '?', 1) as path, count(*) from hits group by all",
            "referrers": "select referrer, count(*) from hits group by all",
            "statuses": "select status, count(*) from hits group by all",
            "sessions": f"""select client, agent, n, min(time), max(time), count(*)
                from (select *, sum(is_first) over (partition by client, agent order by time) n
                      from (select *, (coalesce(epoch(time) - epoch(lag(time) over (
                                partition by client, agent order by time)), {_SILENCE_S})
                                >= {_SILENCE_S})::int as is_first from hits))
                group by all""",
        }
        for name, query in queries.items():
            connection.execute(f"copy ({query}) to '{out / name}.parquet' (format parquet)")


def _polars(log: Path, directory: Path) -> None:
    out = directory / "polars"
    out.mkdir()
    lines = pl.Series(log.read_bytes().decode("utf-8", "replace").split("\n"))
    fields = lines.to_frame("line").select(pl.col("line").str.extract_groups(_LINE).alias("f"))
    hits = (
        fields.select(pl.col("f").struct.rename_fields(list(_NAMES)))
        .unnest("f")
        .with_columns(
            pl.col("time").str.to_datetime("%d/%b/%Y:%H:%M:%S %z", strict=False),
            pl.col("size").cast(pl.Int64, strict=False),
        )
        .filter(pl.col("time").is_not_null())
        .sort("client", "agent", "time")
    )
    silence = (pl.col("time").diff() >= pl.duration(seconds=_SILENCE_S)).over("client", "agent")
    sessions = hits.with_columns(silence.fill_null(True).cum_sum().alias("session"))
    tables = {
        "hits": hits,
        "traffic": hits.group_by(pl.col("time").dt.truncate("1m")).agg(
            pl.len(), pl.col("size").sum()
        ),
        "pages": hits.group_by(pl.col("target").str.split("?").list.first()).len(),
        "referrers": hits.group_by("referrer").len(),
        "statuses": hits.group_by("status").len(),
        "sessions": sessions.group_by("client", "agent", "session").agg(
            pl.col("time").min().alias("start"), pl.col("time").max().alias("end"), pl.len()
        ),
    }
    for name, table in tables.items():
        table.write_parquet(out / f"{name}.parquet")


if __name__ == "__main__":
    main()
