"""Builds cards from counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from barnabas_pipeline.behaviour.rankings import DIRECT as DIRECT_LABEL
from barnabas_pipeline.pages.filters import MISSING
from barnabas_pipeline.pages.hit_selection import Selection
from barnabas_pipeline.pages.hits import Array, Values
from barnabas_pipeline.pages.shapes import Card, Cell, Column, Row, Unit

SHOWN: Final = 10
"""The number of rows of a card on the page."""
UNKNOWN: Final = "Unknown"
DIRECT: Final = "direct"
"""The source of visits that no other site and no campaign led to."""
_LABELS: Final = {MISSING: UNKNOWN, DIRECT: DIRECT_LABEL}

Counts = Callable[[Selection], Sequence[Array]]
"""Returns the columns of a card: a number for each value of its dimension."""


class Ranking(NamedTuple):
    """A card with a row for each value of a dimension, in descending order of the first column."""

    name: str
    title: str
    about: str
    values: Values
    columns: tuple[tuple[str, Unit], ...]
    counts: Counts
    dimension: str = ""
    hides_missing: bool = False
    """Whether rows without a value are omitted."""

    def card(self, selection: Selection, other: Selection | None, most: int | None) -> Card:
        """Return the card, with at most this number of rows.

        `other`: the hits in the period with which they are compared.
        """
        columns = self.counts(selection)
        places, more = _leading(columns[0], self.values.names, most, self.hides_missing)
        before = None if other is None else self.counts(other)[0]
        rows: list[Row] = []
        for place in places.tolist():
            name = self.values.names[place]
            cells: list[Cell] = [_LABELS.get(name, name)]
            rows.append(
                {
                    "key": name if self.dimension else None,
                    "cells": [*cells, *(_cell(column, place) for column in columns)],
                    "before": None if before is None else _cell(before, place),
                }
            )
        label = self.title.removesuffix("s")
        return card_of(self, "bars", [(label, "text"), *self.columns], rows, more=more)


def card_of(
    of: Ranking | Sequence[str],
    look: str,
    columns: Sequence[tuple[str, Unit]],
    rows: list[Row],
    *,
    more: bool = False,
) -> Card:
    """Return a card. `of`: its name, title, definition and dimension."""
    if isinstance(of, Ranking):
        of = (of.name, of.title, of.about, of.dimension)
    name, title, about, dimension = of
    shown: list[Column] = [{"label": label, "unit": unit} for label, unit in columns]
    return {
        "name": name,
        "title": title,
        "about": about,
        "look": look,  # type: ignore[typeddict-item]
        "dimension": dimension,
        "columns": shown,
        "rows": rows,
        "more": more,
    }


def _leading(
    counts: Array, names: Sequence[str], most: int | None, hides_missing: bool
) -> tuple[Array, bool]:
    """Return the places of the largest counts, of which none is 0, and whether there are more."""
    found = np.flatnonzero(counts)
    if hides_missing:
        found = found[found != 0]
    more = most is not None and len(found) > most
    if most is not None and more:
        least = np.partition(counts[found], len(found) - most)[len(found) - most]
        found = found[counts[found] >= least]
    order = sorted(found.tolist(), key=lambda place: (-counts[place], names[place]))
    return np.array(order[:most], dtype=np.int64), more


def _cell(column: Array, place: int) -> Cell:
    value = column[place].item()
    return None if value != value else value
