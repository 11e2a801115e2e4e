"""Determines how far visitors get in a funnel, such as the steps from the cart to the order.

    hits of people ─▶ visits, which begin with the first step ─▶ how many steps each visit reaches

A visit ends when the visitor has not repeated the first step for the duration `within`. A visit is
counted only after it has ended, because the visitor may still continue it. Later hits therefore
never change a visit that has been counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from barnabas_pipeline.arrow import scan
from barnabas_pipeline.behaviour.schemas import EVENTS

_VISITOR: Final = ("client", "agent")
_ORDER: Final = ("time", "partition", "offset")
_COLUMNS: Final = [*_VISITOR, *_ORDER, "path"]
_ERROR: Final = 400


def hits(events: Any, steps: Sequence[str], times: tuple[datetime, datetime]) -> pl.DataFrame:
    """Return the hits by people on any of the steps, sorted by visitor and by time.

    `events`: the table as an Arrow dataset, or None if there is no such table. `steps`: paths, or
    path prefixes followed by `*`. `times`: the first and the last time to read. A hit answered with
    an error is not a step, because the visitor never saw the page.
    """
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    path = pc.field("path")
    on_steps: list[Any] = [
        pc.starts_with(path, step[:-1]) if step.endswith("*") else path == step for step in steps
    ]
    condition = (
        (pc.field("time") >= times[0])
        & (pc.field("time") <= times[1])
        & ~pc.field("robot")
        & (pc.field("status") < _ERROR)
        & reduce(or_, on_steps)
    )
    return scan(events, EVENTS, _COLUMNS, condition).sort(*_VISITOR, *_ORDER)


def visits(hits: pl.DataFrame, steps: Sequence[str], within: timedelta) -> pl.DataFrame:
    """Return a row for each visit to the funnel.

    `end` is the time from which the visit is counted, and `reached` is the number of steps that the
    visitor completed in order. `client`, `path` and `time` come from the hit on the last completed
    step.

    `hits`: the result of `hits()`.
    """
    # Number the visitors. A null user agent identifies a visitor like any other value.
    visitor = hits.select(pl.struct(_VISITOR).rle_id()).to_series().to_numpy()
    time_us = hits["time"].dt.epoch("us").to_numpy()
    on = [_is_on(hits, step) for step in steps]
    return _rows(hits, *follow(visitor, time_us, on, within // timedelta(microseconds=1)))


class Progress(NamedTuple):
    """How far each visit got."""

    last: np.ndarray
    """The number of the hit on the last completed step."""
    reached: np.ndarray
    """The number of steps that the visitor completed in order."""
    ends_us: np.ndarray
    """The time from which the visit is counted."""


def follow(
    visitor: np.ndarray, time_us: np.ndarray, on: Sequence[np.ndarray], within_us: int
) -> Progress:
    """Return how far each visit got.

    `visitor`: a number for the visitor of each hit; hits are ordered by visitor and time. `on`:
    which hits are on each step.
    """
    begins = np.flatnonzero(on[0])
    if not len(begins):
        return Progress(begins, begins, begins)
    is_new = np.ones(len(begins), dtype=bool)
    # The numbers may be unsigned, so they are compared instead of subtracted.
    is_new[1:] = visitor[begins[1:]] != visitor[begins[:-1]]
    is_new[1:] |= np.diff(time_us[begins]) >= within_us
    first = begins[is_new]
    # The visitor has `within` to continue after the last hit on the first step.
    ends = time_us[begins[np.append(np.flatnonzero(is_new)[1:], len(begins)) - 1]] + within_us
    last, reached = first.copy(), np.ones(len(first), dtype=np.int64)
    for number, flags in enumerate(on[1:], 1):
        on_step = np.flatnonzero(flags)
        if not len(on_step):
            break
        # This is the next hit on the step, unless it is too late or another visitor's.
        place = np.searchsorted(on_step, last, side="right")
        found = on_step[np.minimum(place, len(on_step) - 1)]
        goes_on = (reached == number) & (place < len(on_step))
        goes_on &= (visitor[found] == visitor[first]) & (time_us[found] < ends)
        last = np.where(goes_on, found, last)
        reached += goes_on
    return Progress(last, reached, ends)


def _rows(
    hits: pl.DataFrame, last: np.ndarray, reached: np.ndarray, ends_us: np.ndarray
) -> pl.DataFrame:
    end = pl.Series("end", ends_us.astype(np.int64)).cast(pl.Datetime("us", "UTC"))
    return hits[last.astype(np.int64)].select(
        "client", "path", "time", end, pl.Series("reached", reached.astype(np.int64))
    )


def _is_on(hits: pl.DataFrame, step: str) -> np.ndarray:
    path = hits["path"]
    found = path.str.starts_with(step[:-1]) if step.endswith("*") else path == step
    return found.to_numpy()
