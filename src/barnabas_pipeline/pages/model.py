"""Defines what the server asks of a pipeline's tables. Each kind of pipeline implements it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from barnabas_pipeline.pages.filters import Filters
from barnabas_pipeline.pages.shapes import Answer, Card, Cell, Rows, Site


class Model(Protocol):
    """Holds the rows of a pipeline's tables, as of one batch, and computes figures from them.

    A model never changes: after another batch, the server creates a new one. The server calls its
    methods in one thread at a time. They raise `WebProblem` for input that cannot be used.
    """

    @property
    def site(self) -> Site: ...

    def answer(self, filters: Filters) -> Answer:
        """Return all cards. `took_ms` is filled in by the server."""
        ...

    def card(self, name: str, filters: Filters, options: Mapping[str, str]) -> Card:
        """Return a card with all its rows, for its CSV file.

        `options`: further URL parameters, such as the steps of a funnel. The values of a parameter
        given several times are separated by line feeds.
        """
        ...

    def rows(self, filters: Filters, options: Mapping[str, str]) -> Rows:
        """Return a page of the matching rows.

        `options`: `words` (searched in all texts), `before` (a cursor from `Rows`) and `limit`.
        """
        ...

    def all_rows(self, filters: Filters, options: Mapping[str, str]) -> Iterator[list[Cell]]:
        """Yield all matching rows for a CSV file, with the names of the columns first."""
        ...
