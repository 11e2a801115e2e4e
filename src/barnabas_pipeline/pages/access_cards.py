"""Computes the figures of access logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import polars as pl

from barnabas_pipeline.behaviour.headlines import DEFINITIONS
from barnabas_pipeline.page.addresses import mask_addresses, mask_column
from barnabas_pipeline.pages.access_hits import PEOPLE, KeptLines, Known, read_lines
from barnabas_pipeline.pages.access_tables import missing_pages, response_times
from barnabas_pipeline.pages.filters import MISSING, Filters
from barnabas_pipeline.pages.funnel_cards import funnel_cards
from barnabas_pipeline.pages.hit_cards import Heads, Ranking, sessions_by
from barnabas_pipeline.pages.hit_headlines import ACCESS_FIGURES, headlines
from barnabas_pipeline.pages.hit_pages import HitPages
from barnabas_pipeline.pages.hit_selection import Selection
from barnabas_pipeline.pages.hit_timeline import timeline
from barnabas_pipeline.pages.hits import Array, Hits
from barnabas_pipeline.pages.session_cards import hours_of_week, next_pages, session_lengths
from barnabas_pipeline.pages.shapes import Cell, Column, Headline, Timeline
from barnabas_pipeline.pages.source import Options
from barnabas_pipeline.pages.table_rows import TableRows

_ROW_COLUMNS: Final[list[Column]] = [
    {"label": "Time", "unit": "time"},
    {"label": "Visitor", "unit": "text"},
    {"label": "Status", "unit": "text"},
    {"label": "Method", "unit": "text"},
    {"label": "Host", "unit": "text"},
    {"label": "Page", "unit": "text"},
    {"label": "Sent", "unit": "bytes"},
    {"label": "Response time", "unit": "microseconds"},
    {"label": "Referrer", "unit": "text"},
    {"label": "User agent", "unit": "text"},
]
_NEEDED: Final = (
    *("time", "client", "status", "method", "virtual_host", "path", "query", "bytes"),
    *("response_time_us", "referrer", "agent"),
)
_OF_VISITS: Final = (
    ("entry", "Entry pages", "Sessions by their first page.", True),
    ("exit", "Exit pages", "Sessions by their last page so far.", True),
    (
        "source",
        "Sources",
        "Sessions with a page by the campaign source or the host that led to their first page.",
        True,
    ),
    ("browser", "Browsers", "Sessions by browser, or by the name of the robot.", False),
    ("system", "Systems", "Sessions by operating system.", False),
    ("device", "Devices", "Sessions by kind of device.", False),
    ("country", "Countries", "Sessions by the country of the visitor's address.", False),
)


class AccessPages(HitPages):
    """The figures of access logs."""

    def __init__(
        self, table: TableRows, known: Known, options: Options, kept: KeptLines | None = None
    ) -> None:
        """`kept`: the rows that have been read already."""
        self._show = options.show_addresses
        self.table = table
        mask = _as_they_are if self._show else mask_column
        self.hits, self.kept = read_lines(table, known, mask, kept)
        self.row_columns = _ROW_COLUMNS
        self.sources = [
            *_rankings(self.hits),
            missing_pages(self.hits),
            response_times(self.hits),
            *funnel_cards(options.funnels),
            next_pages(self.hits),
            session_lengths(),
            hours_of_week(),
        ]

    def with_defaults(self, filters: Filters) -> Filters:
        """Return the filters, which select people unless they say otherwise."""
        return filters._replace(values={"who": (PEOPLE,), **filters.values})

    def headlines(self, selection: Selection, other: Selection | None) -> list[Headline]:
        found = headlines(ACCESS_FIGURES, _DEFINITIONS, selection, other)
        statuses = self.hits.dimensions["status"].values.names
        errors = [each for each in statuses if each != MISSING and int(each) >= 400]
        for each in found:
            if each["name"] == "error_share":
                each["rows"] = "&".join(f"status={status}" for status in errors) or None
        return found

    def timeline(self, selection: Selection, other: Selection | None) -> Timeline | None:
        hits = self.hits
        lines = [
            ("views", "Page views", selection.views),
            ("others", "Other requests", selection.those(~hits.is_view & ~hits.is_error)),
            ("errors", "Errors", selection.those(hits.is_error)),
        ]
        return timeline(selection, lines, None if other is None else hits.time_us[other.views])

    @property
    def table_columns(self) -> tuple[str, ...]:
        return _NEEDED

    def cells(self, row: Mapping[str, Any]) -> list[Cell]:
        query = f"?{row['query']}" if row["query"] else ""
        texts = [
            row["client"],
            row["virtual_host"],
            None if row["path"] is None else f"{row['path']}{query}",
            row["referrer"],
            row["agent"],
        ]
        if not self._show:
            texts = [None if text is None else mask_addresses(text) for text in texts]
        client, host, page, referrer, agent = texts
        return [
            round(row["time"].timestamp() * 1_000),
            client,
            None if row["status"] is None else str(row["status"]),
            row["method"],
            host,
            page,
            row["bytes"],
            row["response_time_us"],
            referrer,
            agent,
        ]


_DEFINITIONS: Final = {
    **{name: text for name, (text, _) in DEFINITIONS.items()},
    "requests": "Lines of the access log.",
    "bytes_sent": "The sizes of the responses.",
}


def _rankings(hits: Hits) -> list[Ranking]:
    of = hits.dimensions
    sessions: Heads = [("Sessions", "count")]
    page = of["page"].values
    return [
        Ranking(
            "pages",
            "Pages",
            "Page views by page: successful GET requests for anything but images, scripts, style"
            " sheets and downloads.",
            page,
            (("Page views", "count"),),
            lambda selection: [_count("page", selection, selection.views)],
            "page",
        ),
        *(
            Ranking(name, title, about, of[name].values, sessions, sessions_by(name, pages), name)
            for name, title, about, pages in _OF_VISITS
            if name in of
        ),
        _hits_by(hits, "host", "Hosts", "Requests by virtual host."),
        _hits_by(hits, "status", "Statuses", "Responses by status."),
        _hits_by(hits, "method", "Methods", "Requests by method."),
        Ranking(
            "errors",
            "Errors by page",
            "Responses with a status of 400 or above, by path.",
            page,
            (("Errors", "count"),),
            lambda selection: [_count("page", selection, selection.those(selection.hits.is_error))],
            "page",
        ),
        Ranking(
            "bytes",
            "Data sent",
            "The sizes of the responses by path.",
            page,
            (("Sent", "bytes"),),
            _bytes_by_page,
            "page",
        ),
        Ranking(
            "who",
            "People and robots",
            "Requests by kind of visitor, whichever of them is selected.",
            of["who"].values,
            (("Requests", "count"),),
            _hits_by_who,
            "who",
        ),
    ]


def _hits_by(hits: Hits, name: str, title: str, about: str) -> Ranking:
    def counts(selection: Selection) -> list[Array]:
        return [_count(name, selection, None if selection.mask is None else selection.places)]

    values = hits.dimensions[name].values
    heads: Heads = [("Requests", "count")]
    return Ranking(name, title, about, values, heads, counts, name, name == "host")


def _hits_by_who(selection: Selection) -> list[Array]:
    return [selection.without("who").count_by_sessions("who")]


def _bytes_by_page(selection: Selection) -> list[Array]:
    of, sizes = selection.hits.dimensions["page"], selection.hits.measures["bytes"]
    codes = of.codes
    if selection.mask is not None:
        codes, sizes = codes[selection.places], sizes[selection.places]
    return [np.bincount(codes, sizes, minlength=len(of.values)).astype(np.int64)]


def _count(name: str, selection: Selection, places: Array | None) -> Array:
    """Return how many of these hits, or of all, have each value of a dimension."""
    of = selection.hits.dimensions[name]
    codes = of.codes if places is None else of.codes[places]
    return np.bincount(codes, minlength=len(of.values))


def _as_they_are(texts: pl.Series) -> pl.Series:
    return texts
