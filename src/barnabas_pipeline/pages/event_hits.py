"""Reads people's events into `Hits`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
import pyarrow.compute as pc  # type: ignore[import-untyped]

from barnabas_pipeline.pages.hits import (
    NO_VISITOR,
    Array,
    Coded,
    Hits,
    Notes,
    Order,
    Values,
    first_of,
    hours_of,
    last_of,
    order_of,
    pick,
    small,
)
from barnabas_pipeline.pages.table_rows import TableRows, flags, micros
from barnabas_pipeline.tracking.counts import ERROR, device

DIRECT: Final = "direct"
NEW: Final = "new"
RETURNING: Final = "returning"
VITALS: Final = ("ttfb", "fcp", "lcp", "inp", "cls")
BEATS: Final = ("seconds", "scroll")

_SENT_AGAIN: Final[Mapping[str, tuple[str, ...]]] = {"vitals": VITALS, "heartbeat": BEATS}
"""Events that the tracker sends several times for a page view, with their numbers."""
_TEXTS: Final = ("name", "host", "path", "source", "medium", "campaign", "screen", "language")
_COLUMNS: Final = (
    *("time", "visitor", "referrer", "value", "properties", "partition", "offset"),
    *("robot", "page_view", *_TEXTS),
)


class _Batch(NamedTuple):
    """The columns of some rows, before they are ordered."""

    row: Array
    time_us: Array
    visitor: Array
    partition: Array
    offset: Array
    is_view: Array
    codes: dict[str, Array]


class _Reader:
    """Collects batches of rows."""

    def __init__(self) -> None:
        self.values = {name: Values() for name in _TEXTS}
        self.values["screen"] = Values(change=_devices)
        self.values["source"] = Values(DIRECT)
        self.values["medium"], self.values["campaign"] = Values(), Values()
        self.batches: list[_Batch] = []
        self.notes: dict[str, list[pl.DataFrame]] = {name: [] for name in ("value", *_SENT_AGAIN)}
        self._rows = 0
        self._hits = 0

    def add(self, batch: Any) -> None:
        begin, self._rows = self._rows, self._rows + len(batch)
        is_person = ~flags(batch["robot"])
        if not is_person.all():
            batch = batch.filter(is_person)
        codes = {name: self.values[name].encode(batch[name]) for name in _TEXTS}
        referrers = self.values["source"].encode(batch["referrer"])
        codes["source"] = np.where(codes["source"] != 0, codes["source"], referrers)
        self.batches.append(
            _Batch(
                (np.flatnonzero(is_person) + begin).astype(np.uint32),
                micros(batch["time"]),
                _hashes(batch["visitor"]),
                batch["partition"].to_numpy(zero_copy_only=False).astype(np.uint32),
                batch["offset"].to_numpy(zero_copy_only=False),
                flags(batch["page_view"]),
                {name: small(found) for name, found in codes.items()},
            )
        )
        self._note(batch)
        self._hits += len(batch)

    def _note(self, batch: Any) -> None:
        values = batch["value"].is_valid()
        at = np.flatnonzero(values.to_numpy(zero_copy_only=False))
        if len(at):
            value = pl.Series(batch["value"].take(at))
            self.notes["value"].append(pl.DataFrame({"at": at + self._hits, "value": value}))
        for name, keys in _SENT_AGAIN.items():
            at = np.flatnonzero(flags(pc.equal(batch["name"], name)))
            if len(at):
                found = _numbers(pl.Series(batch["properties"].take(at)), keys)
                self.notes[name].append(
                    found.with_columns(pl.Series("at", at + self._hits), _visitors(batch, at))
                )


def read_events(rows: TableRows) -> Hits:
    """Return the events of people."""
    reader = _Reader()
    for batch in rows.batches(_COLUMNS):
        reader.add(batch)
    batches = reader.batches
    is_view = _joined([each.is_view for each in batches], bool)
    order = order_of(
        _joined([each.visitor for each in batches], np.uint64),
        _joined([each.time_us for each in batches], np.int64),
        [
            _joined([each.partition for each in batches], np.uint32),
            _joined([each.offset for each in batches], np.int64),
        ],
        is_view,
    )
    row = _joined([each.row for each in batches], np.uint32)[order.rows]
    # Each column is put in order separately, so that only one of them exists twice.
    columns = {}
    for name in _TEXTS:
        parts = [each.codes.pop(name) for each in batches]
        columns[name] = small(_joined(parts, np.uint32)[order.rows])
        del parts
    batches.clear()
    is_view = is_view[order.rows]
    notes = _placed(reader.notes, order)
    hour, first_hour = hours_of(order.time_us)
    is_error = columns["name"] == reader.values["name"].numbers.get(ERROR, -1)
    return Hits(
        order.time_us,
        hour,
        first_hour,
        order.visit,
        row,
        is_view,
        is_error,
        _dimensions(columns, reader.values, is_view, order),
        order.visits,
        {},
        notes,
    )


def _dimensions(
    columns: Mapping[str, Array], values: Mapping[str, Values], is_view: Array, order: Order
) -> dict[str, Coded]:
    visit, count = order.visit, len(order.visits.pages)
    views = np.flatnonzero(is_view)
    entry, exit_ = first_of(visit, views, count), last_of(visit, views, count)
    # A visit without a page view, such as one of an app, begins with its first event.
    begin = np.where(entry >= 0, entry, order.visits.begins[:-1])

    def at_begin(label: str, name: str) -> Coded:
        return Coded(label, pick(columns[name], begin), values[name], of_visits=True)

    def first_known(label: str, name: str) -> Coded:
        codes = columns[name]
        places = first_of(visit, np.flatnonzero(codes), count)
        return Coded(label, pick(codes, places), values[name], of_visits=True)

    return {
        "host": Coded("Host", columns["host"], values["host"]),
        "page": Coded("Page", columns["path"], values["path"]),
        "event": Coded("Event", columns["name"], values["name"]),
        "source": at_begin("Source", "source"),
        "medium": at_begin("Medium", "medium"),
        "campaign": at_begin("Campaign", "campaign"),
        "device": first_known("Device", "screen"),
        "language": first_known("Language", "language"),
        "entry": Coded("Entry page", pick(columns["path"], entry), values["path"], True),
        "exit": Coded("Exit page", pick(columns["path"], exit_), values["path"], True),
        "visitor": _visitor_type(order),
    }


def _visitor_type(order: Order) -> Coded:
    """Return whether each visit is the first one of its visitor."""
    values = Values()
    new, returning = values.number(NEW), values.number(RETURNING)
    visitors = order.visits.visitors
    codes = np.full(len(visitors), returning, dtype=np.uint8)
    codes[np.diff(visitors.astype(np.int64), prepend=-1) != 0] = new
    codes[order.visits.real :] = 0
    return Coded("Visitor", codes, values, of_visits=True)


def _devices(screens: list[str | None]) -> Sequence[str | None]:
    return (
        pl.DataFrame({"screen": screens}, {"screen": pl.String})
        .select(device())["device"]
        .to_list()
    )


def _hashes(column: Any) -> Array:
    visitors = pl.Series(column, dtype=pl.String)
    # The largest number stands for no visitor.
    hashes = np.minimum(visitors.hash().to_numpy(), np.uint64(NO_VISITOR - 1))
    return np.where(visitors.is_null().to_numpy(), np.uint64(NO_VISITOR), hashes)


def _visitors(batch: Any, at: Array) -> pl.Series:
    return pl.Series("visitor", _hashes(batch["visitor"].take(at)))


def _numbers(properties: pl.Series, keys: Sequence[str]) -> pl.DataFrame:
    """Return the view and these numbers of each JSON object. What is not a number is null."""
    properties = properties.cast(pl.String)
    fields = {"view": pl.String} | dict.fromkeys(keys, pl.Float64)
    try:
        found = properties.str.json_decode(pl.Struct(fields)).struct.unnest()
    except pl.exceptions.PolarsError:  # another program may send anything under these names
        text = properties.to_frame("text")
        found = text.select(
            pl.col("text").str.json_path_match(f"$.{key}").cast(kind, strict=False).alias(key)
            for key, kind in fields.items()
        )
    return found


def _placed(notes: Mapping[str, list[pl.DataFrame]], order: Order) -> dict[str, Notes]:
    """Return the notes by the numbers of their hits. For each page view, only the last counts."""
    places = order.places()
    found = {}
    for name, parts in notes.items():
        if not parts:
            continue
        frame = pl.concat(parts).with_columns(
            pl.col("at").map_batches(lambda at: pl.Series(places[at.to_numpy()]), pl.UInt32)
        )
        frame = frame.sort("at")
        if "view" in frame.columns:
            is_last = pl.col("view").is_null() | pl.struct("visitor", "view").is_last_distinct()
            frame = frame.filter(is_last).drop("view", "visitor")
        at = frame.drop_in_place("at").to_numpy()
        found[name] = Notes(at, {each.name: each.to_numpy() for each in frame})
    return found


def _joined(parts: list[Array], kind: Any) -> Array:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=kind)
