"""Defines the tables of access logs: missing pages, and response times."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from barnabas_pipeline.behaviour.rankings import NO_REFERRER
from barnabas_pipeline.pages.hit_cards import Heads, Listing, row_of
from barnabas_pipeline.pages.hit_quantiles import Quantiles
from barnabas_pipeline.pages.hit_selection import Selection
from barnabas_pipeline.pages.hits import Hits
from barnabas_pipeline.pages.shapes import Row

_FEWEST_TIMED: Final = 5
_MISSING: Final[Heads] = [("Page", "text"), ("Referrer", "text"), ("Requests", "count")]
_TIMES: Final[Heads] = [
    ("Page", "text"),
    ("95% within", "microseconds"),
    ("Half within", "microseconds"),
    ("Requests", "count"),
]


def missing_pages(hits: Hits) -> Listing:
    """Return the card of the paths that do not exist, with their referrers."""
    page = hits.dimensions["page"]
    notes = hits.notes.get("missing")
    links = [NO_REFERRER, *hits.note_values["referrer"].names[1:]]

    def rows(selection: Selection, most: int | None) -> list[Row]:
        if notes is None:
            return []
        is_in = slice(None) if selection.mask is None else selection.among(notes)
        at, referrers = notes.at[is_in], notes.columns["referrer"][is_in]
        pairs = pl.DataFrame({"page": page.codes[at], "referrer": referrers})
        names = page.values.names
        found = [
            (names[path], links[link], count)
            for path, link, count in pairs.group_by("page", "referrer").len().iter_rows()
        ]
        found.sort(key=lambda each: (-each[2], each[:2]))
        return [row_of(path, path, link, count) for path, link, count in found[:most]]

    about = "Responses with the status 404, by path and by the page with the link."
    return Listing("missing", "Not found", about, "table", _MISSING, rows, "page")


def response_times(hits: Hits) -> Listing:
    """Return the card of the paths with the longest response times."""
    page = hits.dimensions["page"]
    notes = hits.notes.get("time")
    quantiles = None if notes is None else Quantiles(page.codes[notes.at], notes.columns["time"])

    def rows(selection: Selection, most: int | None) -> list[Row]:
        if quantiles is None or notes is None:
            return []
        counts, half, slow = quantiles.of(selection.among(notes), len(page.values), (0.5, 0.95))
        found = np.flatnonzero(counts >= min(_FEWEST_TIMED, max(1, int(counts.sum()))))
        names = page.values.names
        order = sorted(found.tolist(), key=lambda at: (-slow[at], -counts[at], names[at]))
        return [
            row_of(names[at], names[at], float(slow[at]), float(half[at]), int(counts[at]))
            for at in order[:most]
        ]

    about = (
        "The response times of half of the requests for a path, and of 95% of them, are not"
        " longer. Paths with fewer than five requests are not listed, unless there are no others."
    )
    return Listing("times", "Response times", about, "table", _TIMES, rows, "page")
