"""The models of real tables: their headlines, their rows, and what needs attention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from barnabas.console.problem import WebProblem
from barnabas_pipeline.behaviour import figures as access_figures
from barnabas_pipeline.behaviour.definition import BEHAVIOUR
from barnabas_pipeline.behaviour.generator import write_log
from barnabas_pipeline.behaviour.headlines import headlines as access_headlines
from barnabas_pipeline.pages.filters import Filters, parse
from barnabas_pipeline.pages.model import Model
from barnabas_pipeline.pages.source import Options, Source
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tracking.definition import TRACKING
from barnabas_pipeline.tracking.figures import read_figures
from barnabas_pipeline.tracking.funnels import parse_funnel
from barnabas_pipeline.tracking.generator import generate
from barnabas_pipeline.tracking.goals import parse_goal
from tests.kit.pipeline.event_records import event, records, take
from tests.kit.pipeline.table_batches import in_tasks, send_nothing, tables_in, taken
from tests.kit.pipeline.web_records import line, record, table

FUNNELS = [
    parse_funnel("Order: /basket > /checkout > purchase"),
    parse_funnel("Soon: /* > /basket > purchase within 5 min"),
    parse_funnel("Never: /none > purchase"),
]
GOALS = [
    parse_goal("Order: purchase"),
    parse_goal("Shop: /shop/*"),
    parse_goal("Never: /none"),
]
ALL = Filters()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("shop")
    lines = [each.encode() for each in generate(3_000, seed=5)]
    for batch, begin in enumerate(range(0, len(lines), 1_500)):
        rows = records(lines[begin : begin + 1_500], first=begin)
        take(out / "tables", batch, rows)
    return out


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("log")
    write_log(out / "access.log", 4_000, seed=4)
    lines = (out / "access.log").read_bytes().splitlines()
    rows = table(record(each, i, position=100 * i) for i, each in enumerate(lines))
    tasks = lambda one_pass: in_tasks(rows, one_pass)  # noqa: E731
    taken(tables_in(out / "tables"), 0, "q", tasks, send_nothing)
    return out


def filters_of(model: Model, address: str) -> Filters:
    return parse(parse_qsl(address), [each["name"] for each in model.site["dimensions"]])


def headlines_of(model: Model, filters: Filters = ALL) -> Mapping[str, Any]:
    return {each["name"]: each["value"] for each in model.answer(filters)["headlines"]}


def cells(model: Model, name: str, filters: Filters = ALL) -> list[list[Any]]:
    return [row["cells"] for row in model.card(name, filters, {})["rows"]]


def test_events_have_the_figures_of_the_page_in_a_file(shop: Path) -> None:
    model = Source(shop, Options(FUNNELS, GOALS)).model()
    figures = read_figures(Snapshot(shop / "tables", TRACKING), FUNNELS, GOALS)
    people = figures.people
    found = headlines_of(model)
    assert found["visitors"] == people.visitors > 100
    assert found["sessions"] == people.sessions
    assert found["page_views"] == people.pages
    assert found["bounce_rate"] == pytest.approx(people.bounce_rate)
    assert found["median_session_seconds"] == people.median_length_s
    assert found["value"] == pytest.approx(sum(each.value for each in figures.names))
    assert cells(model, "pages") == [[each.name, each.total] for each in figures.pages]
    assert cells(model, "entry") == [[each.name, each.total] for each in figures.entry_pages]
    assert cells(model, "exit") == [[each.name, each.total] for each in figures.exit_pages]
    assert cells(model, "lengths") == [[*each] for each in figures.lengths]
    assert [row[:2] for row in cells(model, "event")] == [
        [each.name, each.events] for each in figures.names
    ]
    weeks = [[each.week.isoformat(), *each.active] for each in figures.cohorts]
    assert [
        [cell for cell in row if cell is not None] for row in cells(model, "retention")
    ] == weeks
    for number, funnel in enumerate(figures.funnels, 1):
        steps = [[step.name, step.visits, step.lost] for step in funnel.steps]
        assert [[row[0], row[1], row[3]] for row in cells(model, f"funnel-{number}")] == steps
    assert figures.funnels[0].steps[2].visits > 10
    assert cells(model, "goals") == [
        [each.goal.title, each.times, each.visitors, each.share, each.value or None]
        for each in figures.goals
    ]
    assert figures.goals[0].value > 10 and figures.goals[1].times > 100


def test_goals_follow_filters_and_are_compared(shop: Path) -> None:
    model = Source(shop, Options(goals=GOALS)).model()
    days = "since=2026-03-20&until=2026-03-29&compare=before"
    [order, *_] = model.card("goals", filters_of(model, days), {})["rows"]
    [earlier, *_] = model.card("goals", filters_of(model, "since=2026-03-10&until=2026-03-19"), {})[
        "rows"
    ]
    assert order["cells"][-1] == earlier["cells"][1] != order["cells"][1]
    [none, *_] = model.card("goals", filters_of(model, "event=click"), {})["rows"]
    assert none["cells"][1:] == [0, 0, 0.0, None]


def test_an_access_log_has_the_figures_of_the_page_in_a_file(log: Path) -> None:
    model = Source(log, Options()).model()
    figures = access_figures.read_figures(Snapshot(log / "tables", BEHAVIOUR))
    expected = {each.name: each.total for each in access_headlines(figures)}
    found = headlines_of(model)
    for name in ("visitors", "sessions", "page_views", "bounce_rate", "median_session_seconds"):
        assert found[name] == pytest.approx(expected[name])
        assert found[name] > 0
    everyone = filters_of(model, "who=people&who=robots")
    of_all = headlines_of(model, everyone)
    assert of_all["requests"] == figures.hits
    assert of_all["error_share"] == pytest.approx(expected["error_share"])
    assert of_all["bytes_sent"] == expected["bytes_sent"]
    robots = headlines_of(model, filters_of(model, "who=robots"))
    assert robots["sessions"] == figures.robots.sessions
    assert cells(model, "pages") == [[row.name, row.total] for row in figures.rankings.pages]
    assert cells(model, "entry") == [[row.name, row.total] for row in figures.rankings.entry_pages]
    sources = [[row.name, row.total] for row in figures.rankings.sources]
    assert sorted(cells(model, "source")) == sorted(sources)
    statuses = [[str(status), hits] for status, hits in figures.statuses]
    assert sorted(cells(model, "status", everyone)) == statuses
    errors = [[row.name, row.total] for row in figures.rankings.errors]
    assert cells(model, "errors", everyone) == errors
    assert sum(row[2] for row in cells(model, "missing", everyone)) == sum(
        each.people_hits + each.robot_hits for each in figures.missing
    )


def test_headlines_link_to_their_own_rows_or_to_none(shop: Path, log: Path, tmp_path: Path) -> None:
    events = Source(shop, Options()).model()
    rows = {each["name"]: each["rows"] for each in events.answer(ALL)["headlines"]}
    values = [row[4] for row in events.rows(filters_of(events, rows["value"] or ""), {})["rows"]]
    assert rows["value"] and values and None not in values
    assert "purchase" in rows["value"] and rows["events"] == ""
    lines = Source(log, Options()).model()
    rows = {each["name"]: each["rows"] for each in lines.answer(ALL)["headlines"]}
    assert rows["page_views"] is None and "status=404" in (rows["error_share"] or "")
    # No filter separates the clicks with a value from the others.
    both = [event("1", name="click", properties={"value": 2}), event("2", name="click")]
    take(tmp_path / "tables", 0, records(both))
    model = Source(tmp_path, Options()).model()
    rows = {each["name"]: each["rows"] for each in model.answer(ALL)["headlines"]}
    assert rows["value"] is None


def test_the_who_card_shows_both_although_robots_are_excluded(log: Path) -> None:
    model = Source(log, Options()).model()
    assert {row[0] for row in cells(model, "who")} == {"people", "robots"}
    assert model.answer(ALL)["matching"] < sum(row[1] for row in cells(model, "who"))


@pytest.mark.parametrize("address", ["", "page=/basket", "source=newsletter&event=pageview"])
def test_pages_of_rows_contain_each_matching_row_once(shop: Path, address: str) -> None:
    model = Source(shop, Options()).model()
    filters = filters_of(model, address)
    seen, cursor = [], ""
    while True:
        page = model.rows(filters, {"before": cursor, "limit": "70"})
        seen += page["rows"]
        cursor = page["next"]
        if not cursor:
            break
    assert page["matching"] == len(seen) == model.answer(filters)["matching"] > 20
    times = [row[0] for row in seen]
    assert times == sorted(times, reverse=True)
    header, *rows = model.all_rows(filters, {})
    assert header == [column["label"] for column in page["columns"]]
    assert sorted(map(repr, rows)) == sorted(map(repr, seen))
    if address.startswith("page"):
        assert {row[3].partition("?")[0] for row in rows} == {"/basket"}


@pytest.mark.parametrize("options", [{"before": "x"}, {"before": "1-"}, {"limit": "-3"}])
def test_unusable_options_of_rows_are_problems(shop: Path, options: dict[str, str]) -> None:
    model = Source(shop, Options()).model()
    with pytest.raises(WebProblem, match=next(iter(options))):
        model.rows(ALL, options)


def test_a_funnel_in_the_address(shop: Path) -> None:
    model = Source(shop, Options(FUNNELS)).model()
    options = {"step": "/basket\n/checkout\npurchase", "within": "1d"}
    asked = model.card("funnel", ALL, options)
    assert [row["cells"] for row in asked["rows"]] == cells(model, "funnel-1")
    for wrong in ({}, {"step": "/basket"}, {"step": "/a\n/b", "within": "1 year"}):
        with pytest.raises(WebProblem, match=r"step|within"):
            model.card("funnel", ALL, wrong)
    with pytest.raises(WebProblem) as caught:
        model.card("none", ALL, {})
    assert caught.value.status == 404


@pytest.fixture
def noisy(tmp_path: Path) -> Path:
    """A log with a burst of server errors at 05:00, and addresses everywhere."""

    def lines() -> Iterator[bytes]:
        for hour in range(9):
            for minute in range(50):
                status = 503 if hour == 5 and minute < 30 else 200
                yield line(
                    "198.18.7.77",
                    f"{hour:02}:{minute:02}:00",
                    f"/from/198.18.7.{minute}",
                    status=status,
                    referrer=f"https://198.18.9.{minute}/",
                )
        yield b"not a line from 198.18.7.77"

    rows = table(record(each, i, position=i) for i, each in enumerate(lines()))
    tasks = lambda one_pass: in_tasks(rows, one_pass)  # noqa: E731
    taken(tables_in(tmp_path / "tables"), 0, "q", tasks, send_nothing)
    return tmp_path


def test_what_needs_attention_has_an_address_that_shows_it(noisy: Path) -> None:
    model = Source(noisy, Options()).model()
    rejected, burst = model.answer(ALL)["concerns"]
    assert rejected["title"] == "1 line was rejected" and rejected["link"] == ""
    assert burst["title"] == "30 server errors (5xx)" and burst["is_urgent"]
    assert model.answer(filters_of(model, burst["link"]))["matching"] == 30


def test_no_full_address_is_shown_unless_asked_for(noisy: Path) -> None:
    masked, whole = (Source(noisy, Options(show_addresses=each)).model() for each in (False, True))
    for model in (masked, whole):
        shown = [repr(model.answer(ALL)), repr(model.rows(ALL, {}))]
        shown += [repr(model.card(name, ALL, {})) for name in ("pages", "source", "missing")]
        assert ("198.18.7.x" in "".join(shown)) == (model is masked)
        assert ("198.18.7.1" in "".join(shown)) == (model is whole)
        assert ("198.18.9.1" in "".join(shown)) == (model is whole)


def test_tables_without_a_row(tmp_path: Path) -> None:
    take(tmp_path / "tables", 0, records([b"not an event"]))
    model = Source(tmp_path, Options(FUNNELS)).model()
    answer = model.answer(ALL)
    assert answer["matching"] == 0 and answer["timeline"] is None
    assert [each["name"] for each in answer["cards"]] == ["funnel-1", "funnel-2", "funnel-3"]
    assert model.site["begins_at"] is None and model.site["title"] == ""
    assert model.rows(ALL, {})["rows"] == []
    assert len(list(model.all_rows(ALL, {}))) == 1


def test_a_wrong_year_does_not_make_the_timeline_long(tmp_path: Path) -> None:
    events = [event("1", name="purchase", properties={"value": 2}), event("2", 250_000_000_000_000)]
    take(tmp_path / "tables", 0, records(events))
    model = Source(tmp_path, Options()).model()
    answer = model.answer(ALL)
    assert answer["matching"] == 2
    timeline = answer["timeline"]
    assert timeline is not None and len(timeline["series"][0]["values"]) <= 121
    assert sum(timeline["series"][0]["values"]) == 1
    assert len(model.rows(ALL, {})["rows"]) == 2
