"""Builds cards from counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple, Protocol

import numpy as np

from barnabas_pipeline.behaviour.rankings import DIRECT as DIRECT_LABEL
from barnabas_pipeline.behaviour.rankings import SAME_SITE
from barnabas_pipeline.pages.filters import MISSING
from barnabas_pipeline.pages.hit_selection import Selection
from barnabas_pipeline.pages.hits import Array, Values, largest
from barnabas_pipeline.pages.shapes import Card, Cell, Column, Row, Unit

SHOWN: Final = 10
"""The number of rows of a card on the page."""
UNKNOWN: Final = "Unknown"
DIRECT: Final = "direct"
"""The source of sessions that no other site and no campaign led to."""
OWN_SITE: Final = "own"
"""The source of sessions that continue after a pause."""
_LABELS: Final = {MISSING: UNKNOWN, DIRECT: DIRECT_LABEL, OWN_SITE: SAME_SITE}

Look = Literal["bars", "table", "funnel", "retention", "heat", "lengths"]

Counts = Callable[[Selection], Sequence[Array]]
"""Returns the columns of a card: a number for each value of its dimension."""


Heads = Sequence[tuple[str, Unit]]
"""The labels and the units of a card's columns."""


class CardSource(Protocol):
    """Computes a card."""

    @property
    def name(self) -> str: ...

    def card(self, selection: Selection, other: Selection | None, most: int | None) -> Card:
        """Return the card, with at most this number of rows, or with all if it is None.

        `other`: the hits in the period with which they are compared.
        """
        ...


class Listing(NamedTuple):
    """A card whose rows are not compared with those of another period."""

    name: str
    title: str
    about: str
    look: Look
    columns: Heads
    rows: Callable[[Selection, int | None], list[Row]]
    """Returns the first rows, of which at least one more than needed are computed if there are
    more."""
    dimension: str = ""
    is_whole: bool = False
    """Whether all rows are always shown."""

    def card(self, selection: Selection, other: Selection | None, most: int | None) -> Card:
        most = None if self.is_whole else most
        rows = self.rows(selection, None if most is None else most + 1)
        more = most is not None and len(rows) > most
        return _card(self, self.look, self.columns, rows[:most], more=more)


class Ranking(NamedTuple):
    """A card with a row for each value of a dimension, in descending order of the first column."""

    name: str
    title: str
    about: str
    values: Values
    columns: Heads
    counts: Counts
    dimension: str
    hides_missing: bool = False
    """Whether rows without a value are omitted."""

    def card(self, selection: Selection, other: Selection | None, most: int | None) -> Card:
        columns = self.counts(selection)
        places, more = _leading(columns[0], self.values.names, most, self.hides_missing)
        before = None if other is None else self.counts(other)[0]
        rows: list[Row] = []
        for place in places.tolist():
            name = self.values.names[place]
            cells: list[Cell] = [_LABELS.get(name, name)]
            rows.append(
                {
                    "key": name,
                    "cells": [*cells, *(_cell(column, place) for column in columns)],
                    "before": None if before is None else _cell(before, place),
                }
            )
        label = selection.hits.dimensions[self.dimension].label
        return _card(self, "bars", [(label, "text"), *self.columns], rows, more=more)


def sessions_by(name: str, with_pages: bool) -> Counts:
    """Return a function that counts sessions by the values of a dimension of sessions."""

    def counts(selection: Selection) -> list[Array]:
        of = selection.hits.dimensions[name]
        sessions = selection.sessions_with_pages if with_pages else selection.sessions
        return [np.bincount(of.codes[sessions], minlength=len(of.values))]

    return counts


def row_of(key: str | None, *cells: Cell) -> Row:
    """Return a row that is not compared."""
    return {"key": key, "cells": list(cells), "before": None}


def _card(
    of: Ranking | Listing, look: Look, columns: Heads, rows: list[Row], *, more: bool
) -> Card:
    shown: list[Column] = [{"label": label, "unit": unit} for label, unit in columns]
    return {
        "name": of.name,
        "title": of.title,
        "about": of.about,
        "look": look,
        "dimension": of.dimension,
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
    if most is not None:
        found = found[largest(counts[found], most)]
    order = sorted(found.tolist(), key=lambda place: (-counts[place], names[place]))
    return np.array(order[:most], dtype=np.int64), more


def _cell(column: Array, place: int) -> Cell:
    value = column[place].item()
    return None if value != value else value
