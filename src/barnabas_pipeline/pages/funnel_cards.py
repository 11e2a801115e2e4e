"""Counts how far visitors get in funnels, with the rules of `alerts.funnels`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

import numpy as np

from barnabas.console.problem import WebProblem
from barnabas_pipeline.alerts.funnels import follow
from barnabas_pipeline.pages.hit_cards import Heads, Listing, row_of
from barnabas_pipeline.pages.hit_selection import Selection
from barnabas_pipeline.pages.hits import Array, Coded, Hits
from barnabas_pipeline.pages.shapes import Row
from barnabas_pipeline.tracking.funnels import MOST_STEPS, Funnel, FunnelFigures, figures_of

_UNITS: Final = {
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_WITHIN: Final = re.compile(r"(?P<count>[1-9][0-9]{0,4}) ?(?P<unit>min|h|d)")
_HEADS: Final[Heads] = [
    ("Step", "text"),
    ("Visits", "count"),
    ("Share", "share"),
    ("Lost", "count"),
]


def funnel_cards(funnels: Sequence[Funnel]) -> list[Listing]:
    """Return the cards of funnels, named `funnel-1`, `funnel-2` and so on."""
    return [funnel_card(f"funnel-{number}", each) for number, each in enumerate(funnels, 1)]


def funnel_card(name: str, funnel: Funnel) -> Listing:
    """Return the card of a funnel."""

    def rows(selection: Selection, most: int | None) -> list[Row]:
        found = funnel_figures(selection, funnel)
        begun = found.steps[0].visits
        return [
            row_of(None, step.name, step.visits, step.visits / begun if begun else 0.0, step.lost)
            for step in found.steps
        ]

    about = (
        f"How many visitors reached each step within {figures_of(funnel, np.array([])).within} of"
        " the first one, with the steps of all sessions to which matching hits belong."
    )
    return Listing(name, funnel.title, about, "funnel", _HEADS, rows, is_whole=True)


def asked_funnel(options: Mapping[str, str]) -> Funnel:
    """Return the funnel in URL parameters, such as `step=/basket`, `step=purchase`, `within=2h`.

    `options`: the steps are separated by line feeds.
    """
    steps = tuple(step.strip() for step in options.get("step", "").split("\n"))
    if not 2 <= len(steps) <= MOST_STEPS or not all(steps):
        raise WebProblem(400, f"step: give 2 to {MOST_STEPS} steps, such as /basket or purchase")
    text = options.get("within", "") or "1d"
    found = _WITHIN.fullmatch(text)
    if found is None:
        raise WebProblem(400, f"within={text[:40]}: give a time such as 30min, 2h or 1d")
    return Funnel("Funnel", steps, int(found["count"]) * _UNITS[found["unit"]])


def funnel_figures(selection: Selection, funnel: Funnel) -> FunnelFigures:
    """Return how far the visitors got, in the sessions to which matching hits belong."""
    hits = selection.hits
    on = [are_on(hits, step) for step in funnel.steps]
    is_any = np.logical_or.reduce(on)
    of = hits.sessions
    if selection.mask is None:
        is_any = is_any & (hits.session < of.real)
    else:
        is_wanted = np.zeros(len(of.pages), dtype=bool)
        is_wanted[selection.sessions] = True
        is_any = is_any & np.repeat(is_wanted, np.diff(of.begins))
    places = np.flatnonzero(is_any)
    visitors = of.visitors[hits.session[places]]
    within_us = funnel.within // timedelta(microseconds=1)
    found = follow(visitors, hits.time_us[places], [each[places] for each in on], within_us)
    return figures_of(funnel, found.reached)


def are_on(hits: Hits, step: str) -> Array:
    """Return which hits are on a step: a page view, or an event with this name."""
    is_page = step.startswith("/")
    of = hits.dimensions.get("page" if is_page else "event")
    if of is None:
        return np.zeros(len(hits), dtype=bool)
    if "event" not in hits.dimensions:  # an error is not a step, because no visitor saw the page
        return _matches(of, step) & ~hits.is_error
    return _matches(of, step) & (hits.is_view if is_page else ~hits.is_view)


def _matches(of: Coded, step: str) -> Array:
    names: Sequence[str] = of.values.names
    if step.endswith("*"):
        wanted = np.array([name.startswith(step[:-1]) for name in names])
        wanted[0] = False
        found: Array = wanted[of.codes]
        return found
    number = of.values.numbers.get(step)
    return np.zeros(len(of.codes), dtype=bool) if not number else of.codes == number
