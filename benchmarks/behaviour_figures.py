"""How long the figures of the tracking page take over many events, on two cores.

    python -m benchmarks.behaviour_figures [--events N] [--json FILE]

The events are those of `benchmarks.pages`, in Delta tables as the job writes them: one file and one
part of each table for every half a million events. Each figure is read in a process of its own, so
that its memory is known: the time includes opening the tables, but not starting Python. DuckDB
answers the same questions from the same files with both cores: the funnel by the first times of the
steps in order, which is simpler than the rules for visits, and the retention by weeks.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import deltalake
import polars as pl

from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tables import Tables
from barnabas_pipeline.tracking.counts import count_events
from barnabas_pipeline.tracking.definition import TRACKING
from barnabas_pipeline.tracking.figures import read_figures
from barnabas_pipeline.tracking.funnels import parse_funnel, read_funnel
from barnabas_pipeline.tracking.retention import cohorts
from benchmarks.figures import Figure, parser_of, show
from benchmarks.pages import make_tables, snapshot_of

COMMAND = "python -m benchmarks.behaviour_figures"
EVENTS: Final = 10_000_000
CORES: Final = 2
GOAL_S: Final = 60.0
_CHUNK: Final = 500_000
_STEPS: Final = ("/page/0", "/page/1", "purchase")
_FUNNEL: Final = f"Order: {' > '.join(_STEPS)}"
_VERSIONS: Final = "versions.json"
"""The file with the newest versions of the tables, which the control table does not name."""


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--only", choices=[*READ, *ASKED], help="print its time")
    parser.add_argument("--tables", type=Path, help="made before, and kept")
    given = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    if given.only:
        print(json.dumps(measured({**READ, **ASKED}[given.only], given.tables)))
        return
    directory = Path(tempfile.mkdtemp(prefix="barnabas-figures-"))
    try:
        tables = given.tables or directory / "tables"
        if not tables.exists():
            began_s = time.monotonic()
            make(tables, given.events)
            print(f"made {given.events:,} events in {time.monotonic() - began_s:.0f} s")
        print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        figures = measure(tables, f"{given.events:,} events")
    finally:
        shutil.rmtree(directory)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    show("figures of the tracking page", figures, given.json, "DuckDB")


def measure(tables: Path, size: str) -> list[Figure]:
    """Return the times and the greatest memory of all figures."""
    found = []
    for name in READ:
        own = _alone(name, tables)
        other = _alone(f"{name}, DuckDB", tables) if f"{name}, DuckDB" in ASKED else {}
        for what, unit, goal in (("seconds", "s", GOAL_S), ("memory", "MB", None)):
            label = f"{name}, {size}" if unit == "s" else f"{name}, peak memory"
            figure = Figure(label, unit, own[what], goal, other=other.get(what))
            found.append(figure._replace(command=COMMAND))
        print(name, own, other)
    return found


def measured(act: Callable[[Path], object], tables: Path) -> dict[str, Any]:
    """Return what a figure took."""
    began_s, used_s = time.monotonic(), time.process_time()
    said = act(tables)
    status = Path("/proc/self/status").read_text()
    [peak] = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return {
        "seconds": time.monotonic() - began_s,
        "processor": time.process_time() - used_s,
        "memory": int(peak.split()[1]) * 1_024 / 1e6,
        "said": str(said)[:200],
    }


def _alone(name: str, tables: Path) -> dict[str, Any]:
    words = ["-m", "benchmarks.behaviour_figures", "--only", name, "--tables", str(tables)]
    done = subprocess.run([sys.executable, *words], check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# ---- ours ----


def _snapshot(tables: Path) -> Snapshot:
    state = Tables(tables, TRACKING)
    control = state.control()
    assert control is not None
    versions = json.loads((tables / _VERSIONS).read_text())
    return Snapshot.at(state, control._replace(versions=versions))


def _funnel(tables: Path) -> object:
    return [step.visits for step in read_funnel(_snapshot(tables), parse_funnel(_FUNNEL)).steps]


def _wide_funnel(tables: Path) -> object:
    found = read_funnel(_snapshot(tables), parse_funnel("Any: /page/* > purchase within 1 h"))
    return [step.visits for step in found.steps]


def _retention(tables: Path) -> object:
    return [each.active for each in cohorts(_snapshot(tables).frame("visitor_weeks"))][:2]


def _all(tables: Path) -> object:
    found = read_figures(_snapshot(tables), [parse_funnel(_FUNNEL)])
    return found.people, found.next_pages[:2]


READ: Final[Mapping[str, Callable[[Path], object]]] = {
    "funnel": _funnel,
    "funnel from any page": _wide_funnel,
    "retention": _retention,
    "all figures": _all,
}


# ---- DuckDB ----


def _ask(tables: Path, query: str) -> object:
    import duckdb

    files = deltalake.DeltaTable(str(tables / "events")).file_uris()
    database = duckdb.connect()
    database.execute(f"SET threads = {CORES}")
    database.execute(f"CREATE VIEW events AS SELECT * FROM read_parquet({files!r})")
    return database.execute(query).fetchall()


def _funnel_by_duckdb(tables: Path) -> object:
    def at(step: str) -> str:
        return f"path = '{step}' AND page_view" if step.startswith("/") else f"name = '{step}'"

    first, second, third = map(at, _STEPS)
    person = "visitor IS NOT NULL AND NOT robot"
    day = "INTERVAL 1 DAY"
    return _ask(
        tables,
        f"""
        WITH a AS (SELECT visitor, time FROM events WHERE {person} AND {first}),
        b AS (SELECT a.visitor, a.time AS began, min(e.time) AS time FROM a JOIN events e
              ON e.visitor = a.visitor AND e.time > a.time AND e.time < a.time + {day}
              WHERE {second} GROUP BY ALL),
        c AS (SELECT b.visitor, b.began FROM b JOIN events e
              ON e.visitor = b.visitor AND e.time > b.time AND e.time < b.began + {day}
              WHERE {third} GROUP BY ALL)
        SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b), (SELECT count(*) FROM c)
        """,
    )


def _retention_by_duckdb(tables: Path) -> object:
    return _ask(
        tables,
        """
        WITH weeks AS (SELECT DISTINCT visitor, date_trunc('week', time) AS week FROM events
                       WHERE visitor IS NOT NULL AND NOT robot),
        firsts AS (SELECT visitor, week, min(week) OVER (PARTITION BY visitor) AS first FROM weeks)
        SELECT first, week, count(*) FROM firsts GROUP BY ALL ORDER BY ALL LIMIT 20
        """,
    )


ASKED: Final[Mapping[str, Callable[[Path], object]]] = {
    "funnel, DuckDB": _funnel_by_duckdb,
    "retention, DuckDB": _retention_by_duckdb,
}


# ---- the tables ----


def make(tables: Path, events: int) -> None:
    """Write the events, and the parts of all other tables that follow from them."""
    make_tables(tables, events)
    snapshot = snapshot_of(tables)
    control = snapshot.control
    dataset = snapshot.dataset("events")
    assert control is not None and dataset is not None
    versions = dict(control.versions)
    for batch in dataset.to_batches(batch_size=_CHUNK):
        frame = pl.from_arrow(batch)
        assert isinstance(frame, pl.DataFrame)
        stamped = frame.with_columns(
            pl.col("time").dt.epoch("us").alias("time_us"),
            pl.col("received").dt.epoch("us").alias("received_us"),
        )
        for name, part in count_events(stamped).items():
            schema = TRACKING.merged[name]
            rows = part.select(schema.names).to_arrow().cast(schema)
            deltalake.write_deltalake(str(tables / name), rows, mode="append")
            versions[name] += 1
    (tables / _VERSIONS).write_text(json.dumps(versions))


if __name__ == "__main__":
    main()
