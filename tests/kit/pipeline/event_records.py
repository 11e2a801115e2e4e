"""Events as `barnabas track serve` stores them, and batches of them in tables, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.step import Query
from barnabas_pipeline.tables import Tables
from barnabas_pipeline.tracking.definition import TRACKING, Tracking
from tests.kit.pipeline.table_batches import in_tasks, send_nothing
from tests.kit.pipeline.web_records import record, table

SHOP = "https://shop.example"
MONDAY_MS = int(datetime(2026, 3, 2, tzinfo=UTC).timestamp()) * 1_000
MINUTE_MS = 60_000
DAY_MS = 86_400_000


def event(
    id_: str,
    at_ms: int = MONDAY_MS,
    name: str = "pageview",
    path: str = "/",
    visitor: str | None = "visitor-a",
    **more: Any,
) -> dict[str, Any]:
    """An event that arrived when it happened, unless `received` says otherwise."""
    made = {"id": f"{id_:0>8}", "time": at_ms, "name": name, "url": f"{SHOP}{path}"}
    if visitor is not None:
        made["visitor"] = visitor
    return {**made, "received": at_ms, "bot": False, "private": False, **more}


def records(events: Iterable[object], partitions: int = 2, first: int = 0) -> pa.Table:
    """Records of the topic; an event that is bytes is a value as it is."""
    return table(
        record(
            each if isinstance(each, bytes) else json.dumps(each).encode(),
            first + number,
            partition=number % partitions,
        )
        for number, each in enumerate(events)
    )


def take(directory: Path, batch: int, rows: pa.Table, tracking: Tracking | None = None) -> Snapshot:
    """Take a batch into the tables in `directory`, and return their state.

    `tracking`: that of the process, which a restart replaces.
    """
    query = Query("q", tracking or Tracking(), Tables(directory, TRACKING), send_nothing)
    query.take(batch, lambda one_pass: in_tasks(rows, one_pass))
    return Snapshot(directory, TRACKING)
