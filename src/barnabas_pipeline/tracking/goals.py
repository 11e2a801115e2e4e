"""Counts how often people reach a goal: a page, or an event with a name (BT-4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import polars as pl

from barnabas.errors import ConfigError
from barnabas_pipeline.behaviour.comparison import Comparison, Period
from barnabas_pipeline.tracking.coded import read_coded
from barnabas_pipeline.tracking.funnels import are_on, people_on
from barnabas_pipeline.view import View

MOST_GOALS: Final = 20

_COLUMNS: Final = ["visitor", "time", "value", "name", "path", "page_view"]
_TEXTS: Final = ("visitor", "name", "path")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Goal(NamedTuple):
    """A goal as the user has defined it. `step` is written as in a funnel."""

    title: str
    step: str


class GoalFigures(NamedTuple):
    """The results of a goal."""

    goal: Goal
    times: int
    """How often the goal was reached."""
    visitors: int
    """How many visitors reached it."""
    share: float
    """The share of all visitors who reached it."""
    value: float
    """The sum of the events' values."""
    last: int | None
    before: int | None
    """How often it was reached in the two periods that the page compares, or None without them."""


def parse_goal(text: str) -> Goal:
    """Parse a goal such as `Order: purchase` or `Signed up: /welcome/*`.

    Raises ConfigError.
    """
    title, colon, step = (part.strip() for part in text.partition(":"))
    if not colon or not title or not step:
        raise ConfigError(
            f"--goal {text!r}: write it as 'Order: purchase', with the name of an event, or as "
            "'Signed up: /welcome', with a page"
        )
    if ">" in step:
        raise ConfigError(
            f"--goal {text!r}: a goal has one step; --funnel counts several steps in their order"
        )
    return Goal(title, step)


def parse_goals(texts: Sequence[str]) -> list[Goal]:
    """Parse all goals. Raises ConfigError if one is wrong, or if there are too many."""
    if len(texts) > MOST_GOALS:
        raise ConfigError(f"--goal: at most {MOST_GOALS} goals can be given")
    return [*map(parse_goal, texts)]


def read_goals(
    view: View, goals: Sequence[Goal], visitors: int, comparison: Comparison | None
) -> list[GoalFigures]:
    """Return the goals' figures, computed from people's events in a view.

    `visitors`: the number of all people.
    """
    if not goals:
        return []
    hits = read_coded(view, _COLUMNS, people_on([each.step for each in goals]), _TEXTS)
    found = []
    for goal in goals:
        reached = hits.rows.filter(pl.Series(are_on(hits, goal.step)))
        found.append(_figures(goal, reached, visitors, comparison))
    return found


def _figures(
    goal: Goal, reached: pl.DataFrame, visitors: int, comparison: Comparison | None
) -> GoalFigures:
    by = reached["visitor"].n_unique()
    last, before = (
        (None, None)
        if comparison is None
        else (_times(reached, comparison.last), _times(reached, comparison.before))
    )
    return GoalFigures(
        goal,
        reached.height,
        by,
        by / visitors if visitors else 0.0,
        float(reached["value"].sum()),
        last,
        before,
    )


def _times(reached: pl.DataFrame, period: Period) -> int:
    begin_us, end_us = (_micros(each) for each in (period.begin, period.end))
    return reached.filter(pl.col("time").is_between(begin_us, end_us, closed="left")).height


def _micros(at: datetime) -> int:
    # The times of events have no offset.
    return (at.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
