"""Defines the cards of what the tracker measures on each page: its speed, and how it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from barnabas_pipeline.pages.event_hits import BEATS, VITALS
from barnabas_pipeline.pages.hit_cards import Heads, Listing, row_of
from barnabas_pipeline.pages.hit_quantiles import Quantiles
from barnabas_pipeline.pages.hit_selection import Selection
from barnabas_pipeline.pages.hits import Hits
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
        return _rows(hits, "vitals", _Wanted(selection, most, _SHARE), found)

    return Listing("vitals", "Web vitals", about, "table", _VITALS, rows, "page")


def reading(hits: Hits) -> Listing:
    """Return the card of how long pages were visible, and how far people scrolled."""
    about = (
        "Half of the page views with a heartbeat were visible for a shorter time, or were scrolled"
        " less far."
    )
    found = _quantiles(hits, "heartbeat", BEATS)

    def rows(selection: Selection, most: int | None) -> list[Row]:
        return _rows(hits, "heartbeat", _Wanted(selection, most, 0.5), found)

    return Listing("reading", "Time and depth", about, "table", _READING, rows, "page")


def _quantiles(hits: Hits, name: str, keys: Sequence[str]) -> dict[str, Quantiles]:
    notes = hits.notes.get(name)
    if notes is None:
        return {}
    pages = hits.dimensions["page"].codes[notes.at]
    return {key: Quantiles(pages, notes.columns[key]) for key in keys}


class _Wanted(NamedTuple):
    """Describes what a card shows: a quantile, for the pages with the most page views."""

    selection: Selection
    most: int | None
    share: float


def _rows(hits: Hits, name: str, wanted: _Wanted, found: dict[str, Quantiles]) -> list[Row]:
    if not found:
        return []
    notes, page = hits.notes[name], hits.dimensions["page"]
    is_in = wanted.selection.among(notes)
    at = notes.at if is_in is None else notes.at[is_in]
    views = np.bincount(page.codes[at], minlength=len(page.values))
    names = page.values.names
    order = sorted(np.flatnonzero(views).tolist(), key=lambda each: (-views[each], names[each]))
    rows = []
    for each in order[: wanted.most]:
        values = {key: of.of_group(each, is_in, wanted.share) for key, of in found.items()}
        cells = [_cell(key, value) for key, value in values.items()]
        rows.append(row_of(names[each], names[each], int(views[each]), *cells))
    return rows


def _cell(key: str, value: float | None) -> Cell:
    if value is None or key in ("cls", "seconds"):
        return value
    return value / 100 if key == "scroll" else value * _US_PER_MS
