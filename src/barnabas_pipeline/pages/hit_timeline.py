"""Counts hits over time. Buckets are in UTC."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from barnabas_pipeline.instants import HOUR_US
from barnabas_pipeline.pages.buckets import floor_of, step_of
from barnabas_pipeline.pages.hit_selection import Selection
from barnabas_pipeline.pages.hits import Array
from barnabas_pipeline.pages.shapes import Series, Timeline

Lines = Sequence[tuple[str, str, Array | None]]
"""The name and the label of each line, and its hits, or None for all matching hits."""


def timeline(selection: Selection, lines: Lines, before: Array | None) -> Timeline | None:
    """Return the timeline of a selection, or None if there are no hits.

    `before`: the times of the first line's hits in the other period, in microseconds.
    """
    span = span_of(selection)
    if span is None:
        return None
    begin_us, end_us = span
    step_us = step_of(end_us - begin_us)
    first_us = floor_of(begin_us, step_us)
    count = -(-(end_us - first_us) // step_us)
    series: list[Series] = []
    for name, label, places in lines:
        values = _counts(selection, places, (first_us, step_us, count))
        series.append({"name": name, "label": label, "values": values})
    shifted = None
    if before is not None and selection.filters.other is not None:
        since_us = selection.filters.other.since_us
        shift_us = 0 if since_us is None else begin_us - since_us
        shifted = _histogram((before + shift_us - first_us) // step_us, count)
    return {
        "begins_at": first_us // 1_000,
        "step_ms": step_us // 1_000,
        "series": series,
        "before": shifted,
    }


def span_of(selection: Selection) -> tuple[int, int] | None:
    """Return the first and the last time of the timeline, which do not depend on the filters of
    dimensions."""
    hits, period = selection.hits, selection.filters.period
    if not len(hits):
        return None
    begin_us = hits.first_hour * HOUR_US
    end_us = (hits.first_hour + int(hits.hour.max()) + 1) * HOUR_US
    begin_us = begin_us if period.since_us is None else period.since_us
    end_us = end_us if period.until_us is None else period.until_us
    return (begin_us, end_us) if begin_us < end_us else None


def _counts(
    selection: Selection, places: Array | None, buckets_of: tuple[int, int, int]
) -> list[float]:
    """Return the hits in each bucket. `buckets_of`: the first time, the length and the number."""
    hits = selection.hits
    first_us, step_us, count = buckets_of
    if step_us % HOUR_US == 0 and first_us % HOUR_US == 0:
        hours = selection.hours if places is None else selection.count_hours(places)
        found = np.flatnonzero(hours)
        buckets = ((found + hits.first_hour) * HOUR_US - first_us) // step_us
        return _histogram(buckets, count, hours[found])
    if places is None:
        places = selection.places
    return _histogram((hits.time_us[places] - first_us) // step_us, count)


def _histogram(buckets: Array, count: int, weights: Array | None = None) -> list[float]:
    is_in = (buckets >= 0) & (buckets < count)
    weights = None if weights is None else weights[is_in]
    found = np.bincount(buckets[is_in], weights, minlength=count)
    return [int(each) for each in found]
