"""Reads the lines of access logs into `Hits`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs

import numpy as np
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from barnabas_pipeline.behaviour.referrers import hosts_of
from barnabas_pipeline.pages.hit_cards import DIRECT, OWN_SITE
from barnabas_pipeline.pages.hit_columns import HitColumns, KeptColumns, each_text, hashes_of
from barnabas_pipeline.pages.hits import (
    Array,
    Change,
    Coded,
    Hits,
    Order,
    Values,
    entry_and_exit,
    hours_of,
    pick,
    small,
)
from barnabas_pipeline.pages.table_rows import TableRows, flags
from barnabas_track.countries import Countries

PEOPLE: Final = "people"
ROBOTS: Final = "robots"
ERROR: Final = 400
NOT_FOUND: Final = 404

Mask = Callable[[pl.Series], pl.Series]

_TEXTS: Final = ("virtual_host", "path", "method", "status", "agent")
_COLUMNS: Final = (
    *("time", "client", "query", "bytes", "referrer", "response_time_us", "robot", "page_view"),
    *("partition", "offset", *_TEXTS),
)


class Known(NamedTuple):
    """Contains what other tables say about the hits."""

    agents: pl.DataFrame
    """The table `agents`, which contains the parsed user agents."""
    own_host: str | None
    """The site's own host."""
    countries: Countries | None = None


class KeptLines(NamedTuple):
    """Contains what has been read. Later rows can be added to it."""

    columns: KeptColumns
    values: Mapping[str, Values]
    rows: int


class _Reader:
    """Collects the lines of access logs."""

    def __init__(self, mask: Mask, countries: Countries | None, kept: KeptLines | None) -> None:
        self._countries = countries
        if kept is not None:
            self.columns, self.rows = HitColumns(kept.columns), kept.rows
            # Answers may still be computed from these values.
            self.values = {name: each.copy() for name, each in kept.values.items()}
            return
        self.columns = HitColumns()
        self.values = {name: Values(change=each_text(mask)) for name in _TEXTS}
        self.values["status"] = Values()
        self.values["agent"] = Values()  # these are looked up, and never shown
        self.values["referrer"] = Values(
            change=each_text(lambda urls: mask(urls.str.replace(r"[?#].*$", "")))
        )
        self.values["source"] = Values(DIRECT, each_text(lambda urls: mask(hosts_of(urls))))
        self.values["country"] = Values(change=_countries_of(countries))
        self.rows = 0

    def add(self, batch: Any) -> None:
        begin, self.rows = self.rows, self.rows + len(batch)
        texts = {name: batch[name].cast(pa.string()) for name in _TEXTS}
        codes = {name: self.values[name].encode(texts[name]) for name in _TEXTS}
        codes["source"] = self._sources(batch)
        if self._countries is not None:
            codes["country"] = self.values["country"].encode(batch["client"])
        self.columns.add_codes(**codes, bytes=_sizes(batch["bytes"]))
        self.columns.add(robot=flags(batch["robot"]))
        at = np.flatnonzero(flags(pc.equal(batch["status"], NOT_FOUND)))
        referrer = pl.Series("referrer", self.values["referrer"].encode(batch["referrer"].take(at)))
        self.columns.note("missing", at, referrer.to_frame())
        times = batch["response_time_us"]
        at = np.flatnonzero(times.is_valid().to_numpy(zero_copy_only=False))
        time = pl.Series("time", times.take(at), dtype=pl.Int64).cast(pl.Float64)
        self.columns.note("time", at, time.to_frame())
        client = pl.DataFrame({name: pl.Series(batch[name]) for name in ("client", "agent")})
        visitors = hashes_of(client.hash_rows(), np.ones(len(batch), dtype=bool))
        self.columns.add_places(batch, np.arange(len(batch)) + begin, visitors)

    def _sources(self, batch: Any) -> Array:
        """Return the sources: the host of the referrer, unless the address names another."""
        sources = self.values["source"].encode(batch["referrer"])
        at = np.flatnonzero(flags(pc.match_substring(batch["query"], "utm_source=")))
        for place, query in zip(at.tolist(), batch["query"].take(at).to_pylist(), strict=True):
            named = parse_qs(query, max_num_fields=None).get("utm_source")
            if named:
                sources[place] = self.values["source"].number(named[0])
        return sources


def _countries_of(countries: Countries | None) -> Change | None:
    if countries is None:
        return None
    of = countries.country_of
    return lambda addresses: [None if each is None else of(each) for each in addresses]


def read_lines(
    rows: TableRows, known: Known, mask: Mask, kept: KeptLines | None = None
) -> tuple[Hits, KeptLines]:
    """Return all lines, and what to keep for later rows.

    `mask`: hides network addresses in texts. `kept`: the rows that have been read already.
    """
    reader = _Reader(mask, known.countries, kept)
    for batch in rows.batches(_COLUMNS):
        reader.add(batch)
    columns = reader.columns
    order = columns.order()
    names = (*_TEXTS, "source", *(() if known.countries is None else ("country",)))
    codes = {name: columns.codes_in_order(name, order) for name in names}
    is_view, robot = columns.in_order("is_view", order), columns.in_order("robot", order)
    hour, first_hour = hours_of(order.time_us)
    statuses = [int(each) if each.isdecimal() else 0 for each in reader.values["status"].names]
    first = order.sessions.begins[:-1]
    agents = _Agents(known.agents, reader.values["agent"], codes.pop("agent")[first], robot[first])
    # The host may be another one after later rows.
    values = {**reader.values, "source": reader.values["source"].copy()}
    _name_own_site(values["source"], known.own_host)
    hits = Hits(
        order.time_us,
        hour,
        first_hour,
        order.session,
        columns.in_order("row", order),
        is_view,
        np.array(statuses)[codes["status"]] >= ERROR,
        {**_dimensions(codes, values, is_view, order), **agents.dimensions(mask)},
        order.sessions,
        {"bytes": columns.in_order("bytes", order)},
        columns.notes(order),
        {"referrer": values["referrer"]},
    )
    return hits, KeptLines(columns.keep(), reader.values, reader.rows)


def _dimensions(
    codes: Mapping[str, Array], values: Mapping[str, Values], is_view: Array, order: Order
) -> dict[str, Coded]:
    entry, exit_ = entry_and_exit(is_view, order)
    paths = codes["path"]
    found = {
        "host": Coded("Host", codes["virtual_host"], values["virtual_host"]),
        "page": Coded("Page", paths, values["path"]),
        "source": Coded("Source", pick(codes["source"], entry), values["source"], of_sessions=True),
        "status": Coded("Status", codes["status"], values["status"]),
        "method": Coded("Method", codes["method"], values["method"]),
        "entry": Coded("Entry page", pick(paths, entry), values["path"], of_sessions=True),
        "exit": Coded("Exit page", pick(paths, exit_), values["path"], of_sessions=True),
    }
    if "country" in codes:
        by_session = codes["country"][order.sessions.begins[:-1]]
        found["country"] = Coded("Country", by_session, values["country"], of_sessions=True)
    return found


class _Agents:
    """The user agents of sessions."""

    def __init__(self, agents: pl.DataFrame, values: Values, codes: Array, robot: Array) -> None:
        names = agents.unique("agent", keep="any")
        self._parsed = {row[0]: row[1:] for row in names.select("agent", *_PARSED).iter_rows()}
        self._values = values
        self._codes = codes
        self._robot = robot

    def dimensions(self, mask: Mask) -> dict[str, Coded]:
        """Return what is known about the user agents."""
        texts: Sequence[str | None] = [None, *self._values.names[1:]]
        parsed = [self._parsed.get(text, (None, None, None)) for text in texts]
        found = {}
        for place, (name, label) in enumerate(_LABELS.items()):
            values = Values(change=each_text(mask))
            numbers = values.encode(pa.array([each[place] for each in parsed], pa.string()))
            found[name] = Coded(label, small(numbers[self._codes]), values, of_sessions=True)
        kinds = Values()
        people, robots = kinds.number(PEOPLE), kinds.number(ROBOTS)
        who = np.where(self._robot, np.uint8(robots), np.uint8(people))
        return {**found, "who": Coded("People or robots", who, kinds, of_sessions=True)}


_PARSED: Final = ("name", "system", "device")
_LABELS: Final = {"browser": "Browser", "system": "System", "device": "Device"}


def _name_own_site(sources: Values, host: str | None) -> None:
    """Rename the site's own host, which is the source of sessions that continue after a pause."""
    number = sources.numbers.get(host or "")
    if number:
        del sources.numbers[sources.names[number]]
        sources.names[number] = OWN_SITE
        sources.numbers[OWN_SITE] = number


def _sizes(column: Any) -> Array:
    sizes: Array = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    return np.maximum(sizes, 0)
