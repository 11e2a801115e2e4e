"""Defines the user behaviour tables, and how a task processes its records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_formats.format import Format
from barnabas_pipeline import places
from barnabas_pipeline.arrow import to_frame, to_table
from barnabas_pipeline.behaviour import counts, lines, sessions
from barnabas_pipeline.behaviour.referrers import hosts_of
from barnabas_pipeline.behaviour.schemas import EVENTS, GROWING, MERGED
from barnabas_pipeline.instants import DAY_US, utc
from barnabas_pipeline.layout import Layout
from barnabas_pipeline.places import Positions
from barnabas_pipeline.view import View
from barnabas_pipeline.work import Outcome, Part


class BehaviourWork(NamedTuple):
    """Implements `work.Work`."""

    formats: tuple[Format, ...] = ()

    def part(self, records: pa.Table, seen: Positions) -> Part:
        classified = lines.classify(records, seen, self.formats)
        hits = lines.events(classified)
        stamped = hits.with_columns(utc(pl.col("time_us")).alias("time"))
        letters = places.dead_letters(classified, records)
        parts = {
            **_parts(hits),
            "formats": counts.formats(classified),
            "files": places.file_counts(classified),
        }
        return Part({"events": to_table(stamped, EVENTS), "dead_letters": letters}, parts)

    def finish(self, found: Outcome) -> Outcome:
        return found


class Behaviour(NamedTuple):
    """Implements `work.Definition`. `formats`: a user's own formats, which are tried first."""

    formats: tuple[Format, ...] = ()
    name: str = "behaviour"

    @property
    def layout(self) -> Layout:
        return BEHAVIOUR

    def work(self, before: View | None) -> BehaviourWork:
        return BehaviourWork(self.formats)


def _merge(name: str, parts: pa.Table) -> pl.DataFrame:
    """Merge the parts of a table in `MERGED`."""
    frame = to_frame(parts)
    if name == "sessions":
        return sessions.join(frame)
    if name == "files":
        return places.merge_files(frame)
    return counts.add_up(frame, MERGED[name].names)


def _newest_s(parts: Mapping[str, pl.DataFrame]) -> int | None:
    newest = parts["sessions"]["end"].dt.epoch("s").max()
    return newest if isinstance(newest, int) else None


def _parts(hits: pl.DataFrame) -> dict[str, pl.DataFrame]:
    day = (pl.col("time_us") // DAY_US).cast(pl.Int32).cast(pl.Date).alias("day")
    hits = hits.with_columns(day, hosts_of(hits["referrer"]).alias("host"))
    return {"sessions": sessions.join(sessions.single_hits(hits)), **counts.count_hits(hits)}


BEHAVIOUR: Final = Layout("barnabas.behaviour", GROWING, MERGED, _merge, _newest_s)
