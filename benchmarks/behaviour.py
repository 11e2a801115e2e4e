"""The user-behaviour job from topic to committed tables, beside programs that read the file alone.

    python -m benchmarks.behaviour [--lines 1000000]

The lines are generated and collected before anything is timed. DuckDB and Polars do what a person
would write for one file: parse, count, cut sessions, write Parquet. They keep no dead letters, know
of no line that came twice, and start again when they die.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import duckdb
import polars as pl

import barnabas
from barnabas_collector.registry import Registry
from barnabas_pipeline.behaviour.definition import Behaviour
from barnabas_pipeline.behaviour.generator import write_log
from barnabas_pipeline.collector import Collector
from benchmarks.pipeline_jobs import (
    LARGE,
    SMALL,
    SMALL_LINES,
    create_topics,
    report,
    seconds_of,
    time_jobs,
    time_service,
)

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
        for program, run in (("DuckDB", read_with_duckdb), ("Polars", _polars)):
            report(
                f"{program}, the file alone", lines, seconds_of(lambda run=run: run(log, directory))
            )  # type: ignore[misc]
        with barnabas.Broker(directory / "broker") as broker:
            _run_jobs(broker.bootstrap_servers, directory, log, lines)


def _run_jobs(servers: str, directory: Path, log: Path, lines: int) -> None:
    small = directory / "small.log"
    write_log(small, SMALL_LINES, seed=2)
    create_topics(servers)
    for topic, path in ((LARGE, log), (SMALL, small)):
        with Collector(servers, topic, Registry(directory / f"{topic}.json")) as collector:
            collector.collect(path)
    tables = time_jobs(Behaviour(), servers, directory, lines)
    accounts = tables.frame("files").select("valid", "dead_letters").sum()
    assert sum(accounts.row(0)) == lines
    time_service(Behaviour(), servers, directory, small)


def read_with_duckdb(log: Path, directory: Path) -> None:
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
