"""Defines the system log tables, and how the tasks and the driver process a batch.

    tasks    records ─▶ lines ─▶ masked ─┬▶ template known: entries, counts
                                         └▶ not known: left to the driver
    driver   lines left, in the log's order ─▶ templates learnt ─▶ entries, counts

As a result, the templates do not depend on how records are distributed over tasks. Once a log's
templates are known, the driver does almost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_collector.headers import HOST
from barnabas_formats.format import Format
from barnabas_formats.otlp_request import ENCODING
from barnabas_pipeline import places
from barnabas_pipeline.arrow import to_frame, to_table
from barnabas_pipeline.instants import utc
from barnabas_pipeline.layout import Layout
from barnabas_pipeline.logs.counts import count_entries, merge
from barnabas_pipeline.logs.log_records import LINES, parse_records
from barnabas_pipeline.logs.masks import mask_variables
from barnabas_pipeline.logs.schemas import ENTRIES, GROWING, MERGED, TEMPLATES
from barnabas_pipeline.logs.templates import Template, Templates
from barnabas_pipeline.places import Headers, Positions, locate, mark_sent_twice
from barnabas_pipeline.view import View
from barnabas_pipeline.work import Outcome, Part

_MASKED: Final = "masked"
_LEFT: Final = ENTRIES.append(pa.field(_MASKED, pa.string()))


class LogsWork(NamedTuple):
    """Implements `work.Work`."""

    formats: tuple[Format, ...]
    templates: Templates
    encoding: str = LINES

    def part(self, records: pa.Table, seen: Positions) -> Part:
        lines = classify(records, seen, self.formats, self.encoding)
        is_good = ~pl.col("twice") & pl.col("reason").is_null()
        good = lines.filter(is_good).with_columns(mask_variables(pl.col("message")).alias(_MASKED))
        entries = good.join(self._known(good), on=["format", _MASKED], how="left")
        is_known = pl.col("template").is_not_null()
        known = entries.filter(is_known)
        rows = {
            "entries": to_table(_stamped(known), ENTRIES),
            "dead_letters": places.dead_letters(lines, records),
        }
        parts = {**count_entries(known), "files": places.file_counts(lines)}
        left = entries.filter(~is_known)
        return Part(rows, parts, to_table(_stamped(left), _LEFT) if left.height else None)

    def finish(self, found: Outcome) -> Outcome:
        if found.left is None:
            return found
        # Restore the topic's order, which decides which templates are learnt.
        left = to_frame(found.left).sort("partition", "offset", "item").drop("template")
        learnt = self._learnt(left)
        entries = left.join(
            learnt.select("format", _MASKED, "template"), on=["format", _MASKED], how="left"
        ).with_columns(pl.col("time").dt.epoch("us").alias("time_us"))
        counts = count_entries(entries)
        # Only the driver knows the numbers and texts of new templates.
        counts["templates"] = _with_texts(counts["templates"], learnt)
        parts = {
            name: merge(name, pl.concat([found.parts[name], part.select(MERGED[name].names)]))
            for name, part in counts.items()
        }
        return found._replace(
            rows={**found.rows, "entries": to_table(entries, ENTRIES)},
            parts={**found.parts, **parts},
            left=None,
        )

    def _known(self, entries: pl.DataFrame) -> pl.DataFrame:
        """Return the template of each distinct masked message, or null if no template is known."""
        # A log has few distinct messages; look up each one once.
        distinct = entries.select("format", _MASKED).unique()
        found = [self.templates.find(*row) for row in distinct.iter_rows()]
        return distinct.with_columns(pl.Series("template", found, dtype=pl.String))

    def _learnt(self, left: pl.DataFrame) -> pl.DataFrame:
        """Return the template of each distinct masked message, learnt in the order of the log."""
        distinct = left.select("format", _MASKED).unique(maintain_order=True)
        found = [self.templates.learn(*row) for row in distinct.iter_rows()]
        # If a template became more general, use its newest text.
        newest = {each.id: each for each in found if each is not None}
        rows = [None if each is None else newest[each.id] for each in found]
        return distinct.with_columns(
            pl.Series("template", [each and each.id for each in rows], dtype=pl.String),
            pl.Series("number", [each and each.number for each in rows], dtype=pl.Int64),
            pl.Series("began", [each and each.began for each in rows], dtype=pl.String),
            pl.Series("text", [each and each.text for each in rows], dtype=pl.String),
            pl.Series("wildcards", [each and each.wildcards for each in rows], dtype=pl.Int64),
        )


class SystemLogs(NamedTuple):
    """Implements `work.Definition`.

    `formats`: the formats, in the order in which they are tried. `encoding`: the encoding of
    records whose headers do not specify one, from `log_records.ENCODINGS`.
    """

    formats: tuple[Format, ...]
    name: str = "logs"
    encoding: str = LINES

    @property
    def layout(self) -> Layout:
        return LOGS

    def work(self, before: View | None) -> LogsWork:
        if before is None:
            return LogsWork(self.formats, Templates(), self.encoding)
        columns = ("template", "number", "format", "began", "text")
        rows = before.frame("templates").select(columns)
        known = (Template(*row) for row in rows.iter_rows())
        return LogsWork(self.formats, Templates(known), self.encoding)


def classify(
    records: pa.Table, seen: Positions, formats: tuple[Format, ...], encoding: str = LINES
) -> pl.DataFrame:
    """Return a row for every line and log record, with its place, its fields, `received`, `reason`
    and `twice`, and the number of its `record`."""
    headers = Headers(records["headers"])
    received = pl.Series(records["timestamp"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()))
    lines = mark_sent_twice(locate(records), seen).with_columns(
        headers.texts(ENCODING, "replace").alias("encoding"),
        headers.texts(HOST, "replace").alias("own_host"),
        received.cast(pl.Datetime("us", "UTC")).alias("received"),
    )
    fields = parse_records(lines, received, formats, encoding)
    places = lines.drop("value", "encoding")
    if fields.height > lines.height:  # otherwise, each record has one row
        places = places[fields["record"]]
    return pl.concat([places, fields], how="horizontal").with_columns(
        # The host in the line takes precedence, because a relay collects lines from many machines.
        pl.coalesce("host", "own_host").alias("host")
    )


def _stamped(entries: pl.DataFrame) -> pl.DataFrame:
    return entries.with_columns(utc(pl.col("time_us")).alias("time"))


def _with_texts(counts: pl.DataFrame, learnt: pl.DataFrame) -> pl.DataFrame:
    """Return the learnt templates, with these line counts, as a part of the table `templates`."""
    of_lines = counts.select("template", "lines", "first", "last")
    rows = learnt.drop(_MASKED).drop_nulls("template").unique("template")
    return rows.join(of_lines, on="template").select(TEMPLATES.names)


def _merge(name: str, parts: pa.Table) -> pl.DataFrame:
    return merge(name, to_frame(parts))


def _newest_s(parts: Mapping[str, pl.DataFrame]) -> int | None:
    newest = parts["components"]["last"].dt.epoch("s").max()
    return newest if isinstance(newest, int) else None


LOGS: Final = Layout("barnabas.logs", GROWING, MERGED, _merge, _newest_s)
