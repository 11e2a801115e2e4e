"""Defines what the pages of events and of access logs have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from barnabas.console.problem import WebProblem
from barnabas_pipeline.pages.filters import Filters, row_limit
from barnabas_pipeline.pages.funnel_cards import asked_funnel, funnel_card
from barnabas_pipeline.pages.hit_cards import SHOWN, CardSource
from barnabas_pipeline.pages.hit_selection import Selection
from barnabas_pipeline.pages.hits import Array, Hits, largest
from barnabas_pipeline.pages.shapes import Card, Cell, Column, Headline, Rows, Timeline
from barnabas_pipeline.pages.table_rows import TableRows

ASKED: Final = "funnel"
"""The name of the card of a funnel whose steps are URL parameters."""
_LIMIT: Final = 50
_MOST: Final = 500


class HitPages(ABC):
    """The figures of one kind of hits."""

    hits: Hits
    table: TableRows
    sources: Sequence[CardSource]
    row_columns: Sequence[Column]

    def with_defaults(self, filters: Filters) -> Filters:
        """Return the filters with those that apply unless others are given."""
        return filters

    @abstractmethod
    def headlines(self, selection: Selection, other: Selection | None) -> list[Headline]: ...

    @abstractmethod
    def timeline(self, selection: Selection, other: Selection | None) -> Timeline | None: ...

    @property
    @abstractmethod
    def table_columns(self) -> Sequence[str]:
        """The columns of the table that `cells` needs."""

    @abstractmethod
    def cells(self, row: Mapping[str, Any]) -> list[Cell]:
        """Return the cells of a row of the table."""

    def cards(self, selection: Selection, other: Selection | None) -> list[Card]:
        """Return all cards."""
        return [each.card(selection, other, SHOWN) for each in self.sources]

    def card(
        self,
        name: str,
        selection: Selection,
        other: Selection | None,
        options: Mapping[str, str],
    ) -> Card | None:
        """Return a card with all its rows, or None if there is none with this name."""
        if name == ASKED:
            return funnel_card(ASKED, asked_funnel(options)).card(selection, other, None)
        found = next((each for each in self.sources if each.name == name), None)
        return None if found is None else found.card(selection, other, None)

    def rows(self, selection: Selection, options: Mapping[str, str]) -> Rows:
        """Return a page of the matching rows, with the latest first."""
        limit = row_limit(options, _LIMIT, _MOST)
        places, cursor = self._page(selection, options.get("before", ""), limit)
        found = self.table.take(self.hits.row[places], self.table_columns)
        return {
            "columns": list(self.row_columns),
            "rows": [self.cells(row) for row in found],
            "matching": selection.matching,
            "next": cursor,
            "over_time": self.timeline(selection, None),
        }

    def all_rows(self, selection: Selection) -> Iterator[list[Cell]]:
        """Yield all matching rows in the order of the table, with the columns first."""
        yield [column["label"] for column in self.row_columns]
        numbers = self.hits.row if selection.mask is None else self.hits.row[selection.mask]
        for row in self.table.each(numbers, self.table_columns):
            yield self.cells(row)

    def _page(self, selection: Selection, before: str, limit: int) -> tuple[Array, str]:
        """Return the numbers of the latest hits before a cursor, and the next cursor.

        A cursor contains the time of a hit, and its number, which orders hits of the same time.
        """
        places = selection.places
        times = self.hits.time_us[places]
        if before:
            time_us, place = _cursor(before)
            is_left = (times < time_us) | ((times == time_us) & (places < place))
            places, times = places[is_left], times[is_left]
        more = len(places) > limit
        latest = largest(times, limit)
        places, times = places[latest], times[latest]
        order = np.lexsort((places, times))[::-1][:limit]
        places = places[order]
        last = int(places[-1]) if len(places) else 0
        return places, f"{self.hits.time_us[last]}-{last}" if more else ""


def _cursor(text: str) -> tuple[int, int]:
    time_us, _, place = text.rpartition("-")
    try:
        return int(time_us), int(place)
    except ValueError:
        raise WebProblem(400, f"before={text[:40]}: this is not a cursor of this page") from None
