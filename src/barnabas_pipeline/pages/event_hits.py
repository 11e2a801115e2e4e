"""Reads people's events into `Hits`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
import pyarrow.compute as pc  # type: ignore[import-untyped]

from barnabas_pipeline.pages.hit_cards import DIRECT
from barnabas_pipeline.pages.hit_columns import HitColumns, KeptColumns, each_text, hashes_of
from barnabas_pipeline.pages.hits import (
    Array,
    Coded,
    Hits,
    Order,
    Values,
    entry_and_exit,
    first_of,
    hours_of,
    pick,
)
from barnabas_pipeline.pages.table_rows import TableRows, flags
from barnabas_pipeline.tracking.counts import ERROR, device

NEW: Final = "new"
RETURNING: Final = "returning"
VITALS: Final = ("ttfb", "fcp", "lcp", "inp", "cls")
BEATS: Final = ("seconds", "scroll")

_SENT_AGAIN: Final[Mapping[str, tuple[str, ...]]] = {"vitals": VITALS, "heartbeat": BEATS}
"""Events that the tracker sends several times for a page view, with their numbers."""
_TEXTS: Final = (
    "name",
    "host",
    "path",
    "source",
    "medium",
    "campaign",
    "screen",
    "language",
    "country",
)
_COLUMNS: Final = (
    *("time", "visitor", "referrer", "value", "properties", "partition", "offset"),
    *("robot", "page_view", *_TEXTS),
)


class KeptEvents(NamedTuple):
    """Contains what has been read. Later rows can be added to it."""

    columns: KeptColumns
    values: Mapping[str, Values]
    rows: int


class _Reader:
    """Collects the events of people."""

    def __init__(self, kept: KeptEvents | None) -> None:
        if kept is not None:
            self.columns, self.rows = HitColumns(kept.columns), kept.rows
            # Answers may still be computed from these values.
            self.values = {name: each.copy() for name, each in kept.values.items()}
            return
        self.columns = HitColumns()
        self.values = {name: Values() for name in _TEXTS}
        self.values["screen"] = Values(change=each_text(_devices))
        self.values["source"] = Values(DIRECT)
        self.rows = 0

    def add(self, batch: Any) -> None:
        begin, self.rows = self.rows, self.rows + len(batch)
        is_person = ~flags(batch["robot"])
        if not is_person.all():
            batch = batch.filter(is_person)
        codes = {name: self.values[name].encode(batch[name]) for name in _TEXTS}
        referrers = self.values["source"].encode(batch["referrer"])
        codes["source"] = np.where(codes["source"] != 0, codes["source"], referrers)
        self.columns.add_codes(**codes)
        visitors = _hashes(batch["visitor"])
        self._note(batch, visitors)
        self.columns.add_places(batch, np.flatnonzero(is_person) + begin, visitors)

    def _note(self, batch: Any, visitors: Array) -> None:
        at = np.flatnonzero(batch["value"].is_valid().to_numpy(zero_copy_only=False))
        value = pl.Series(batch["value"].take(at), dtype=pl.Float64)
        is_finite = value.is_finite().to_numpy()  # JSON has no other numbers
        at, value = at[is_finite], value.filter(is_finite)
        self.columns.note("value", at, value.to_frame("value"))
        for name, keys in _SENT_AGAIN.items():
            at = np.flatnonzero(flags(pc.equal(batch["name"], name)))
            if len(at):
                found = _numbers(pl.Series(batch["properties"].take(at), dtype=pl.String), keys)
                found = found.with_columns(pl.Series("visitor", visitors[at]))
                key = pl.when(pl.col("view").is_not_null()).then(
                    # As with visitors, two keys hardly ever have the same number.
                    pl.struct("visitor", "view").hash()
                )
                self.columns.note(name, at, found.select(key.alias("key"), *keys))


def read_events(rows: TableRows, kept: KeptEvents | None = None) -> tuple[Hits, KeptEvents]:
    """Return the events of people, and what to keep for later rows.

    `kept`: the rows that have been read already.
    """
    reader = _Reader(kept)
    for batch in rows.batches(_COLUMNS):
        reader.add(batch)
    columns = reader.columns
    order = columns.order()
    codes = {name: columns.codes_in_order(name, order) for name in _TEXTS}
    is_view = columns.in_order("is_view", order)
    hour, first_hour = hours_of(order.time_us)
    hits = Hits(
        order.time_us,
        hour,
        first_hour,
        order.session,
        columns.in_order("row", order),
        is_view,
        codes["name"] == reader.values["name"].numbers.get(ERROR, -1),
        _dimensions(codes, reader.values, is_view, order),
        order.sessions,
        {},
        columns.notes(order),
    )
    return hits, KeptEvents(columns.keep(), reader.values, reader.rows)


def _dimensions(
    columns: Mapping[str, Array], values: Mapping[str, Values], is_view: Array, order: Order
) -> dict[str, Coded]:
    entry, exit_ = entry_and_exit(is_view, order)
    # A session without a page view, such as one of an app, begins with its first event.
    begin = np.where(entry >= 0, entry, order.sessions.begins[:-1])

    def at_begin(label: str, name: str) -> Coded:
        return Coded(label, pick(columns[name], begin), values[name], of_sessions=True)

    def first_known(label: str, name: str) -> Coded:
        codes = columns[name]
        places = first_of(order.session, np.flatnonzero(codes), len(order.sessions.pages))
        return Coded(label, pick(codes, places), values[name], of_sessions=True)

    return {
        "host": Coded("Host", columns["host"], values["host"]),
        "page": Coded("Page", columns["path"], values["path"]),
        "event": Coded("Event", columns["name"], values["name"]),
        "source": at_begin("Source", "source"),
        "medium": at_begin("Medium", "medium"),
        "campaign": at_begin("Campaign", "campaign"),
        "device": first_known("Device", "screen"),
        "language": first_known("Language", "language"),
        "country": first_known("Country", "country"),
        "entry": Coded("Entry page", pick(columns["path"], entry), values["path"], True),
        "exit": Coded("Exit page", pick(columns["path"], exit_), values["path"], True),
        "visitor": _visitor_type(order),
    }


def _visitor_type(order: Order) -> Coded:
    """Return whether each session is the first one of its visitor."""
    values = Values()
    new, returning = values.number(NEW), values.number(RETURNING)
    visitors = order.sessions.visitors
    codes = np.full(len(visitors), returning, dtype=np.uint8)
    codes[np.diff(visitors.astype(np.int64), prepend=-1) != 0] = new
    codes[order.sessions.real :] = 0
    return Coded("Visitor", codes, values, of_sessions=True)


def _devices(screens: pl.Series) -> pl.Series:
    return screens.to_frame("screen").select(device()).to_series()


def _hashes(column: Any) -> Array:
    visitors = pl.Series(column, dtype=pl.String)
    return hashes_of(visitors, visitors.is_not_null().to_numpy())


def _numbers(properties: pl.Series, keys: Sequence[str]) -> pl.DataFrame:
    """Return the view and these numbers of each JSON object. What is not a number is null."""
    fields = {"view": pl.String} | dict.fromkeys(keys, pl.Float64)
    try:
        found = properties.str.json_decode(pl.Struct(fields)).struct.unnest()
    except pl.exceptions.PolarsError:  # another program may send anything under these names
        text = properties.to_frame("text")
        found = text.select(
            pl.col("text").str.json_path_match(f"$.{key}").cast(kind, strict=False).alias(key)
            for key, kind in fields.items()
        )
    # JSON numbers such as 1e999 become infinite.
    return found.with_columns(
        pl.when(pl.col(key).is_finite()).then(pl.col(key)).alias(key) for key in keys
    )
