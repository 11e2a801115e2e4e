"""What the pages say about events, compared with a plain count of the same events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset as ds  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from barnabas_pipeline.pages.event_cards import EventPages
from barnabas_pipeline.pages.filters import Filters, Period
from barnabas_pipeline.pages.hit_cards import DIRECT, SHOWN
from barnabas_pipeline.pages.hit_selection import Selection
from barnabas_pipeline.pages.shapes import Card
from barnabas_pipeline.pages.source import Options
from barnabas_pipeline.pages.table_rows import TableRows
from barnabas_pipeline.tracking.schemas import EVENTS
from tests.unit.barnabas_pipeline.pages.plain_events import MISSING, Event, Plain

BEGIN_US = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp()) * 1_000_000  # a Sunday
MINUTE_US = 60_000_000
PATHS = ("/", "/a", "/b", None)
SCALES = {"cls": 1, "seconds": 1, "scroll": 1 / 100}
"""How cells differ from the numbers that the tracker sends; the others are in milliseconds."""

TIMES = st.one_of(
    st.integers(0, 12).map(lambda step: step * 10 * MINUTE_US),
    st.integers(0, 12).map(lambda step: step * 10 * MINUTE_US),
    st.integers(0, 40).map(lambda day: day * 1_440 * MINUTE_US - day % 2),
)
"""Many pairs of events are exactly half an hour apart, and many have the same time."""
NUMBERS = st.integers(0, 9) | st.none()
PROPERTIES = st.fixed_dictionaries(
    {
        "view": st.sampled_from(("v", "v", "w", None)),
        **dict.fromkeys(("lcp", "cls", "seconds", "scroll"), NUMBERS),
    }
)
ROWS = st.fixed_dictionaries(
    {
        "us": TIMES,
        "name": st.sampled_from(
            (*("pageview",) * 4, "click", "error", *("vitals", "heartbeat") * 2)
        ),
        "visitor": st.sampled_from(("a", "a", "b", "c", None)),
        "host": st.sampled_from(("x.example", "y.example", None)),
        "path": st.sampled_from(PATHS),
        "referrer": st.sampled_from((None, "search.example", "mail.example")),
        "source": st.sampled_from((None, None, "newsletter")),
        "medium": st.sampled_from((None, "email")),
        "campaign": st.sampled_from((None, "spring")),
        "screen": st.sampled_from((None, "390x844", "820x1180", "1920x1080")),
        "language": st.sampled_from((None, "en", "de")),
        "country": st.sampled_from((None, "AT", "NZ")),
        "value": st.sampled_from((None, None, 2.0, 0.5)),
        "properties": st.one_of(*(PROPERTIES.map(json.dumps),) * 4, st.none()),
        "robot": st.sampled_from((False, False, False, True)),
        "partition": st.integers(0, 1),
    }
)
LISTS = st.lists(ROWS, min_size=20, max_size=50) | st.lists(ROWS, max_size=3)
CHOICES = {
    "host": ("x.example", MISSING),
    "page": ("/", "/a", MISSING),
    "event": ("pageview", "click", "vitals"),
    "source": (DIRECT, "newsletter", "search.example", "unknown"),
    "medium": ("email", MISSING),
    "campaign": ("spring", MISSING),
    "device": ("phone", "tablet", MISSING),
    "language": ("en", MISSING),
    "country": ("AT", MISSING),
    "entry": ("/", "/a", MISSING),
    "exit": ("/", "/b", MISSING),
    "visitor": ("new", "returning", MISSING),
}
VALUES = st.lists(st.sampled_from(sorted(CHOICES)), max_size=2, unique=True).flatmap(
    lambda names: st.fixed_dictionaries(
        {
            name: st.lists(st.sampled_from(CHOICES[name]), min_size=1, max_size=2, unique=True).map(
                tuple
            )
            for name in names
        }
    )
)
BOUNDS = st.one_of(
    *(st.none(),) * 4,
    st.integers(0, 12).map(lambda step: BEGIN_US + step * 10 * MINUTE_US),
    st.integers(0, 40).map(lambda day: BEGIN_US + day * 1_440 * MINUTE_US),
)
PERIODS = st.builds(Period, BOUNDS, BOUNDS)


def pages_of(rows: Sequence[dict[str, Any]]) -> tuple[EventPages, list[Event]]:
    """Return the pages of these events, and the events."""
    events = [
        {
            **row,
            "us": BEGIN_US + row["us"],
            "page_view": row["name"] == "pageview",
            "offset": number,
        }
        for number, row in enumerate(rows)
    ]
    stored = [{**each, "time": each["us"]} for each in events]
    table = pa.Table.from_pylist(stored, schema=EVENTS)
    # A small batch size tests that batches belong together.
    tables = [table.slice(begin, 7) for begin in range(0, len(table), 7)] or [table]
    dataset = ds.dataset(tables)
    return EventPages(TableRows(dataset, EVENTS), Options()), events


def cells_of(card: Card) -> list[list[Any]]:
    """Return the cells as `Plain` has them."""
    shown = []
    for row in card["rows"]:
        cells = list(row["cells"])
        if card["look"] == "bars":
            cells[0] = row["key"]
        elif card["look"] == "heat":
            del cells[0]
        shown.append(cells)
    return shown


def scaled(name: str, rows: list[list[Any]]) -> list[list[Any]]:
    keys = {"vitals": ("ttfb", "fcp", "lcp", "inp", "cls"), "reading": ("seconds", "scroll")}[name]
    return [
        [
            *row[:2],
            *(
                None if value is None else value * SCALES.get(key, 1_000)
                for key, value in zip(keys, row[2:], strict=True)
            ),
        ]
        for row in rows
    ]


@given(LISTS, VALUES, PERIODS)
def test_every_card_is_what_a_plain_count_says(
    rows: list[dict[str, Any]], values: dict[str, tuple[str, ...]], period: Period
) -> None:
    filters = Filters(period, values)
    pages, events = pages_of(rows)
    selection = Selection(pages.hits, filters)
    plain = Plain(events, filters)
    assert selection.matching == len(plain.hits)
    found = {each["name"]: each["value"] for each in pages.headlines(selection, None)}
    assert found == plain.headlines
    for name, expected in plain.cards().items():
        card = pages.card(name, selection, None, {})
        assert card is not None
        if name in ("vitals", "reading"):
            expected = scaled(name, expected)
        assert cells_of(card) == expected, name
        if card["look"] == "bars":
            assert all(row["key"] is not None for row in card["rows"])
    for shown in pages.cards(selection, None):
        assert len(shown["rows"]) <= SHOWN or shown["look"] in ("heat", "retention")


@given(LISTS, VALUES, PERIODS, PERIODS)
def test_a_comparison_shows_what_the_other_period_would(
    rows: list[dict[str, Any]],
    values: dict[str, tuple[str, ...]],
    period: Period,
    other: Period,
) -> None:
    pages, _ = pages_of(rows)
    both = [Selection(pages.hits, Filters(each, values)) for each in (period, other)]
    alone = {each["name"]: each["value"] for each in pages.headlines(both[1], None)}
    for each in pages.headlines(*both):
        assert each["before"] == alone[each["name"]]
    then = {
        each["name"]: each
        for each in (pages.card(of.name, both[1], None, {}) for of in pages.sources)
        if each
    }
    for source in pages.sources:
        card = pages.card(source.name, *both, {})
        assert card is not None
        if card["look"] == "bars":
            before = {row["key"]: row["cells"][1] for row in then[source.name]["rows"]}
            for row in card["rows"]:
                assert row["before"] == before.get(row["key"], 0)


@given(LISTS, VALUES, PERIODS)
def test_the_timeline_contains_each_matching_event(
    rows: list[dict[str, Any]], values: dict[str, tuple[str, ...]], period: Period
) -> None:
    pages, events = pages_of(rows)
    filters = Filters(period, values)
    plain = Plain(events, filters)
    timeline = pages.timeline(Selection(pages.hits, filters), None)
    if timeline is None:
        assert not plain.hits
        return
    begin_ms, step_ms = timeline["begins_at"], timeline["step_ms"]
    expected = {"views": "pageview", "errors": "error"}
    for series in timeline["series"]:
        assert len(series["values"]) <= 120 + 1
        if series["name"] in expected:
            wanted = [0.0] * len(series["values"])
            for each, _ in plain.hits:
                if each["name"] == expected[series["name"]]:
                    wanted[(each["us"] // 1_000 - begin_ms) // step_ms] += 1
            assert series["values"] == wanted


def test_only_the_last_vitals_of_a_page_view_count() -> None:
    def row(at: int, visitor: str, view: str, lcp: object) -> dict[str, Any]:
        properties = json.dumps({"view": view, "lcp": lcp})
        own = {"us": at, "visitor": visitor, "name": "vitals", "properties": properties}
        return {"path": "/", "robot": False, "partition": 0, **own}

    rows = [row(0, "a", "v", 0), row(1, "a", "v", 7), row(2, "b", "v", "many")]
    rows += [row(3, "c", f"{number}", number) for number in range(1, 7)]
    pages, _ = pages_of([dict.fromkeys(EVENTS.names) | each for each in rows])
    card = pages.card("vitals", Selection(pages.hits, Filters()), None, {})
    assert card is not None
    # Of the seven values 1 to 7, three quarters are at most 6; one of eight views has no number.
    assert cells_of(card) == [["/", 8, None, None, 6_000, None, None]]


def test_numbers_that_json_does_not_have_are_not_sent() -> None:
    infinite = {"path": "/", "robot": False, "partition": 0, "visitor": "a", "us": 0}
    rows = [
        {**infinite, "name": "purchase", "value": float("inf")},
        {**infinite, "name": "purchase", "value": 2.0},
        {**infinite, "name": "vitals", "properties": '{"lcp":1e999,"cls":1}'},
    ]
    pages, _ = pages_of([dict.fromkeys(EVENTS.names) | each for each in rows])
    selection = Selection(pages.hits, Filters())
    headlines = pages.headlines(selection, None)
    json.dumps([headlines, pages.cards(selection, None)], allow_nan=False)
    assert {each["name"]: each["value"] for each in headlines}["value"] == 2
