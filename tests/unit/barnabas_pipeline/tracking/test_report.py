"""BT-4, BT-5, BT-6: what the page of the events says, from hand-made events."""

from __future__ import annotations

import csv
import json
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from barnabas.errors import ConfigError
from barnabas_pipeline.__main__ import main
from barnabas_pipeline.page.page import PageOptions
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tracking.definition import TRACKING
from barnabas_pipeline.tracking.figures import read_figures
from barnabas_pipeline.tracking.funnels import Funnel, parse_funnel
from barnabas_pipeline.tracking.generator import write_events
from barnabas_pipeline.tracking.goals import Goal
from barnabas_pipeline.tracking.report import write_page
from barnabas_pipeline.tracking.retention import Cohort
from tests.kit.parsed_page import Page
from tests.kit.pipeline.event_records import DAY_MS, MINUTE_MS, MONDAY_MS, event, records, take

OPTIONS = PageOptions(datetime.fromisoformat("2026-03-16T12:00:05+00:00"))
HOSTILE = "<script>alert(1)</script>"
ORDER = Funnel("Order", ("/shop/*", "/basket", "purchase"), timedelta(hours=1))


@pytest.fixture
def shop(tmp_path: Path) -> Snapshot:
    """Two visitors of the first week, of whom one comes back twice, and one of the second week."""
    week_ms = 7 * DAY_MS
    steps = [
        ("a", 0, "pageview", "/shop/honey"),
        ("a", 1, "pageview", "/about"),
        ("a", 2, "pageview", "/basket"),
        ("a", 3, "purchase", "/basket"),
        ("b", 0, "pageview", "/shop/candles"),
        ("b", 70, "pageview", "/basket"),  # too late
        ("b", 80, "purchase", "/basket"),
        ("c", 0, "pageview", "/basket"),  # without the first step
        ("c", 1, "pageview", "/shop/honey"),
        ("c", 2, "pageview", "/basket"),
    ]
    weeks = {"a": 0, "b": 0, "c": week_ms}
    events = [
        event(
            f"{number}",
            MONDAY_MS + weeks[visitor] + minute * MINUTE_MS,
            name,
            path,
            f"visitor-{visitor}",
            properties={"value": 10} if name == "purchase" else {},
        )
        for number, (visitor, minute, name, path) in enumerate(steps)
    ]
    events += [
        event("back1", MONDAY_MS + week_ms, path="/about", visitor="visitor-a"),
        event("back2", MONDAY_MS + 3 * week_ms, path="/about", visitor="visitor-a"),
        event("robot", MONDAY_MS, path="/shop/x", visitor="visitor-r", bot=True),
        event("html", path=f"/{HOSTILE}", name=HOSTILE, visitor=None, language="en"),
        {**event("bad"), "name": HOSTILE * 10},
    ]
    return take(tmp_path / "tables", 0, records(events))


def test_bt_4_funnels_retention_and_paths(shop: Snapshot) -> None:
    """BT-4: computed by hand."""
    figures = read_figures(shop, [ORDER])
    [funnel] = figures.funnels
    assert [(step.visits, step.lost) for step in funnel.steps] == [(3, 0), (2, 1), (1, 1)]
    assert funnel.conversion == 1 / 3 and funnel.within == "1 hour"
    assert figures.cohorts == [
        Cohort(date(2026, 3, 2), [2, 1, 0, 1]),
        Cohort(date(2026, 3, 9), [1, 0, 0]),
    ]
    assert (figures.people.visitors, figures.people.sessions, figures.returning) == (3, 6, 2)
    following = {(each.page, each.next): each.times for each in figures.next_pages}
    assert following == {
        ("/shop/honey", "/about"): 1,
        ("/about", "/basket"): 1,
        ("/basket", "/shop/honey"): 1,
        ("/shop/honey", "/basket"): 1,
    }
    assert {each.name: each.value for each in figures.names}["purchase"] == 20
    assert figures.robots == 1


def test_bt_4_goals(shop: Snapshot, tmp_path: Path) -> None:
    """BT-4: computed by hand; robots reach no goal."""
    goals = [Goal("Order", "purchase"), Goal("Shop", "/shop/*"), Goal("None", "/nowhere")]
    figures = read_figures(shop, (), goals)
    assert [each[1:5] for each in figures.goals] == [
        (2, 2, 2 / 3, 20.0),
        (3, 3, 1.0, 0.0),
        (0, 0, 0.0, 0.0),
    ]
    assert figures.comparison is not None and figures.comparison.length.days == 7
    # In the last week, somebody only returned.
    assert [each[5:] for each in figures.goals] == [(0, 0), (0, 1), (0, 0)]
    report = write_page(shop, tmp_path / "report.html", OPTIONS, (), goals)
    assert ("goal", "Order: 2 times, by 2 visitors (67%), value 20.00") in report.summary
    text = " ".join(Page((tmp_path / "report.html").read_text("utf-8")).text.split())
    assert "Order 2 visitors, 67%; 0 in the last 7 days, 0 before" in text
    with (tmp_path / "report-data" / "goals.csv").open(newline="") as file:
        assert [*csv.reader(file)][1] == [
            *("Order", "purchase", "2", "2", "0.666667", "20.0", "0", "0")
        ]


def test_bt_4_goals_of_two_periods(tmp_path: Path) -> None:
    """BT-4: each period has its own number."""
    events = [
        event(f"{day}-{number}", MONDAY_MS + day * DAY_MS + number, "purchase")
        for day, times in enumerate((3, 0, 1, 2))
        for number in range(times)
    ]
    shop = take(tmp_path, 0, records([*events, event("end", MONDAY_MS + 4 * DAY_MS - 1)]))
    [goal] = read_figures(shop, (), [Goal("Order", "purchase")]).goals
    assert (goal.times, goal.last, goal.before) == (6, 3, 3)


def test_bt_5_the_page_says_it_and_runs_nothing(shop: Snapshot, tmp_path: Path) -> None:
    """BT-5, BT-6: an event with HTML in its fields is text on the page."""
    path = tmp_path / "report.html"
    report = write_page(shop, path, OPTIONS, [ORDER])
    html = path.read_text("utf-8")
    assert HOSTILE not in html and "<script" not in html
    text = Page(html).text
    for expected in ("Funnel: Order", "Retention", "3 visitors", "33%", "1 event was rejected"):
        assert expected in " ".join(text.split()), expected
    with (tmp_path / "report-data" / "funnels.csv").open(newline="") as file:
        assert [*csv.reader(file)][1:] == [
            ["Order", "/shop/*", "3", "0"],
            ["Order", "/basket", "2", "1"],
            ["Order", "purchase", "1", "1"],
        ]
    assert dict(report.summary)["funnel"] == "Order: /shop/* 3 > /basket 2 > purchase 1 (33.3%)"


def test_a_page_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    report = write_page(Snapshot(tmp_path / "tables", TRACKING), path, OPTIONS, [ORDER])
    assert report.accounts.read == 0
    assert "nothing yet" in path.read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "funnel"),
    [
        ("Order: /basket > purchase", Funnel("Order", ("/basket", "purchase"))),
        ("A: a>b>/c/* within 30 min", Funnel("A", ("a", "b", "/c/*"), timedelta(minutes=30))),
        ("A: from within > b within 7 d", Funnel("A", ("from within", "b"), timedelta(days=7))),
    ],
)
def test_a_funnel_is_parsed(text: str, funnel: Funnel) -> None:
    assert parse_funnel(text) == funnel


@pytest.mark.parametrize(
    "text", ["", "a > b", "A:", "A: /a", "A: /a > ", ": a > b", "A:" + "a>" * 30]
)
def test_a_wrong_funnel_says_how_to_write_it_ux_4(text: str) -> None:
    with pytest.raises(ConfigError, match="write it as 'Order: /basket > /checkout > purchase'"):
        parse_funnel(text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--funnel", "A: /a > /b"], "--funnel is for --pipeline events"),
        (["--pipeline", "logs", "--funnel", "A: /a > /b"], "--funnel is for --pipeline events"),
        (["--pipeline", "events", "--zone", "UTC"], "--zone is not for --pipeline events"),
        (["--pipeline", "events", "--funnel", "A"], "the title is missing"),
        (["--goal", "A: a"], "--goal is for --pipeline events"),
        (["--pipeline", "events", "--goal", "A"], "write it as 'Order: purchase'"),
        (["--pipeline", "events", "--goal", "A: /a > /b"], "a goal has one step"),
        (["--pipeline", "events", *["--goal", "A: a"] * 21], "at most 20 goals"),
    ],
)
def test_options_that_do_not_fit_are_refused_ux_4(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--out", str(tmp_path / "out"), *options]) == 1
    assert message in capsys.readouterr().err


def test_generated_events_are_the_same_for_the_same_seed(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_events(tmp_path / name, 500, seed=7)
    lines = (tmp_path / "one").read_bytes()
    assert lines == (tmp_path / "two").read_bytes()
    found = [json.loads(line) for line in lines.splitlines()]
    assert len(found) == 500
    assert [each["received"] for each in found] == sorted(each["received"] for each in found)
