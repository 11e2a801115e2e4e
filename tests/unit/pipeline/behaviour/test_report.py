"""The page: it stands alone, and bears nothing, little, and hostile input."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path

from barnabas.pipeline.behaviour.figures import (
    Accounts,
    DeadLetters,
    Figures,
    Ranking,
    SessionFigures,
    read_figures,
)
from barnabas.pipeline.behaviour.report import render, write_report
from barnabas.pipeline.behaviour.timeline import Moment, Timeline
from barnabas.pipeline.page.page import PageOptions

OPTIONS = PageOptions(datetime.fromisoformat("2026-03-16T12:00:05+00:00"))
HOSTILE = "<script>alert(1)</script>"


def figures(intervals: int) -> Figures:
    begin, hour = datetime.fromisoformat("2026-03-02"), timedelta(hours=1)
    moments = [Moment(begin + i * hour, i % 7, i % 3, i % 5, i % 2) for i in range(intervals)]
    classes = [(begin + i * hour, {"2xx": i, "5xx": i % 2}) for i in range(intervals)]
    heat = [[float(hour * day) for hour in range(24)] for day in range(7)]
    return Figures(
        accounts=Accounts(10, 7, 2, 1),
        files=[(f"/logs/{HOSTILE}", Accounts(10, 7, 2, 1))],
        humans=SessionFigures(3, 4, 1, 2, 4, 9, 61.0),
        robots=SessionFigures(),
        timeline=Timeline(hour, moments, hour, classes, heat, 123_456),
        lengths=[("0 s", 3), ("1–9 s", 0), ("an hour or more", 1)],
        rankings=[Ranking("Pages", "views", [(HOSTILE, 3), ("/", 1)]), Ranking("None", "x", [])],
        statuses=[(200, 7), (500, 1)],
        dead_letters=[DeadLetters("not UTF-8", 2, [("access.log, line 7", HOSTILE)])],
    )


def test_the_page_needs_nothing_else_sp_5() -> None:
    """SP-5: no network, no script, no other file; and what it is told is in it."""
    page = render(figures(100), OPTIONS)
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert not re.search(r"(?:src|href)\s*=|url\(|@import", page)
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert page.count('<div class="picture">') == 4
    for told in ("10</b> <em>read", "not UTF-8", "access.log, line 7", "1 min 1 s", "123 kB"):
        assert told in page


def test_a_page_of_little_and_of_nothing(tmp_path: Path) -> None:
    for intervals in (1, 2):
        assert "nan" not in render(figures(intervals), OPTIONS)
    nothing = read_figures(tmp_path / "tables")
    assert nothing.accounts == Accounts()
    path = tmp_path / "report.html"
    write_report(path, nothing, OPTIONS)
    assert "nothing yet" in path.read_text("utf-8")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_numbers_that_do_not_add_up_are_shown_as_such() -> None:
    broken = figures(3)._replace(accounts=Accounts(10, 7, 1, 1))
    assert "does not add up" in render(broken, OPTIONS)
