"""Counts system log entries over time. Pure."""

from __future__ import annotations

from typing import Final

import numpy as np

from barnabas_formats.format import RAW
from barnabas_formats.levels import LEVELS
from barnabas_pipeline.logs.headlines import ERRORS
from barnabas_pipeline.pages.buckets import floor_of, step_of
from barnabas_pipeline.pages.filters import Period
from barnabas_pipeline.pages.log_columns import Coded, LogColumns, Numbers, take
from barnabas_pipeline.pages.shapes import Series, Timeline

SEVERITIES: Final = (("errors", "Errors"), ("warnings", "Warnings"), ("other", "Other entries"))
WARNING: Final = "WARN"
_LEAST_BUCKETS: Final = 24


def severities(levels: Coded) -> Numbers:
    """Return the number in `SEVERITIES` of each number of a level."""
    assert set(ERRORS) <= set(LEVELS)
    order = [0 if each in ERRORS else 1 if each == WARNING else 2 for each in levels.values]
    return np.array(order, np.uint8)


def span_of(columns: LogColumns, rows: Numbers, period: Period) -> Period | None:
    """Return the period that a timeline of these rows covers, or None without rows.

    An open end is the first or the last row with a known format, because the others have no times
    of their own. If there are only others, they count.
    """
    if not len(rows):
        return None
    times = columns.time_us
    if period.since_us is None or period.until_us is None:
        formats = columns.texts["format"]
        is_raw = np.fromiter((each == RAW for each in formats.values), bool)
        of_rows = is_raw[take(formats.codes, rows)]
        rows = rows if of_rows.all() else rows[~of_rows]
    first, last = int(times[rows[0]]), int(times[rows[-1]])
    # A period that begins long before the first entry would leave most of the timeline empty.
    since = first if period.since_us is None else max(period.since_us, int(times[0]))
    until = last + 1 if period.until_us is None else min(period.until_us, int(times[-1]) + 1)
    return Period(since, max(until, since + 1))


def timeline(columns: LogColumns, rows: Numbers, period: Period) -> Timeline | None:
    """Return the number of these rows over time by severity, or None without rows.

    `rows`: in order. Buckets of weeks begin on Mondays.
    """
    span = span_of(columns, rows, period)
    if span is None or span.since_us is None or span.until_us is None:
        return None
    step = step_of(span.until_us - span.since_us)
    begin = floor_of(span.since_us, step)
    count = max(_LEAST_BUCKETS, -((begin - span.until_us) // step))
    found = _counted(columns, rows, begin, step, count)
    return Timeline(
        begins_at=begin // 1_000,
        step_ms=step // 1_000,
        series=[
            Series(name=name, label=label, values=found[number].tolist())
            for number, (name, label) in enumerate(SEVERITIES)
        ],
        before=None,
    )


def errors_before(
    columns: LogColumns, rows: Numbers, shown: Timeline, shift_us: int
) -> list[float]:
    """Return the errors of the other period in the buckets of a timeline.

    `shift_us`: how much earlier the other period begins.
    """
    begin = shown["begins_at"] * 1_000 - shift_us
    count = len(shown["series"][0]["values"])
    found: list[float] = _counted(columns, rows, begin, shown["step_ms"] * 1_000, count)[0].tolist()
    return found


def _counted(columns: LogColumns, rows: Numbers, begin_us: int, step: int, buckets: int) -> Numbers:
    times = take(columns.time_us, rows)
    first, end = np.searchsorted(times, [begin_us, begin_us + step * buckets])
    rows, times = rows[first:end], times[first:end]
    levels = columns.texts["level"]
    of_row = severities(levels)[take(levels.codes, rows)].astype(np.int64)
    cells = of_row * buckets + (times - begin_us) // step
    counted = np.bincount(cells, minlength=len(SEVERITIES) * buckets)
    return counted.reshape(len(SEVERITIES), buckets)
