"""Counts how often people reach goals, with the rules of `tracking.goals`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from barnabas_pipeline.pages.funnel_cards import are_on
from barnabas_pipeline.pages.hit_selection import Selection
from barnabas_pipeline.pages.shapes import Card, Cell, Column, Row
from barnabas_pipeline.tracking.goals import Goal

_ABOUT: Final = "How often people reached each goal, and the share of all visitors who did."
_COLUMNS: Final[list[Column]] = [
    {"label": "Goal", "unit": "text"},
    {"label": "Times", "unit": "count"},
    {"label": "Visitors", "unit": "count"},
    {"label": "Share", "unit": "share"},
    {"label": "Value", "unit": "value"},
]
_OTHER: Final[Column] = {"label": "Times in the other period", "unit": "count"}


class GoalFigures(NamedTuple):
    """The results of a goal."""

    times: int
    visitors: int
    value: float


class GoalCard(NamedTuple):
    """The card of all goals."""

    goals: Sequence[Goal]
    name: str = "goals"

    def card(self, selection: Selection, other: Selection | None, most: int | None) -> Card:
        """Return the card. It has all rows, because there are few goals."""
        rows: list[Row] = []
        for goal in self.goals:
            found = goal_figures(selection, goal)
            share = found.visitors / selection.visitors if selection.visitors else 0.0
            cells: list[Cell] = [
                goal.title,
                found.times,
                found.visitors,
                share,
                found.value or None,
            ]
            if other is not None:
                cells.append(goal_figures(other, goal).times)
            rows.append({"key": None, "cells": cells, "before": None})
        return {
            "name": self.name,
            "title": "Goals",
            "about": _ABOUT,
            "look": "table",
            "dimension": "",
            "columns": [*_COLUMNS, *([] if other is None else [_OTHER])],
            "rows": rows,
            "more": False,
        }


def goal_figures(selection: Selection, goal: Goal) -> GoalFigures:
    """Return how often people reached a goal in matching hits."""
    hits = selection.hits
    is_on = are_on(hits, goal.step) & (hits.session < hits.sessions.real)
    reached = selection.those(is_on)
    value = 0.0
    if (notes := hits.notes.get("value")) is not None:
        is_counted, is_in = is_on[notes.at], selection.among(notes)
        is_counted = is_counted if is_in is None else is_counted & is_in
        value = float(notes.columns["value"][is_counted].sum())
    visitors = np.unique(hits.sessions.visitors[hits.session[reached]])
    return GoalFigures(len(reached), len(visitors), value)
