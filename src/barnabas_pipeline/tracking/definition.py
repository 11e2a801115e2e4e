"""Defines the tracking tables, and how the tasks and the driver process a batch.

    tasks    records ─▶ events, dead letters ─▶ valid events are left to the driver
    driver   valid events ─▶ each id once, also across batches ─▶ rows and counts

A tracker repeats an event until it is acknowledged, and the server recognises most repetitions, but
not all of them. Only the table knows every id, and only the driver sees all tasks' events. A
repetition has the same id and the same time as the first attempt. An event with a stored id but a
different time counts as a repetition only if the stored event is within the batch's time span.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_pipeline import places
from barnabas_pipeline.arrow import scan, to_frame, to_table
from barnabas_pipeline.instants import utc
from barnabas_pipeline.layout import Layout
from barnabas_pipeline.places import Positions, locate, mark_sent_twice
from barnabas_pipeline.schemas import FILES, TIME
from barnabas_pipeline.tracking.counts import count_events, count_repeated, merge
from barnabas_pipeline.tracking.envelope import parse_events
from barnabas_pipeline.tracking.schemas import EVENTS, GROWING, MERGED
from barnabas_pipeline.view import View
from barnabas_pipeline.work import Outcome, Part

_ORDER: Final = ("partition", "offset")


class TrackingWork:
    """Implements `work.Work`. `before` is the state before the batch."""

    def __init__(self, before: View | None = None) -> None:
        self._before = before

    def __reduce__(self) -> tuple[Any, ...]:
        # The tasks receive a copy, and do not need the tables.
        return TrackingWork, ()

    def part(self, records: pa.Table, seen: Positions) -> Part:
        events = classify(records, seen)
        is_good = ~pl.col("twice") & pl.col("reason").is_null()
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
        is_first = pl.col("id").is_first_distinct() & ~pl.col("id").is_in(
            self._known(events).implode()
        )
        marked = events.with_columns(is_first.alias("_first"))
        once = marked.filter("_first").drop("_first")
        repeated = marked.filter(~pl.col("_first"))
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

    def _known(self, events: pl.DataFrame) -> pl.Series:
        """Return the ids of these events that earlier batches have already stored."""
        import pyarrow.compute as pc  # type: ignore[import-untyped]

        dataset = None if self._before is None else self._before.dataset("events")
        if dataset is None:
            return pl.Series([], dtype=pl.String)
        ids = events["id"].unique()
        # Because of the times, only files that contain such times are read.
        times = [pa.scalar(at, TIME) for at in (events["time"].min(), events["time"].max())]
        condition = (
            (pc.field("time") >= times[0])
            & (pc.field("time") <= times[1])
            & pc.field("id").isin(ids.to_arrow(compat_level=pl.CompatLevel.oldest()))
        )
        return scan(dataset, EVENTS, ["id"], condition)["id"]


class Tracking(NamedTuple):
    """Implements `work.Definition`."""

    name: str = "events"

    @property
    def layout(self) -> Layout:
        return TRACKING

    def work(self, before: View | None) -> TrackingWork:
        return TrackingWork(before)


def classify(records: pa.Table, seen: Positions) -> pl.DataFrame:
    """Return a row for each record, with its place, its fields, `reason` and `twice`."""
    lines = mark_sent_twice(locate(records), seen)
    stored = pl.Series(records["timestamp"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()))
    return pl.concat(
        [lines.drop("value", "columns"), parse_events(lines["value"], stored)], how="horizontal"
    )


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
