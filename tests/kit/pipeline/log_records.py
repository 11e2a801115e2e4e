"""System logs as records of a topic, and batches of them into tables without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_collector.headers import FILE, FILE_ID, HOST, LINE, POSITION
from barnabas_formats.catalogue import catalogue
from barnabas_formats.format import Format
from barnabas_pipeline.logs.definition import LOGS, SystemLogs
from barnabas_pipeline.logs.log_lines import values
from barnabas_pipeline.logs.log_records import parse_texts
from barnabas_pipeline.one_pass import OnePass
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.step import Query, Send
from barnabas_pipeline.tables import Tables
from tests.kit.pipeline.web_records import SCHEMA

QUERY = "a-query"
RECEIVED = datetime(2026, 11, 24, tzinfo=UTC)
CATALOGUE = catalogue("system")
KNOWN = SystemLogs(CATALOGUE)
# A line with that very time would seem to have none.
_RECEIVED_US = int(RECEIVED.timestamp() * 1e6) + 1


def parsed(*lines: str, formats: Sequence[Format] = CATALOGUE) -> list[dict[str, object]]:
    """What lines say, as a sample of a format says it."""
    count = len(lines)
    rows = parse_texts(
        pl.Series([line.encode() for line in lines]),
        pl.Series([False] * count),
        pl.Series([_RECEIVED_US] * count),
        formats,
    )
    shown = rows.drop("record", "item", "letter")
    return [values(row, _RECEIVED_US) for row in shown.to_dicts()]


def records(file: str, lines: Sequence[bytes], partition: int, first: int = 0) -> pa.Table:
    """Those of a file from line `first` (from 0) on; a line's offset is its number."""
    rows = []
    for number, line in enumerate(lines, first):
        headers = {
            FILE: f"/logs/{file}".encode(),
            FILE_ID: file.encode(),
            POSITION: b"%d" % (number * 1_000),
            LINE: b"%d" % (number + 1),
            HOST: b"gate",
        }
        rows.append(
            {
                "key": file.encode(),
                "value": line,
                "topic": "system-logs",
                "partition": partition,
                "offset": number,
                "timestamp": RECEIVED,
                "timestampType": 0,
                "headers": [{"key": key, "value": value} for key, value in headers.items()],
            }
        )
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def in_tasks(batch: pa.Table, one_pass: OnePass, tasks: int = 2) -> Iterator[tuple[str, bytes]]:
    """Each has the partitions of one remainder; the last task ends first."""
    for task in reversed(range(tasks)):
        partitions = [each for each in range(8) if each % tasks == task]
        own = batch.filter(pa.compute.is_in(batch["partition"], pa.array(partitions, pa.int32())))
        if own.num_rows:
            yield from one_pass.results(own)


def write(tables: Tables, number: int, batch: pa.Table, send: Send, *, tasks: int = 2) -> None:
    query = Query(QUERY, KNOWN, tables, send)
    query.take(number, lambda one_pass: in_tasks(batch, one_pass, tasks))


def contents(directory: Path) -> dict[str, Counter[str]]:
    """The rows of each table, as readers have them."""
    snapshot = Snapshot(directory, LOGS)
    return {name: Counter(map(repr, snapshot.frame(name).iter_rows())) for name in LOGS.all}


def send(letters: pa.Table, batch: int, *, since: Mapping[int, int]) -> dict[int, int]:
    return {}
