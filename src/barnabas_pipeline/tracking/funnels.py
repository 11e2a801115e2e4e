"""Counts how far visitors get in a funnel: ordered steps within a time window (BT-4).

A step is a page, such as `/basket` or `/products/*`, or the name of an event, such as `purchase`.
The rules are those of the funnels that alerts watch (`alerts.funnels`): a visit begins with the
first step, other pages between two steps do not matter, and a visitor who repeats the first step
within the window continues the same visit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Any, Final, NamedTuple

import numpy as np

from barnabas.counted import counted
from barnabas.errors import ConfigError
from barnabas_pipeline.alerts.funnels import follow
from barnabas_pipeline.tracking.coded import Coded, read_coded
from barnabas_pipeline.view import View

WINDOW: Final = timedelta(days=1)
MOST_STEPS: Final = 20

_UNITS: Final = {"min": "minutes", "h": "hours", "d": "days"}
_LENGTHS: Final = {
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
}
_WINDOW: Final = re.compile(r"^(?P<rest>.*)\bwithin\s+(?P<count>[1-9]\d{0,4})\s*(?P<unit>min|h|d)$")
_COLUMNS: Final = ["visitor", "time", "partition", "offset", "name", "path", "page_view"]
_TEXTS: Final = ("visitor", "name", "path")
_ORDER: Final = ["visitor", "time", "partition", "offset"]


class Funnel(NamedTuple):
    """A funnel as the user has defined it."""

    title: str
    steps: tuple[str, ...]
    within: timedelta = WINDOW


class Step(NamedTuple):
    """A step, and how many visits completed it and all earlier steps."""

    name: str
    visits: int
    lost: int
    """The number of visits that completed the previous step, but not this one."""


class FunnelFigures(NamedTuple):
    """The results of a funnel."""

    funnel: Funnel
    steps: list[Step]

    @property
    def within(self) -> str:
        """The time window as text, such as `1 day` or `90 minutes`."""
        for unit, length in _LENGTHS.items():
            count, rest = divmod(self.funnel.within, length)
            if count and not rest:
                return counted(count, unit)
        raise AssertionError("a window is a whole number of minutes")

    @property
    def conversion(self) -> float:
        """The share of visits that completed all steps."""
        return self.steps[-1].visits / self.steps[0].visits if self.steps[0].visits else 0.0


def parse_funnel(text: str) -> Funnel:
    """Parse a funnel such as `Order: /basket > /checkout > purchase within 2 h`.

    Raises ConfigError.
    """
    title, colon, rest = text.partition(":")
    within = WINDOW
    if (window := _WINDOW.match(rest)) is not None:
        rest = window["rest"]
        within = timedelta(**{_UNITS[window["unit"]]: int(window["count"])})
    steps = tuple(step.strip() for step in rest.split(">"))
    wrong = ""
    if not colon or not title.strip():
        wrong = "the title is missing"
    elif len(steps) < 2 or not all(steps):
        wrong = "it needs at least two steps, and no step may be empty"
    elif len(steps) > MOST_STEPS:
        wrong = f"it may have at most {MOST_STEPS} steps"
    if wrong:
        raise ConfigError(
            f"--funnel {text!r}: {wrong}; write it as 'Order: /basket > /checkout > purchase'"
            " or 'Order: /basket > purchase within 2 h'"
        )
    return Funnel(title.strip(), steps, within)


def read_funnel(view: View, funnel: Funnel) -> FunnelFigures:
    """Return a funnel's figures, computed from people's events in a view."""
    read = read_coded(view, _COLUMNS, people_on(funnel.steps), _TEXTS)
    hits = read._replace(rows=read.rows.sort(_ORDER))
    progress = follow(
        hits.rows["visitor"].to_numpy(),
        hits.rows["time"].to_numpy(),
        [are_on(hits, step) for step in funnel.steps],
        funnel.within // timedelta(microseconds=1),
    )
    return figures_of(funnel, progress.reached)


def figures_of(funnel: Funnel, reached: np.ndarray) -> FunnelFigures:
    """Return a funnel's figures. `reached`: the number of steps that each visit completed."""
    found = [int((reached >= number).sum()) for number in range(1, len(funnel.steps) + 1)]
    lost = [0, *(before - after for before, after in pairwise(found))]
    return FunnelFigures(funnel, [*map(Step._make, zip(funnel.steps, found, lost, strict=True))])


def are_on(hits: Coded, step: str) -> np.ndarray:
    """Return whether each hit is on the step: an event by its name, and a page view by its path."""
    is_page = step.startswith("/")
    name = "path" if is_page else "name"
    texts = hits.texts[name]
    is_fit = texts.str.starts_with(step[:-1]) if step.endswith("*") else texts == step
    flags: np.ndarray = hits.fit(name, is_fit) & (hits.rows["page_view"].to_numpy() == is_page)
    return flags


def people_on(steps: Sequence[str]) -> Any:
    """Return the condition for people's events on any of these steps."""
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    def is_on(step: str) -> Any:
        is_page = step.startswith("/")
        column = pc.field("path" if is_page else "name")
        found = (
            pc.starts_with(column, step[:-1]) if step.endswith("*") else column == pc.scalar(step)
        )
        return found & (pc.field("page_view") == is_page)

    is_person = pc.field("visitor").is_valid() & ~pc.field("robot")
    return is_person & reduce(or_, map(is_on, steps))
