"""The lines that show an incident, from the tables (LG-4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from barnabas_pipeline.alerts.incidents import LINES, Example, Incident, lines_of
from barnabas_pipeline.behaviour.definition import BEHAVIOUR, Behaviour
from barnabas_pipeline.logs.definition import LOGS
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.step import Query
from barnabas_pipeline.tables import Tables
from tests.kit.pipeline.log_records import in_tasks, records, send, write
from tests.kit.pipeline.web_records import line, record, table

START = datetime(2026, 3, 12, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
IMPOSSIBLE = b"260231 101500 17 INFO a.B: "


def incident(example: Example, start: datetime = START, end: datetime | None = None) -> Incident:
    return Incident("a", "rate", "subject", start, end, "summary", example)


def texts(directory: Path, layout: object, example: Example) -> list[str]:
    snapshot = Snapshot(directory, BEHAVIOUR if layout is BEHAVIOUR else LOGS)
    return [": ".join(each) for each in lines_of(incident(example), snapshot)]


def test_lg_4_lines_of_system_logs(tmp_path: Path) -> None:
    lines = [
        f"2026-03-12 09:{minute:02}:00,000 {level} [main] jobs.Run: from 192.0.2.{minute}".encode()
        for minute in range(20)
        for level in ("INFO", "ERROR")
    ]
    write(Tables(tmp_path, LOGS), 0, records("app.log", [*lines, IMPOSSIBLE + b"\xff"], 0), send)
    of_level = Example("entries", "level", ("ERROR",), None, START + 5 * MINUTE)
    found = texts(tmp_path, LOGS, of_level)
    assert len(found) == LINES
    assert found[0] == "app.log, line 12: 2026-03-12 09:05:00 ERROR jobs.Run from 192.0.2.5"
    late = of_level._replace(until=START + 6 * MINUTE, containing="192.0.2.5")
    assert len(texts(tmp_path, LOGS, late)) == 1
    address = Example("entries", containing="192.0.2.1")
    assert len(texts(tmp_path, LOGS, address)) == 2, "and not those of 192.0.2.10 to 19"
    rejected = Example("dead_letters", "file", ("/logs/app.log",))
    assert texts(tmp_path, LOGS, rejected) == [
        f"app.log, line 41: the line has an impossible time (hdfs): {IMPOSSIBLE.decode()}\\xff"
    ]


@pytest.mark.thorough
def test_lg_4_lines_of_access_logs(tmp_path: Path) -> None:
    rows = [
        record(line(status=status, path=f"/{status}"), i, position=i * 100)
        for i, status in enumerate((200, 404, 502))
    ]
    query = Query("a-query", Behaviour(), Tables(tmp_path, BEHAVIOUR), send)
    query.take(0, lambda one_pass: in_tasks(table(rows), one_pass))
    example = Example("events", "status", ("5xx",))
    assert texts(tmp_path, BEHAVIOUR, example) == [
        "access.log: 2015-05-17 10:00:00 198.18.0.1 GET /502 502"
    ]


def test_lg_4_the_identity() -> None:
    """LG-4: the alert, the subject and the start."""
    one = incident(Example("entries"))
    assert one.id == one._replace(end=START, summary="x").id
    others = {one._replace(start=START + MINUTE).id, one._replace(subject="x").id}
    assert one.id not in others and len(others) == 2
    assert one.is_of(one._replace(start=START - MINUTE))
    assert not one.is_of(one._replace(start=START - MINUTE, end=START))
    assert not one.is_of(one._replace(subject="x"))
