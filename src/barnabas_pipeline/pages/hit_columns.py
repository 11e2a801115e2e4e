"""Collects the columns of a table's batches, until all rows can be put in order.

They are kept in order, so that those of a later batch can be added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from barnabas_pipeline.pages.hits import NO_VISITOR, Array, Notes, Order, order_of, small
from barnabas_pipeline.pages.table_rows import flags, micros


class KeptColumns(NamedTuple):
    """The columns of all hits in order."""

    hits: int
    columns: Mapping[str, Array]
    notes: Mapping[str, pl.DataFrame]


class HitColumns:
    """The columns of all batches so far.

    Each column is put in order separately, so that only one of them is in memory twice.
    """

    def __init__(self, kept: KeptColumns | None = None) -> None:
        """`kept`: the columns of earlier batches."""
        self._ordered = 0 if kept is None else kept.hits
        self.hits = self._ordered
        self._parts: dict[str, list[Array]] = {}
        self._notes: dict[str, list[pl.DataFrame]] = {}
        if kept is not None:
            self._parts = {name: [column] for name, column in kept.columns.items()}
            self._notes = {name: [notes] for name, notes in kept.notes.items()}
        self._columns_kept: dict[str, Array] = {}
        self._notes_kept: dict[str, pl.DataFrame] = {}

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
            is_view=flags(batch["page_view"]),
        )
        place = {name: batch[name].to_numpy(zero_copy_only=False) for name in _PLACE}
        self.add_codes(**place)
        self.hits += len(batch)

    def note(self, name: str, at: Array, columns: pl.DataFrame) -> None:
        """Add what some hits of the next batch have. `at`: their numbers in the batch."""
        if len(at):
            frame = columns.with_columns(pl.Series("at", at + self.hits, pl.Int64))
            self._notes.setdefault(name, []).append(frame)

    def order(self) -> Order:
        """Return the order of all hits."""
        place = [self._joined(name) for name in _PLACE]
        is_view = np.concatenate(self._parts["is_view"]) if self.hits else np.zeros(0, bool)
        visitors = self._joined("visitor")
        order = order_of(visitors, self._joined("time_us"), place, is_view, self._ordered)
        keys = {"visitor": visitors, **dict(zip(_PLACE, place, strict=True))}
        self._columns_kept = {name: key[order.rows] for name, key in keys.items()}
        self._columns_kept["time_us"] = order.time_us
        return order

    def in_order(self, name: str, order: Order) -> Array:
        """Return a column in order, which is then only kept for later batches."""
        found = self._columns_kept[name] = self._joined(name)[order.rows]
        return found

    def codes_in_order(self, name: str, order: Order) -> Array:
        """Return numbers in order, which are not negative, like `in_order`."""
        found = self._columns_kept[name] = small(self._joined(name)[order.rows])
        return found

    def keep(self) -> KeptColumns:
        """Return everything that was put in order."""
        return KeptColumns(self.hits, self._columns_kept, self._notes_kept)

    def notes(self, order: Order) -> dict[str, Notes]:
        """Return all notes by the numbers of their hits.

        If they have the column `key`, only the last of several hits with the same key counts.
        """
        places = order.places() if self._notes else order.rows

        def place_of(at: pl.Series) -> pl.Series:
            return pl.Series(places[at.to_numpy()])

        found = {}
        for name, parts in self._notes.items():
            frame = pl.concat(part.with_columns(pl.col("at").cast(pl.UInt32)) for part in parts)
            frame = frame.with_columns(pl.col("at").map_batches(place_of, pl.UInt32))
            frame = frame.sort("at")
            if "key" in frame.columns:
                is_last = pl.col("key").is_null() | pl.col("key").is_last_distinct()
                frame = frame.filter(is_last)
            self._notes_kept[name] = frame
            columns = frame.drop("key", strict=False)
            at = columns.drop_in_place("at").to_numpy()
            found[name] = Notes(at, {each.name: each.to_numpy() for each in columns})
        self._notes.clear()
        return found

    def _joined(self, name: str) -> Array:
        parts = self._parts.pop(name, [])
        return np.concatenate(parts) if parts else np.zeros(0, dtype=_EMPTY.get(name, np.uint8))


_PLACE = ("partition", "offset")
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
