"""Defines the cards about sessions: their lengths, their hours and weeks, and the next pages."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

import numpy as np
import polars as pl

from barnabas_pipeline.behaviour.visits import lengths
from barnabas_pipeline.instants import DAY_US, HOUR_US
from barnabas_pipeline.pages.hit_cards import Heads, Listing, row_of
from barnabas_pipeline.pages.hit_selection import Selection
from barnabas_pipeline.pages.hits import Array, Hits, largest
from barnabas_pipeline.pages.shapes import Row
from barnabas_pipeline.tracking.retention import MOST_WEEKS, Cohort, cohorts_of

_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_HOURS_A_DAY: Final = DAY_US // HOUR_US
_HOURS_A_WEEK: Final = 7 * _HOURS_A_DAY
_THURSDAY: Final = 3
"""The weekday of 1970-01-01."""
_MONDAY: Final = date(1969, 12, 29)
"""The Monday of the week of 1970-01-01."""
_NEXT: Final[Heads] = [("Page", "text"), ("Next page", "text"), ("Times", "count")]


def session_lengths() -> Listing:
    """Return the card of the sessions by length."""

    def rows(selection: Selection, most: int | None) -> list[Row]:
        if not len(selection.sessions):
            return []
        seconds = selection.hits.sessions.seconds[selection.sessions]
        found = lengths(pl.DataFrame({"length_seconds": seconds}))
        return [row_of(None, name, count) for name, count in found]

    about = "Sessions by the time from their first hit to their last."
    heads: Heads = [("Length", "text"), ("Sessions", "count")]
    return Listing("lengths", "Session lengths", about, "lengths", heads, rows, is_whole=True)


def hours_of_week() -> Listing:
    """Return the card of the page views by weekday and hour, in UTC."""

    def rows(selection: Selection, most: int | None) -> list[Row]:
        counts = selection.count_hours(selection.views)
        hours = np.flatnonzero(counts)
        if not len(hours):
            return []
        since = selection.hits.first_hour + hours + _THURSDAY * _HOURS_A_DAY
        sums = np.bincount(since % _HOURS_A_WEEK, counts[hours], minlength=_HOURS_A_WEEK)
        days = sums.astype(np.int64).reshape(7, _HOURS_A_DAY).tolist()
        return [row_of(None, day, *cells) for day, cells in zip(_WEEKDAYS, days, strict=True)]

    about = "Page views by weekday and hour, in UTC."
    heads: Heads = [("Day", "text"), *((f"{hour:02}:00", "count") for hour in range(24))]
    return Listing("heat", "Hours of the week", about, "heat", heads, rows, is_whole=True)


def retention() -> Listing:
    """Return the card of the visitors who came back in later weeks."""

    def rows(selection: Selection, most: int | None) -> list[Row]:
        found = weekly_cohorts(selection)
        if len(found) < 2:
            return []
        missing = [[None] * (MOST_WEEKS - len(each.active)) for each in found]
        return [
            row_of(None, each.week.isoformat(), *each.active, *none)
            for each, none in zip(found, missing, strict=True)
        ]

    about = (
        "Visitors by the week of their first matching hit, and how many of them have matching hits"
        " in later weeks."
    )
    heads: Heads = [
        ("Week", "text"),
        ("Visitors", "count"),
        *((f"+{number}", "count") for number in range(1, MOST_WEEKS)),
    ]
    return Listing("retention", "Retention", about, "retention", heads, rows, is_whole=True)


def weekly_cohorts(selection: Selection) -> list[Cohort]:
    """Return the cohorts of the visitors of the matching hits."""
    hits = selection.hits
    sessions = hits.sessions
    end = int(sessions.begins[sessions.real]) if len(sessions.begins) else 0
    if not end:
        return []
    places = selection.places
    places = places[: int(np.searchsorted(places, end))]
    if not len(places):
        return []
    weeks_of_hours = np.arange(int(hits.hour.max()) + 1) + hits.first_hour
    weeks_of_hours = (weeks_of_hours + _THURSDAY * _HOURS_A_DAY) // _HOURS_A_WEEK
    first_week = int(weeks_of_hours[0])
    week = (weeks_of_hours - first_week).astype(np.uint16)[hits.hour[places]]
    visitor = sessions.visitors[hits.session[places]]
    # Hits are ordered by visitor and time, so that each week of a visitor is one run.
    is_new = np.ones(len(places), dtype=bool)
    is_other = visitor[1:] != visitor[:-1]
    is_new[1:] = is_other | (week[1:] != week[:-1])
    is_first = np.ones(len(places), dtype=bool)
    is_first[1:] = is_other
    runs = np.flatnonzero(is_new)
    first = np.repeat(week[is_first], np.diff(np.append(np.flatnonzero(is_first[runs]), len(runs))))
    span = int(week.max()) + 1
    counts = np.bincount(first.astype(np.int64) * span + week[runs])
    return cohorts_of(
        {
            (_week(first_week + pair // span), _week(first_week + pair % span)): int(counts[pair])
            for pair in np.flatnonzero(counts).tolist()
        }
    )


def _week(number: int) -> date:
    return _MONDAY + timedelta(weeks=number)


class _Steps:
    """The pairs of different pages that follow each other in a session."""

    def __init__(self, hits: Hits) -> None:
        pages = hits.dimensions["page"].codes
        views = np.flatnonzero(hits.is_view)
        come, go = views[:-1], views[1:]
        goes_on = (hits.session[come] == hits.session[go]) & (pages[come] != pages[go])
        come, go = come[goes_on], go[goes_on]
        size = len(hits.dimensions["page"].values)
        pair = pages[come].astype(np.uint64) * np.uint64(size) + pages[go]
        distinct, codes = np.unique(pair, return_inverse=True)
        self.at = come.astype(np.uint32)
        self.codes = codes.astype(np.uint32)
        self.pages = (distinct // np.uint64(size)).astype(np.int64)
        self.next_pages = (distinct % np.uint64(size)).astype(np.int64)

    def counts(self, mask: Array | None) -> Array:
        """Return how often each pair occurs."""
        codes = self.codes if mask is None else self.codes[mask[self.at]]
        found: Array = np.bincount(codes, minlength=len(self.pages))
        return found


def next_pages(hits: Hits) -> Listing:
    """Return the card of the pages to which people went from a page."""
    steps = _Steps(hits)
    names = hits.dimensions["page"].values.names

    def rows(selection: Selection, most: int | None) -> list[Row]:
        counts = steps.counts(selection.mask)
        found = np.flatnonzero(counts)
        if most is not None:
            found = found[largest(counts[found], most)]
        pairs: list[tuple[str, str, int]] = [
            (names[steps.pages[each]], names[steps.next_pages[each]], int(counts[each]))
            for each in found.tolist()
        ]
        pairs.sort(key=lambda pair: (-pair[2], pair[:2]))
        return [row_of(pair[1], *pair) for pair in pairs[:most]]

    about = "Page views that another page followed in the same session, by both pages."
    return Listing("next_pages", "Next pages", about, "table", _NEXT, rows, "page")
