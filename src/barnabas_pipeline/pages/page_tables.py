"""Defines the cards of what the tracker measures on each page: its speed, and how it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from barnabas_pipeline.pages.event_hits import BEATS, VITALS
from barnabas_pipeline.pages.hit_cards import Heads, Listing, row_of
from barnabas_pipeline.pages.hit_quantiles import Quantiles
from barnabas_pipeline.pages.hit_selection import Selection
from barnabas_pipeline.pages.hits import Array, Hits
from barnabas_pipeline.pages.shapes import Cell, Row

_SHARE: Final = 0.75
_US_PER_MS: Final = 1_000
_VITALS: Final[Heads] = [
    ("Page", "text"),
    ("Page views", "count"),
    ("First byte", "microseconds"),
    ("First paint", "microseconds"),
    ("Largest paint", "microseconds"),
    ("Interaction", "microseconds"),
    ("Layout shift", "value"),
]
_READING: Final[Heads] = [
    ("Page", "text"),
    ("Page views", "count"),
    ("Median time", "seconds"),
    ("Median depth", "share"),
]


def vitals(hits: Hits) -> Listing:
    """Return the card of the web vitals by page."""
    about = (
        "A quarter of the page views with web vitals are slower than these values: the time to the"
        " first byte, to the first and the largest contentful paint, to the next paint after an"
        " interaction, and the cumulative layout shift."
    )
    found = _quantiles(hits, "vitals", VITALS)

    def rows(selection: Selection, most: int | None) -> list[Row]:
        return _rows(hits, "vitals", selection, _SHARE, found)[:most]

    return Listing("vitals", "Web vitals", about, "table", _VITALS, rows, "page")


def reading(hits: Hits) -> Listing:
    """Return the card of how long pages were visible, and how far people scrolled."""
    about = (
        "Half of the page views with a heartbeat were visible for a shorter time, or were scrolled"
        " less far."
    )
    found = _quantiles(hits, "heartbeat", BEATS)

    def rows(selection: Selection, most: int | None) -> list[Row]:
        return _rows(hits, "heartbeat", selection, 0.5, found)[:most]

    return Listing("reading", "Time and depth", about, "table", _READING, rows, "page")


def _quantiles(hits: Hits, name: str, keys: Sequence[str]) -> dict[str, Quantiles]:
    notes = hits.notes.get(name)
    if notes is None:
        return {}
    pages = hits.dimensions["page"].codes[notes.at]
    return {key: Quantiles(notes.at, pages, notes.columns[key]) for key in keys}


def _rows(
    hits: Hits, name: str, selection: Selection, share: float, found: dict[str, Quantiles]
) -> list[Row]:
    if not found:
        return []
    page = hits.dimensions["page"]
    at = hits.notes[name].at
    at = at if selection.mask is None else at[selection.mask[at]]
    views = np.bincount(page.codes[at], minlength=len(page.values))
    size, mask = len(page.values), selection.mask
    values = {key: each.of(mask, size, (share,))[1] for key, each in found.items()}
    names = page.values.names
    order = sorted(np.flatnonzero(views).tolist(), key=lambda each: (-views[each], names[each]))
    return [
        row_of(
            names[each],
            names[each],
            int(views[each]),
            *(_cell(key, column, each) for key, column in values.items()),
        )
        for each in order
    ]


def _cell(key: str, column: Array, place: int) -> Cell:
    value = float(column[place])
    if np.isnan(value):
        return None
    if key == "scroll":
        return value / 100
    return value if key in ("cls", "seconds") else value * _US_PER_MS
