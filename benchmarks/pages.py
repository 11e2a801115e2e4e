"""How fast `barnabas pages` answers from many events, and how much memory it needs.

    python -m benchmarks.pages [--events N] [--json FILE]

The events are in a Delta table of a temporary directory: visits of about seven events over ninety
days, with the tracker's heartbeats and web vitals. The process is bound to one core, and the CPU
time of each answer is the median of several. DuckDB computes fewer figures from the same columns in
the same process: those of the headlines, the timeline, and eight of the cards.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import deltalake
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from barnabas_pipeline.pages.filters import parse
from barnabas_pipeline.pages.hit_model import HitModel, read_hit_model
from barnabas_pipeline.pages.hits import Hits
from barnabas_pipeline.pages.model import Model
from barnabas_pipeline.pages.source import Options
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tables import Tables
from barnabas_pipeline.tracking.definition import TRACKING
from barnabas_pipeline.tracking.schemas import EVENTS
from benchmarks.figures import Figure, parser_of, show
from tests.kit.pipeline.event_records import event, records, take

COMMAND = "python -m benchmarks.pages"
EVENTS_READ: Final = 10_000_000
GOAL_MS: Final = 300.0
GOAL_ROWS_MS: Final = 1_000.0
_CHUNK: Final = 500_000
_LATER: Final = 10_000
_US: Final = 90 * 86_400e6
_REPEATED: Final = 5
_EVENTS_A_VISIT: Final = 7
_VISITS_A_VISITOR: Final = 2
_BEGIN_US: Final = 1_772_409_600_000_000  # 2026-03-02, a Monday
_APRIL_US: Final = 1_775_001_600_000_000
_MAY_US: Final = _APRIL_US + 30 * 86_400_000_000
_NAMES: Final = ("pageview", "click", "heartbeat", "vitals", "purchase", "error")
_WEIGHTS: Final = (0.55, 0.2, 0.14, 0.08, 0.02, 0.01)
_PAGES: Final = 2_000
_SOURCES: Final = 200

QUERIES: Final[dict[str, list[tuple[str, str]]]] = {
    "unfiltered": [],
    "one filter, page": [("page", "/page/7")],
    "one filter, source": [("source", "site-3.example")],
    "one filter, device": [("device", "phone")],
    "one filter, a month": [("since", "2026-04-01"), ("until", "2026-04-30")],
    "three filters": [("device", "phone"), ("event", "pageview"), ("source", "direct")],
}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--events", type=int, default=EVENTS_READ)
    given = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    directory = Path(tempfile.mkdtemp(prefix="barnabas-pages-"))
    try:
        figures = measure(directory, given.events)
    finally:
        shutil.rmtree(directory)
    show("pages", figures, given.json, "DuckDB")


def measure(directory: Path, events: int) -> list[Figure]:
    """Return the figures for this number of events."""
    began_s = time.monotonic()
    # Another process makes the events, because this one's memory is measured.
    maker = multiprocessing.get_context("spawn").Process(
        target=make_tables, args=(directory / "tables", events)
    )
    maker.start()
    maker.join()
    assert maker.exitcode == 0
    snapshot = snapshot_of(directory / "tables")
    print(f"made {events:,} events in {time.monotonic() - began_s:.0f} s")
    size = f"{events:,} events"
    gc.collect()
    before_mb = _memory_mb("VmRSS")
    began_s, cpu_s = time.monotonic(), time.process_time()
    model = read_hit_model("events", snapshot, 1, Options())
    assert isinstance(model, HitModel)
    load_s, load_cpu_s = time.monotonic() - began_s, time.process_time() - cpu_s
    hits = model.pages.hits
    figures = [
        Figure(f"load, {size}", "s", load_s, command=COMMAND),
        Figure(f"load, {size}, CPU", "s", load_cpu_s, command=COMMAND),
        Figure("peak memory of the load", "MB", _memory_mb("VmHWM"), command=COMMAND),
        Figure("memory after the load", "MB", _memory_mb("VmRSS") - before_mb, command=COMMAND),
        Figure("columns per event", "bytes", _bytes_of(hits) / len(hits), command=COMMAND),
    ]
    names = [each["name"] for each in model.site["dimensions"]]
    others_ms = _duckdb_ms(hits)
    for label, pairs in QUERIES.items():
        filters = parse(pairs, names)
        answer_ms = _cpu_ms(lambda filters=filters: model.compute(filters))  # type: ignore[misc]
        goal_ms = None if not pairs else GOAL_MS
        figure = Figure(f"answer, {label}", "ms", answer_ms, goal_ms, command=COMMAND)
        figures.append(figure._replace(other=others_ms[label]))
        rows_ms = _cpu_ms(lambda filters=filters: model.rows(filters, {}))  # type: ignore[misc]
        figures.append(Figure(f"rows, {label}", "ms", rows_ms, GOAL_ROWS_MS, command=COMMAND))
    later_s = _later_s(directory / "tables", model, events)
    figures.append(Figure(f"load of {_LATER:,} later events", "s", later_s, command=COMMAND))
    return figures


def _later_s(tables: Path, before: Model, events: int) -> float:
    """Return how long a model of one more batch takes."""
    period_us = (_BEGIN_US + 0.999 * _US, 0.001 * _US)
    visitors = events // _EVENTS_A_VISIT // _VISITS_A_VISITOR + 1
    batch = _batch(np.random.default_rng(5), _LATER, period_us, (events, visitors))
    deltalake.write_deltalake(str(tables / "events"), batch, mode="append")
    snapshot = snapshot_of(tables, commits=2)
    began_s = time.monotonic()
    later = read_hit_model("events", snapshot, 2, Options(), before)
    taken_s = time.monotonic() - began_s
    assert later.site["batch"] == 2
    return taken_s


def _cpu_ms(act: Callable[[], Any]) -> float:
    """Return the median CPU time, without the first time."""
    act()
    taken = []
    for _ in range(_REPEATED):
        began_s = time.process_time()
        act()
        taken.append((time.process_time() - began_s) * 1_000)
    return statistics.median(taken)


def _memory_mb(name: str) -> float:
    status = Path("/proc/self/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith(name)]
    return int(line.split()[1]) * 1_024 / 1e6


def _bytes_of(hits: Hits) -> int:
    columns = [hits.time_us, hits.hour, hits.session, hits.row, hits.is_view, hits.is_error]
    columns += [each.codes for each in hits.dimensions.values()]
    columns += [each for each in hits.sessions if isinstance(each, np.ndarray)]
    for notes in hits.notes.values():
        columns += [notes.at, *notes.columns.values()]
    return sum(each.nbytes for each in columns)


# ---- DuckDB ----

_DIMENSIONS: Final = ("source", "medium", "campaign", "device", "language", "entry")


def _duckdb_ms(hits: Hits) -> dict[str, float]:
    """Return the CPU times of DuckDB for the same columns."""
    import duckdb

    database = duckdb.connect()
    database.execute("SET threads = 1")
    columns = {"hour": hits.hour, "session": hits.session, "is_view": hits.is_view}
    columns["visitor"] = hits.sessions.visitors[hits.session]
    columns["time_us"] = hits.time_us
    for name, of in hits.dimensions.items():
        columns[name] = of.codes[hits.session] if of.of_sessions else of.codes
    table = pa.table(columns)
    database.register("columns", table)
    database.execute("CREATE TABLE hits AS SELECT * FROM columns")
    database.unregister("columns")
    del table, columns

    def code(name: str, value: str) -> str:
        return f"{name} = {hits.dimensions[name].values.numbers[value]}"

    conditions = {
        "unfiltered": "true",
        "one filter, page": code("page", "/page/7"),
        "one filter, source": code("source", "site-3.example"),
        "one filter, device": code("device", "phone"),
        "one filter, a month": f"time_us >= {_APRIL_US} AND time_us < {_MAY_US}",
        "three filters": " AND ".join(
            (code("device", "phone"), code("event", "pageview"), code("source", "direct"))
        ),
    }
    return {
        label: _cpu_ms(lambda condition=condition: _ask(database, condition))  # type: ignore[misc]
        for label, condition in conditions.items()
    }


def _ask(database: Any, condition: str) -> None:
    asked = [
        "count(*), count(DISTINCT session), count(DISTINCT visitor), count(*) FILTER (is_view)",
        *(f"{name}, count(DISTINCT session)" for name in _DIMENSIONS),
        "page, count(*) FILTER (is_view)",
        "event, count(*)",
        "hour, count(*)",
    ]
    for columns in asked:
        database.execute(f"SELECT {columns} FROM hits WHERE {condition} GROUP BY ALL").fetchall()


# ---- Events ----


def make_tables(tables: Path, events: int) -> None:
    """Write this number of events."""
    take(tables, 0, records([event("first")]))
    batches = _batches(events - 1)
    reader = pa.RecordBatchReader.from_batches(EVENTS, batches)
    deltalake.write_deltalake(str(tables / "events"), reader, mode="append")


def snapshot_of(tables: Path, commits: int = 1) -> Snapshot:
    """Return the tables with the events of further commits, which no batch has added."""
    control = Tables(tables, TRACKING).control()
    assert control is not None
    versions = {**control.versions, "events": control.versions["events"] + commits}
    return Snapshot.at(Tables(tables, TRACKING), control._replace(versions=versions))


def _batches(events: int) -> Iterator[pa.RecordBatch]:
    source = np.random.default_rng(1926)
    visitors = events // _EVENTS_A_VISIT // _VISITS_A_VISITOR + 1
    for begin in range(0, events, _CHUNK):
        count = min(_CHUNK, events - begin)
        period_us = (_BEGIN_US + begin / events * _US, count / events * _US)
        yield _batch(source, count, period_us, (begin, visitors))


def _batch(
    source: np.random.Generator, count: int, period_us: tuple[float, float], of: tuple[int, int]
) -> pa.RecordBatch:
    """Return events in order of visits, which begin in this period.

    `of`: the first offset, and the number of visitors.
    """
    begin, visitors = of
    visits = count // _EVENTS_A_VISIT + 1
    visit = np.sort(source.integers(0, visits, count))
    is_first = np.diff(visit, prepend=-1) != 0
    start_us = period_us[0] + np.sort(source.random(visits)) * period_us[1]
    step_us = np.cumsum(source.exponential(25e6, count))
    time_us = start_us[visit] + step_us - np.maximum.accumulate(np.where(is_first, step_us, 0))
    name = source.choice(len(_NAMES), count, p=_WEIGHTS)
    name[is_first] = 0
    page = (_PAGES * source.power(0.3, count)).astype(np.int64)
    origin = source.integers(0, _SOURCES, count)
    who = source.integers(0, visitors, visits)[visit]
    numbers = pa.array(np.arange(begin, begin + count))
    texts = numbers.cast(pa.string())
    columns = {
        "time": pa.array(time_us.astype(np.int64)).cast(EVENTS.field("time").type),
        "received": pa.array(time_us.astype(np.int64)).cast(EVENTS.field("time").type),
        "id": texts,
        "name": pa.array(_NAMES).take(pa.array(name)),
        "visitor": pc.binary_join_element_wise("visitor", pa.array(who).cast(pa.string()), "-"),
        "session": pa.array(visit).cast(pa.string()),
        "host": pa.array(["shop.example"] * count),
        "path": pc.binary_join_element_wise("/page", pa.array(page).cast(pa.string()), "/"),
        "referrer": _some(
            origin >= 100, [f"site-{each % 100}.example" for each in range(200)], origin
        ),
        "source": _some(origin < 20, [f"campaign-{each}" for each in range(200)], origin),
        "medium": _some(origin < 20, ["email", "social"] * 100, origin),
        "campaign": _some(origin < 20, [f"c{each}" for each in range(200)], origin),
        "screen": pa.array(["390x844", "1920x1080", "820x1180"]).take(pa.array(who % 3)),
        "language": pa.array(["en", "de", "fr", "cs", "pt-BR"]).take(pa.array(who % 5)),
        "value": pa.array(np.where(name == 4, 9.5, 0), mask=name != 4),
        "properties": _properties(source, name, texts),
        "robot": pa.array(who % 50 == 0),
        "page_view": pa.array(name == 0),
        "topic": pa.array(["events"] * count),
        "partition": pa.array(np.zeros(count, dtype=np.int32)),
        "offset": numbers,
    }
    none = {field.name: pa.nulls(count, field.type) for field in EVENTS}
    return pa.RecordBatch.from_pydict({**none, **columns}, schema=EVENTS)


def _some(is_set: Any, texts: list[str], numbers: Any) -> pa.Array:
    return pa.array(texts).take(pa.array(numbers, mask=~is_set))


def _properties(source: np.random.Generator, name: Any, texts: pa.Array) -> pa.Array:
    """Return properties of each name, of which those of the tracker contain numbers."""
    number = pa.array(source.integers(1, 100, len(name))).cast(pa.string())
    beat = pc.binary_join_element_wise(
        '{"view":"', texts, '","seconds":', number, ',"scroll":', number, "}", ""
    )
    vital = pc.binary_join_element_wise(
        '{"view":"', texts, '","ttfb":', number, ',"lcp":1', number, ',"cls":0.', number, "}", ""
    )
    named = pa.array(['{"item":"shoe-42"}', '{"value":9.5}', '{"message":"x is undefined"}', None])
    other = named.take(pa.array(np.array([3, 0, 3, 3, 1, 2])[name]))
    return pc.if_else(name == 2, beat, pc.if_else(name == 3, vital, other))


if __name__ == "__main__":
    main()
