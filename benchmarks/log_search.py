"""How fast the pages of system logs answer: cards, and a search in millions of lines.

    python -m benchmarks.log_search [--lines N] [--json FILE]

The lines are those of a web shop, whose hosts, components and templates are drawn with fixed seeds.
They are written to tables in batches of 100,000, each of its own hour, and removed afterwards. The
model is read in this process, as the server of the pages does: the memory is what reading it adds,
of which the columns are a part. Every question is asked once; the search that is kept is asked
again. The frequent word is in a third of the lines, but in no template. The load of the machine is
printed, since everything here shares its cores.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_pipeline.arrow import to_table
from barnabas_pipeline.logs.definition import LOGS
from barnabas_pipeline.logs.schemas import ENTRIES
from barnabas_pipeline.pages.filters import Filters, parse
from barnabas_pipeline.pages.log_columns import DIMENSIONS
from barnabas_pipeline.pages.log_model import LogModel, read_log_model
from barnabas_pipeline.pages.shapes import Rows
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tables import Tables
from benchmarks.figures import Figure, parser_of, show
from tests.kit.pipeline.entry_tables import commit_entries

COMMAND = "python -m benchmarks.log_search"
LINES = 5_000_000
GOAL_BYTES, GOAL_ANSWER_S, GOAL_SEARCH_S = 100.0, 1.0, 6.0
_BATCH = 100_000
_HOSTS, _COMPONENTS, _TEMPLATES = 20, 100, 400
_BEGIN_US = 1_773_295_200_000_000
_BATCH_US = 3_600_000_000
_LINES_PER_NEEDLE = 100_000
_VERBS = ("opened", "closed", "served", "refused", "stored", "queued", "dropped", "copied")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--lines", type=int, default=LINES)
    given = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="log-search-") as directory:
        tables = Path(directory) / "tables"
        written_s = _seconds(lambda: write_lines(tables, given.lines))[0]
        print(f"written: {given.lines:,} lines in {written_s:.0f} s")
        figures = measure(tables, given.lines)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    show("search of system logs", figures, given.json)


def measure(tables: Path, lines: int) -> list[Figure]:
    """Return what reading the model and its answers took."""
    before = _resident_bytes()
    load_s, model = _seconds(
        lambda: read_log_model(Snapshot(tables, LOGS), 0, show_addresses=False)
    )
    held = (_resident_bytes() - before) / lines
    figures = [
        Figure("load", "s", load_s, command=COMMAND),
        Figure("memory, a line", "B", held, GOAL_BYTES, command=COMMAND),
        Figure("columns, a line", "B", model.columns.bytes / lines, command=COMMAND),
    ]
    for what, query in (
        ("all", ""),
        ("a host", "host=host-3"),
        (
            "errors of a day, compared",
            "level=ERROR&since=2026-03-13&until=2026-03-13&compare=before",
        ),
    ):
        took_s, answer = _seconds(lambda of=query: model.answer(_filters(of)))  # type: ignore[misc]
        print(f"cards, {what}: {answer['matching']:,} lines")
        figures.append(Figure(f"cards, {what}", "s", took_s, GOAL_ANSWER_S, command=COMMAND))
    for what, query, words in (
        ("no words", "", ""),
        ("a frequent word", "", "customer"),
        ("a frequent word, kept", "", "customer"),
        ("a word of a template", "", "verb-7"),
        ("a rare word", "", "NEEDLE"),
        ("a rare word of a host", "host=host-3", "needle"),
        ("no match", "", "haystack"),
        ("two words", "", 'customer "order 12"'),
    ):
        took_s, found = _seconds(lambda of=query, text=words: rows(model, of, text))  # type: ignore[misc]
        print(f"rows, {what}: {found['matching']:,} found, back to {found['searched_from']}")
        figures.append(Figure(f"rows, {what}", "s", took_s, GOAL_SEARCH_S, command=COMMAND))
    return figures


def rows(model: LogModel, query: str, words: str) -> Rows:
    """Return the first page of rows."""
    return model.rows(_filters(query), {"words": words})


def write_lines(directory: Path, lines: int) -> None:
    """Write so many lines to tables, in batches."""
    tables = Tables(directory, LOGS)
    texts = {
        f"{number:012x}": f"verb-{number} {_VERBS[number % len(_VERBS)]} order <num> of <*>"
        for number in range(_TEMPLATES)
    }
    for batch, first in enumerate(range(0, lines, _BATCH)):
        commit_entries(tables, batch, [_batch(batch, min(_BATCH, lines - first))], texts)


def _batch(number: int, lines: int) -> pa.Table:
    random = np.random.default_rng(number)
    template = np.minimum(random.zipf(1.3, lines) - 1, _TEMPLATES - 1)
    order = random.integers(0, 1_000_000, lines)
    is_needle = random.integers(0, _LINES_PER_NEEDLE, lines) == 0
    whom = np.where(is_needle, "the needle", np.where(order % 3 == 0, "a customer", "a guest"))
    level = random.choice(["INFO", "DEBUG", "WARN", "ERROR"], lines, p=[0.8, 0.1, 0.07, 0.03])
    time_us = np.sort(random.integers(0, _BATCH_US, lines)) + _BEGIN_US + number * _BATCH_US
    frame = pl.DataFrame(
        {
            "time": pl.Series(time_us).cast(pl.Datetime("us", "UTC")),
            "template": template,
            "host": random.integers(0, _HOSTS, lines),
            "component": template % _COMPONENTS,
            "level": level,
            "order": order,
            "whom": whom,
            "offset": np.arange(number * _BATCH, number * _BATCH + lines),
        }
    )
    verb = pl.col("template").replace_strict(
        {each: _VERBS[each % len(_VERBS)] for each in range(_TEMPLATES)}
    )
    message = pl.format("verb-{} {} order {} of {}", "template", verb, "order", "whom")
    is_trace = (pl.col("level") == "ERROR") & (pl.col("order") % 4 == 0)
    known: dict[str, Any] = {
        "received": pl.col("time"),
        "format": pl.lit("log4j"),
        "host": pl.format("host-{}", "host"),
        "component": pl.format("shop.part{}.Service", "component"),
        "message": message,
        "more": pl.when(is_trace).then(pl.lit("\n".join(_TRACE))),
        "template": pl.col("template").map_elements(lambda each: f"{each:012x}", pl.String),
        "file": pl.lit("/var/log/shop.log"),
        "file_id": pl.lit("1"),
        "position": pl.col("offset") * 100,
        "line": pl.col("offset"),
        "topic": pl.lit("system-logs"),
        "partition": pl.lit(0, pl.Int32),
    }
    made = frame.with_columns(**known)
    missing = [name for name in ENTRIES.names if name not in made.columns]
    return to_table(made.with_columns(pl.lit(None).alias(name) for name in missing), ENTRIES)


_TRACE = [
    "java.lang.IllegalStateException: stock",
    *(f"\tat shop.Basket.add(Basket.java:{n})" for n in range(12)),
]


def _filters(query: str) -> Filters:
    pairs = [tuple(each.split("=", 1)) for each in query.split("&") if each]
    return parse(((name, value) for name, value in pairs), DIMENSIONS)


def _seconds(do: Callable[[], Any]) -> tuple[float, Any]:
    began_s = time.perf_counter()
    found = do()
    return time.perf_counter() - began_s, found


def _resident_bytes() -> int:
    [resident] = [
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmRSS")
    ]
    return int(resident.split()[1]) * 1024


if __name__ == "__main__":
    main()
