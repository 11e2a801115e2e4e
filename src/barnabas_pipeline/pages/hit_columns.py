"""Collects the columns of a table's batches, until all rows can be put in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from barnabas_pipeline.pages.hits import NO_VISITOR, Array, Notes, Order, order_of, small
from barnabas_pipeline.pages.table_rows import flags, micros


class HitColumns:
    """The columns of all batches so far.

    Each column is put in order separately, so that only one of them is in memory twice.
    """

    def __init__(self) -> None:
        self.hits = 0
        self._parts: dict[str, list[Array]] = {}
        self._notes: dict[str, list[pl.DataFrame]] = {}

    def add(self, **columns: Array) -> None:
        """Add the columns of a batch."""
        for name, column in columns.items():
            self._parts.setdefault(name, []).append(column)

    def add_codes(self, **columns: Array) -> None:
        """Add numbers, which are not negative."""
        self.add(**{name: small(column) for name, column in columns.items()})

    def add_places(self, batch: Any, rows: Array, visitors: Array) -> None:
        """Add what orders the hits. `rows`: their rows in the table."""
        self.add(
            row=rows.astype(np.uint32),
            time_us=micros(batch["time"]),
            visitor=visitors,
            offset=batch["offset"].to_numpy(zero_copy_only=False),
            is_view=flags(batch["page_view"]),
        )
        self.add_codes(partition=batch["partition"].to_numpy(zero_copy_only=False))
        self.hits += len(batch)

    def note(self, name: str, at: Array, columns: pl.DataFrame) -> None:
        """Add what some hits of the next batch have. `at`: their numbers in the batch."""
        if len(at):
            frame = columns.with_columns(pl.Series("at", at + self.hits, pl.Int64))
            self._notes.setdefault(name, []).append(frame)

    def order(self) -> Order:
        """Return the order of all hits."""
        place = [self._joined("partition"), self._joined("offset")]
        is_view = np.concatenate(self._parts["is_view"]) if self.hits else np.zeros(0, bool)
        return order_of(self._joined("visitor"), self._joined("time_us"), place, is_view)

    def in_order(self, name: str, order: Order) -> Array:
        """Return a column in order, which is removed from here."""
        return self._joined(name)[order.rows]

    def notes(self, order: Order) -> dict[str, Notes]:
        """Return all notes by the numbers of their hits.

        If they have the column `key`, only the last of several hits with the same key counts.
        """
        places = order.places() if self._notes else order.rows

        def place_of(at: pl.Series) -> pl.Series:
            return pl.Series(places[at.to_numpy()])

        found = {}
        for name, parts in self._notes.items():
            frame = pl.concat(parts).with_columns(pl.col("at").map_batches(place_of, pl.UInt32))
            frame = frame.sort("at")
            if "key" in frame.columns:
                is_last = pl.col("key").is_null() | pl.col("key").is_last_distinct()
                frame = frame.filter(is_last).drop("key")
            at = frame.drop_in_place("at").to_numpy()
            found[name] = Notes(at, {each.name: each.to_numpy() for each in frame})
        self._notes.clear()
        return found

    def _joined(self, name: str) -> Array:
        parts = self._parts.pop(name, [])
        return np.concatenate(parts) if parts else np.zeros(0, dtype=_EMPTY.get(name, np.uint8))


_EMPTY = {"time_us": np.int64, "visitor": np.uint64, "is_view": np.bool_}


def hashes_of(visitors: pl.Series, is_known: Array) -> Array:
    """Return a number for each visitor.

    With a million visitors, the probability that two of them have the same number is 3e-8.
    """
    # The largest number stands for no visitor.
    hashes = np.minimum(visitors.hash().to_numpy(), np.uint64(NO_VISITOR - 1))
    found: Array = np.where(is_known, hashes, np.uint64(NO_VISITOR))
    return found


def each_text(change: Callable[[pl.Series], pl.Series]) -> Callable[[list[str | None]], list[Any]]:
    """Return a function that changes texts in a list by changing a column."""
    return lambda texts: change(pl.Series("text", texts, pl.String)).to_list()
