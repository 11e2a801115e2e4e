"""The tables of one batch after another, and of an earlier version of the pipeline (SP-2)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from barnabas_pipeline.behaviour.definition import BEHAVIOUR, Behaviour, BehaviourWork
from barnabas_pipeline.layout import Layout
from barnabas_pipeline.places import Positions
from barnabas_pipeline.step import Query
from barnabas_pipeline.tables import Tables
from barnabas_pipeline.view import View
from barnabas_pipeline.work import Part
from tests.kit.pipeline.table_batches import in_tasks, send_nothing, snapshot_of
from tests.kit.pipeline.web_records import line, record, table

ADDED_TABLES = ("hosts", "methods", "response_times", "formats")
ADDED_COLUMNS = ("virtual_host", "response_time_us")


class EarlierWork(BehaviourWork):
    def part(self, records: pa.Table, seen: Positions) -> Part:
        whole = super().part(records, seen)
        rows = {**whole.rows, "events": whole.rows["events"].drop_columns(list(ADDED_COLUMNS))}
        parts = {name: each for name, each in whole.parts.items() if name not in ADDED_TABLES}
        return Part(rows, parts)


class Earlier(NamedTuple):
    """The pipeline before it had these tables and columns."""

    name: str = "behaviour"

    @property
    def layout(self) -> Layout:
        events = BEHAVIOUR.growing["events"]
        kept = pa.schema([field for field in events if field.name not in ADDED_COLUMNS])
        return BEHAVIOUR._replace(
            growing={**BEHAVIOUR.growing, "events": kept},
            merged={
                name: schema
                for name, schema in BEHAVIOUR.merged.items()
                if name not in ADDED_TABLES
            },
        )

    def work(self, before: View | None) -> EarlierWork:
        return EarlierWork()


def take(definition: Earlier | Behaviour, directory: Path, batch: int) -> None:
    text = line(clock=f"1{batch}:00:00", path=f"/{batch}")
    timed = b"www.example.com:443 " + text + b" 0.012"
    rows = [record(text, 2 * batch, position=200 * batch)]
    rows.append(record(timed, 2 * batch + 1, position=200 * batch + 100))
    tables = Tables(directory, definition.layout)
    query = Query("q", definition, tables, send_nothing)
    query.take(batch, lambda one_pass: in_tasks(table(rows), one_pass))


@pytest.mark.thorough
def test_sp_2_tables_of_an_earlier_version_are_continued(tmp_path: Path) -> None:
    """SP-2: rows from before have null in new columns, and new tables begin with the next batch."""
    take(Earlier(), tmp_path, 0)
    before = snapshot_of(tmp_path)
    assert before.frame("hosts").height == before.frame("formats").height == 0
    assert before.frame("events")["virtual_host"].to_list() == [None] * 2

    take(Behaviour(), tmp_path, 1)
    take(Behaviour(), tmp_path, 2)
    for tidied in (False, True):
        if tidied:
            Tables(tmp_path, BEHAVIOUR).tidy()
        found = snapshot_of(tmp_path)
        events = found.frame("events").sort("time", "position")
        hosts = [None, "www.example.com"]
        assert events["virtual_host"].to_list() == [None, None, *hosts, *hosts]
        assert events["response_time_us"].drop_nulls().to_list() == [12_000] * 2
        assert found.frame("hosts").select("virtual_host", "hits").rows() == [
            ("www.example.com", 2)
        ]
        assert found.frame("formats").sort("format").rows() == [
            ("combined", 2),
            ("vhost_combined", 2),
        ]
        assert found.frame("traffic")["hits"].sum() == 6
