"""Computes the figures at the top of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from barnabas_pipeline.pages.filters import MOST_VALUES, query
from barnabas_pipeline.pages.hit_selection import Selection
from barnabas_pipeline.pages.hits import Hits
from barnabas_pipeline.pages.shapes import Cell, Headline, Unit
from barnabas_pipeline.tracking.headlines import DEFINITIONS as OF_EVENTS


class Figure(NamedTuple):
    """A figure, and how it is computed."""

    name: str
    label: str
    unit: Unit
    value: Callable[[Selection], Cell]
    rows: str | None = ""


def headlines(
    figures: Sequence[Figure],
    definitions: Mapping[str, str],
    selection: Selection,
    other: Selection | None,
) -> list[Headline]:
    """Return the figures. `other`: the hits in the period with which they are compared."""
    return [
        {
            "name": each.name,
            "label": each.label,
            "definition": definitions[each.name],
            "value": each.value(selection),
            "unit": each.unit,
            "before": None if other is None else each.value(other),
            "rows": each.rows,
        }
        for each in figures
    ]


def page_views(selection: Selection) -> int:
    """Return the number of matching page views in sessions."""
    of = selection.hits.sessions
    return int(np.searchsorted(selection.views, of.begins[of.real]))


def bounce_rate(selection: Selection) -> float | None:
    """Return the share of sessions with one page view among those with any."""
    pages = selection.hits.sessions.pages[selection.sessions_with_pages]
    return float(np.count_nonzero(pages == 1) / len(pages)) if len(pages) else None


def median_seconds(selection: Selection) -> float | None:
    seconds = selection.hits.sessions.seconds[selection.sessions]
    return float(np.median(seconds)) if len(seconds) else None


def value(selection: Selection) -> float | None:
    """Return the sum of the values of the matching events, or None if no event has a value."""
    notes = selection.hits.notes.get("value")
    if notes is None:
        return None
    values, is_in = notes.columns["value"], selection.among(notes)
    return float(np.sum(values if is_in is None else values[is_in]))


def rows_with_values(hits: Hits) -> str | None:
    """Return the filters that select the events with a value, or None if there are none.

    Events have no filter for this, but often all events of a name have a value, and no others.
    """
    notes = hits.notes.get("value")
    if notes is None:
        return None
    names = hits.dimensions["event"]
    all_events = np.bincount(names.codes, minlength=len(names.values))
    valued = np.bincount(names.codes[notes.at], minlength=len(names.values))
    found = np.flatnonzero(valued)
    if len(found) > MOST_VALUES or (valued[found] != all_events[found]).any():
        return None
    return query({"event": [names.values.names[each] for each in found.tolist()]})


def error_share(selection: Selection) -> float | None:
    errors = len(selection.those(selection.hits.is_error))
    return errors / selection.matching if selection.matching else None


def bytes_sent(selection: Selection) -> int:
    sizes, mask = selection.hits.measures["bytes"], selection.mask
    return int(np.sum(sizes, dtype=np.int64, where=True if mask is None else mask))


OF_VISITS: Final = (
    Figure("visitors", "Visitors", "count", lambda selection: selection.visitors),
    Figure("sessions", "Sessions", "count", lambda selection: len(selection.sessions)),
)
OF_PAGES: Final = (
    Figure("bounce_rate", "Bounce rate", "share", bounce_rate),
    Figure("median_session_seconds", "Median session", "seconds", median_seconds),
)
EVENT_FIGURES: Final = (
    *OF_VISITS,
    Figure("page_views", "Page views", "count", page_views, "event=pageview"),
    *OF_PAGES,
    Figure("events", "Events", "count", lambda selection: selection.matching),
    Figure("value", "Value of events", "value", value, None),
)
ACCESS_FIGURES: Final = (
    *OF_VISITS,
    Figure("page_views", "Page views", "count", lambda selection: len(selection.views), None),
    *OF_PAGES,
    Figure("requests", "Requests", "count", lambda selection: selection.matching),
    Figure("error_share", "Errors", "share", error_share),
    Figure("bytes_sent", "Sent", "bytes", bytes_sent),
)
EVENT_DEFINITIONS: Final = {**OF_EVENTS, "events": "People's different event ids."}
