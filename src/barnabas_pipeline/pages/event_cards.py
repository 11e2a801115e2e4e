"""Computes the figures of people's events."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

import numpy as np

from barnabas_pipeline.pages.event_hits import KeptEvents, read_events
from barnabas_pipeline.pages.funnel_cards import funnel_cards
from barnabas_pipeline.pages.goal_card import GoalCard
from barnabas_pipeline.pages.hit_cards import Counts, Heads, Ranking, sessions_by
from barnabas_pipeline.pages.hit_headlines import (
    EVENT_DEFINITIONS,
    EVENT_FIGURES,
    headlines,
    rows_with_values,
)
from barnabas_pipeline.pages.hit_pages import HitPages
from barnabas_pipeline.pages.hit_selection import Selection
from barnabas_pipeline.pages.hit_timeline import timeline
from barnabas_pipeline.pages.hits import Array, Hits
from barnabas_pipeline.pages.page_tables import reading, vitals
from barnabas_pipeline.pages.session_cards import (
    hours_of_week,
    next_pages,
    retention,
    session_lengths,
)
from barnabas_pipeline.pages.shapes import Cell, Column, Headline, Timeline
from barnabas_pipeline.pages.source import Options
from barnabas_pipeline.pages.table_rows import TableRows

_OF_VISITS: Final = (
    ("entry", "Entry pages", "Sessions by their first page."),
    ("exit", "Exit pages", "Sessions by their last page so far."),
    (
        "source",
        "Sources",
        "Sessions by the campaign source or the host that led to their first page.",
    ),
    ("medium", "Media", "Sessions by the medium in the address of their first page."),
    ("campaign", "Campaigns", "Sessions by the campaign in the address of their first page."),
    ("device", "Devices", "Sessions by kind of device, derived from the width of the screen."),
    ("language", "Languages", "Sessions by the language of the browser."),
    ("country", "Countries", "Sessions by the country of the visitor's address."),
    ("visitor", "New and returning", "Sessions that are a visitor's first one, and later ones."),
)
_AUTOMATIC: Final = ("heartbeat", "vitals")
"""Events that are not among the other events of the timeline, because no visitor caused them."""
_NEED_PAGES: Final = ("entry", "exit")
_OPTIONAL: Final = ("medium", "campaign", "country")
_ROW_COLUMNS: Final[list[Column]] = [
    {"label": "Time", "unit": "time"},
    {"label": "Event", "unit": "text"},
    {"label": "Host", "unit": "text"},
    {"label": "Page", "unit": "text"},
    {"label": "Value", "unit": "value"},
    {"label": "Source", "unit": "text"},
    {"label": "Language", "unit": "text"},
    {"label": "Screen", "unit": "text"},
    {"label": "Properties", "unit": "text"},
]
_WANTED: Final = (
    *("time", "name", "host", "path", "query", "value", "source", "referrer", "language"),
    *("screen", "properties"),
)


class EventPages(HitPages):
    """The figures of people's events."""

    def __init__(self, table: TableRows, options: Options, kept: KeptEvents | None = None) -> None:
        """`kept`: the rows that have been read already."""
        self.table = table
        self.hits, self.kept = read_events(table, kept)
        self.row_columns = _ROW_COLUMNS
        self.sources = [
            *_rankings(self.hits),
            next_pages(self.hits),
            vitals(self.hits),
            reading(self.hits),
            *([GoalCard(options.goals)] if options.goals else ()),
            *funnel_cards(options.funnels),
            session_lengths(),
            retention(),
            hours_of_week(),
        ]
        self._rows_with_values = rows_with_values(self.hits)
        names = self.hits.dimensions["event"]
        is_own = np.array([name not in _AUTOMATIC for name in names.values.names])
        self._is_other = is_own[names.codes] & ~self.hits.is_view & ~self.hits.is_error

    def headlines(self, selection: Selection, other: Selection | None) -> list[Headline]:
        found = headlines(EVENT_FIGURES, EVENT_DEFINITIONS, selection, other)
        for each in found:
            if each["name"] == "value":
                each["rows"] = self._rows_with_values
        return [each for each in found if each["name"] != "value" or each["value"] is not None]

    def timeline(self, selection: Selection, other: Selection | None) -> Timeline | None:
        hits = self.hits
        lines = [
            ("views", "Page views", selection.views),
            ("others", "Other events", selection.those(self._is_other)),
            ("errors", "Errors", selection.those(hits.is_error)),
        ]
        return timeline(selection, lines, None if other is None else hits.time_us[other.views])

    @property
    def table_columns(self) -> tuple[str, ...]:
        return _WANTED

    def cells(self, row: Mapping[str, Any]) -> list[Cell]:
        query = f"?{row['query']}" if row["query"] else ""
        page = None if row["path"] is None else f"{row['path']}{query}"
        return [
            round(row["time"].timestamp() * 1_000),
            row["name"],
            row["host"],
            page,
            row["value"] if row["value"] is not None and isfinite(row["value"]) else None,
            row["source"] or row["referrer"],
            row["language"],
            row["screen"],
            row["properties"],
        ]


def _rankings(hits: Hits) -> list[Ranking]:
    of = hits.dimensions
    views: Heads = [("Page views", "count")]
    sessions: Heads = [("Sessions", "count")]
    page, host, event = (of[name].values for name in ("page", "host", "event"))
    return [
        Ranking("pages", "Pages", "Page views by page.", page, views, _views_by("page"), "page"),
        *(
            Ranking(
                name,
                title,
                about,
                of[name].values,
                sessions,
                sessions_by(name, name in _NEED_PAGES),
                name,
                name in _OPTIONAL,
            )
            for name, title, about in _OF_VISITS
        ),
        Ranking("host", "Hosts", "Page views by host.", host, views, _views_by("host"), "host"),
        Ranking(
            "event",
            "Events",
            "Events by name, with the sum of their values.",
            event,
            (("Events", "count"), ("Value", "value")),
            _events_by_name,
            "event",
        ),
        Ranking(
            "errors",
            "Errors by page",
            "Events named error, by the page on which they happened.",
            page,
            (("Errors", "count"),),
            _errors_by_page,
            "page",
        ),
    ]


def _views_by(name: str) -> Counts:
    def counts(selection: Selection) -> list[Array]:
        of = selection.hits.dimensions[name]
        return [np.bincount(of.codes[selection.views], minlength=len(of.values))]

    return counts


def _events_by_name(selection: Selection) -> list[Array]:
    of = selection.hits.dimensions["event"]
    codes = of.codes if selection.mask is None else of.codes[selection.places]
    counts = np.bincount(codes, minlength=len(of.values))
    sums = np.full(len(of.values), np.nan)
    notes = selection.hits.notes.get("value")
    if notes is not None:
        at, values, is_in = notes.at, notes.columns["value"], selection.among(notes)
        if is_in is not None:
            at, values = at[is_in], values[is_in]
        has_value = np.bincount(of.codes[at], minlength=len(of.values)) > 0
        found = np.bincount(of.codes[at], values, minlength=len(of.values))
        sums[has_value] = found[has_value]
    return [counts, sums]


def _errors_by_page(selection: Selection) -> list[Array]:
    of = selection.hits.dimensions["page"]
    places = selection.those(selection.hits.is_error)
    return [np.bincount(of.codes[places], minlength=len(of.values))]
