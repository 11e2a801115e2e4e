"""Defines the tracking tables, and how the tasks and the driver process a batch.

    tasks    records ─▶ events, dead letters ─▶ valid events are left to the driver
    driver   valid events ─▶ each id once, also across batches ─▶ rows and counts

A record is an event as JSON or a line of an access log, whose page views and errors become events.

A tracker repeats an event until it is acknowledged, and the server recognises most repetitions, but
not all of them. Only the table knows every id, and only the driver sees all tasks' events. An event
repeats another one if it has the same id, whatever its time and its other fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_pipeline import places
from barnabas_pipeline.arrow import to_frame, to_table
from barnabas_pipeline.instants import utc
from barnabas_pipeline.layout import Layout
from barnabas_pipeline.places import Positions, locate, mark_sent_twice
from barnabas_pipeline.schemas import FILES
from barnabas_pipeline.tracking.access_hits import access_events
from barnabas_pipeline.tracking.counts import count_events, count_repeated, merge
from barnabas_pipeline.tracking.envelope import parse_events
from barnabas_pipeline.tracking.known_ids import KnownIds
from barnabas_pipeline.tracking.schemas import EVENTS, GROWING, MERGED
from barnabas_pipeline.view import View
from barnabas_pipeline.work import Outcome, Part

_ORDER: Final = ("partition", "offset")


class TrackingWork:
    """Implements `work.Work`. `before` is the state before the batch, and `known` the ids that it
    contains. `key` is the secret with which the visitors of access logs are hashed.
    """

    def __init__(
        self, key: bytes = b"", before: View | None = None, known: KnownIds | None = None
    ) -> None:
        self._key = key
        self._before = before
        self._known = known

    def __reduce__(self) -> tuple[Any, ...]:
        # The tasks receive a copy, and do not need the tables.
        return TrackingWork, (self._key,)

    def part(self, records: pa.Table, seen: Positions) -> Part:
        events = classify(records, seen, self._key)
        is_good = ~pl.col("twice") & pl.col("name").is_not_null()
        good = events.filter(is_good).with_columns(
            utc(pl.col("time_us")).alias("time"), utc(pl.col("received_us")).alias("received")
        )
        return Part(
            {"dead_letters": places.dead_letters(events, records)},
            {"files": places.file_counts(events)},
            to_table(good, EVENTS) if good.height else None,
        )

    def finish(self, found: Outcome) -> Outcome:
        if found.left is None:
            return found
        # The result must not depend on the distribution of the records over tasks.
        events = to_frame(found.left).sort(*_ORDER)
        known = KnownIds() if self._known is None else self._known
        dataset = None if self._before is None else self._before.dataset("events")
        stored = known.find_stored(dataset, events)
        is_first = pl.col("id").is_first_distinct() & ~pl.col("id").is_in(stored.implode())
        marked = events.with_columns(is_first.alias("_first"))
        once = marked.filter("_first").drop("_first")
        repeated = marked.filter(~pl.col("_first"))
        known.add(once["id"])
        micros = [pl.col(name).dt.epoch("us").alias(f"{name}_us") for name in ("time", "received")]
        parts = {**found.parts, **count_events(once.with_columns(micros))}
        for name, more in (
            ("files", _correction(repeated)),
            ("arrivals", count_repeated(repeated)),
        ):
            parts[name] = merge(name, pl.concat([parts[name], more]))
        return found._replace(
            rows={**found.rows, "events": to_table(once, EVENTS)}, parts=parts, left=None
        )


class Tracking:
    """Implements `work.Definition`. `key` is the secret with which the visitors of access logs are
    hashed.
    """

    name = "events"

    def __init__(self, key: bytes = b"") -> None:
        self._key = key
        self._known = KnownIds()

    @property
    def layout(self) -> Layout:
        return TRACKING

    def work(self, before: View | None) -> TrackingWork:
        return TrackingWork(self._key, before, self._known)


def classify(records: pa.Table, seen: Positions, key: bytes = b"") -> pl.DataFrame:
    """Return a row for each record, with its place, its fields, `reason` and `twice`.

    `key`: the secret with which the visitors of access logs are hashed.
    """
    lines = mark_sent_twice(locate(records), seen)
    stored = pl.Series(records["timestamp"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()))
    fields = parse_events(lines["value"], stored)
    # What is no event may be a line of an access log, some of which are JSON, too.
    is_line = fields["reason"].is_not_null() & lines["value"].is_not_null() & ~lines["twice"]
    if is_line.any():
        left = lines.filter(is_line)
        hits = access_events(left, key)
        is_text = ~left["value"].bin.starts_with(b"{") & left["file"].is_not_null()
        is_known = hits["reason"].is_null() | is_text
        places = is_line.arg_true().filter(is_known)
        fields = fields.with_row_index("_row")
        others = fields.filter(~pl.col("_row").is_in(places.implode()))
        found = hits.filter(is_known).with_columns(places.cast(pl.UInt32).alias("_row"))
        fields = pl.concat([others, found.select(fields.columns)]).sort("_row").drop("_row")
    return pl.concat([lines.drop("value", "columns"), fields], how="horizontal")


def _correction(events: pl.DataFrame) -> pl.DataFrame:
    """Return the correction to the table `files` for repeated events, which the tasks counted as
    valid.
    """
    count = pl.len().cast(pl.Int64)
    return (
        events.group_by("file_id", "partition")
        .agg(
            pl.col("file", "position").max(),
            (-count).alias("valid"),
            count.alias("sent_twice"),
            *(pl.lit(0, pl.Int64).alias(name) for name in ("read", "dead_letters")),
        )
        .select(FILES.names)
    )


def _merge(name: str, parts: pa.Table) -> pl.DataFrame:
    return merge(name, to_frame(parts))


def _newest_s(parts: Mapping[str, pl.DataFrame]) -> int | None:
    newest = parts["traffic"]["minute"].dt.epoch("s").max()
    return newest if isinstance(newest, int) else None


TRACKING: Final = Layout("barnabas.events", GROWING, MERGED, _merge, _newest_s)
