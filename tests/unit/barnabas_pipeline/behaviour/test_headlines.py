"""The headlines of the page of user behaviour, counted again from its own files (SP-5)."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from barnabas_pipeline.behaviour.definition import BEHAVIOUR
from barnabas_pipeline.behaviour.figures import read_figures
from barnabas_pipeline.behaviour.generator import write_log
from barnabas_pipeline.behaviour.headlines import headlines, summary
from barnabas_pipeline.behaviour.report import write_report
from barnabas_pipeline.behaviour.visits import SessionFigures
from barnabas_pipeline.page.page import PageOptions
from barnabas_pipeline.snapshot import Snapshot
from tests.kit.parsed_page import Page
from tests.kit.pipeline.table_batches import in_tasks, send_nothing, snapshot_of, tables_in, taken
from tests.kit.pipeline.web_records import record, table

OPTIONS = PageOptions(datetime.fromisoformat("2026-03-16T12:00:05+00:00"))
SILENCE_S = 1_800


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("headlines")
    write_log(directory / "access.log", 5_000, seed=4)
    lines = (directory / "access.log").read_bytes().splitlines()
    records = table(record(each, i, position=100 * i) for i, each in enumerate(lines))
    tasks = lambda one_pass: in_tasks(records, one_pass)  # noqa: E731
    taken(tables_in(directory / "tables"), 0, "q", tasks, send_nothing)
    write_report(
        directory / "report.html", read_figures(Snapshot(directory / "tables", BEHAVIOUR)), OPTIONS
    )
    return directory


@pytest.fixture(scope="module")
def data(out: Path) -> dict[str, list[dict[str, Any]]]:
    read: dict[str, Any] = json.loads((out / "report-data" / "report.json").read_text("utf-8"))
    return {name: rows for name, rows in read.items() if name != "made_at"}


def total(rows: list[dict[str, Any]], column: str) -> int:
    return sum(row[column] for row in rows)


@pytest.mark.thorough
def test_sp_5_each_headline_is_what_the_tables_below_it_say(
    out: Path, data: dict[str, list[dict[str, Any]]]
) -> None:
    """SP-5: from the rows of the page's files; the median, which they only have in steps, from the
    table of sessions."""
    traffic, depths, statuses = data["traffic"], data["page_views_per_session"], data["statuses"]
    hits = total(traffic, "hits_by_people") + total(traffic, "hits_by_robots")
    with_pages = sum(row["sessions"] for row in depths if row["page_views"])
    bounces = sum(row["sessions"] for row in depths if row["page_views"] == 1)
    sessions = snapshot_of(out / "tables").frame("sessions")
    people = [row for row in sessions.iter_rows(named=True) if not row["robot"]]
    seconds = [(row["end"] - row["start"]).total_seconds() for row in people]
    again = {
        "visitors": total(data["browsers"], "visitors"),
        "sessions": total(depths, "sessions"),
        "page_views": total(traffic, "page_views_by_people"),
        "bounce_rate": bounces / with_pages,
        "median_session_seconds": median(seconds),
        "robot_share": total(traffic, "hits_by_robots") / hits,
        "error_share": total(traffic, "errors") / hits,
        "bytes_sent": total(traffic, "bytes"),
    }
    assert {row["figure"]: row["total"] for row in data["summary"]} == again
    assert all(again.values()), "each is tested with something"

    # What several tables say, they say alike.
    assert (
        again["visitors"]
        == total(data["systems"], "visitors")
        == total(data["devices"], "visitors")
    )
    assert again["sessions"] == total(data["session_lengths"], "sessions") == len(people)
    assert again["page_views"] == sum(row["page_views"] * row["sessions"] for row in depths)
    assert again["page_views"] == total(data["pages"], "views_by_people")
    assert (
        with_pages == total(data["entry_pages"], "sessions") == total(data["sources"], "sessions")
    )
    assert hits == total(statuses, "hits") == total(data["files"][1:], "valid")
    errors = [row for row in statuses if row["status"] >= 400]
    assert total(traffic, "errors") == total(errors, "hits")
    assert total(traffic, "hits_by_robots") == total(data["robots"], "hits")


def test_page_and_terminal_say_the_same(out: Path, data: dict[str, list[dict[str, Any]]]) -> None:
    page = Page((out / "report.html").read_text("utf-8")).text
    figures = read_figures(Snapshot(out / "tables", BEHAVIOUR))
    abouts = {each.name: each.about for each in headlines(figures)}
    for each in headlines(figures):
        assert f"{each.text} {each.label} {each.about}" in page, each
    depths = data["page_views_per_session"]
    with_pages = sum(row["sessions"] for row in depths if row["page_views"])
    views = total(data["traffic"], "page_views_by_people")
    assert abouts["page_views"] == f"{views / with_pages:.1f} per session that has any"
    assert abouts["bounce_rate"].endswith(f" of {with_pages:,} sessions with pages")
    robot_hits = total(data["robots"], "hits")
    assert abouts["robot_share"] == f"{len(data['robots']):,} robots, {robot_hits:,} hits"
    newest = max(row["end"] for row in snapshot_of(out / "tables").frame("sessions").to_dicts())
    sessions = snapshot_of(out / "tables").frame("sessions").to_dicts()
    still = [
        row
        for row in sessions
        if not row["robot"] and (newest - row["end"]).total_seconds() < SILENCE_S
    ]
    assert abouts["sessions"] == f"{len(still):,} still open"
    of = {row["figure"]: row["total"] for row in data["summary"]}
    assert dict(summary(figures))["people"].startswith(
        f"{of['visitors']:,} visitors, {of['sessions']:,} sessions ({len(still):,} open),"
        f" {of['page_views']:,} page views, bounce rate {of['bounce_rate']:.0%}"
    )


def test_one_visitor_is_one_visitor(tmp_path: Path) -> None:
    """Numbers and their nouns agree, on the page and on the terminal."""
    one = SessionFigures(visitors=1, sessions=1, open=1, bounces=1, with_pages=1, pages=1)
    figures = read_figures(Snapshot(tmp_path, BEHAVIOUR))._replace(humans=one, robots=one)
    said = dict(summary(figures))
    assert said["people"] == "1 visitor, 1 session (1 open), 1 page view, bounce rate 100%"
    assert said["robots"] == "1 visitor, 1 session (1 open), 1 page view"
    labels = {each.name: each.label for each in headlines(figures)}
    assert [labels[name] for name in ("visitors", "sessions", "page_views")] == [
        *("visitor", "session", "page view")
    ]
