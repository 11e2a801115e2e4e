"""Parses a topic's records into the rows that the live view counts.

The records are classified by the same functions as in the pipelines, so that both count alike. What
a pipeline knows from its tables is here known only of the newest records: a repeated event is
recognised among the last hundred thousand ids, and a line that was sent twice by the positions of
the last files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import numpy as np
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_formats.catalogue import catalogue
from barnabas_formats.format import in_zone
from barnabas_pipeline.behaviour import lines as access_lines
from barnabas_pipeline.behaviour.line_parts import DIRECTIVE
from barnabas_pipeline.behaviour.referrers import hosts_of
from barnabas_pipeline.logs import definition as system_logs
from barnabas_pipeline.logs.bursts import bursts
from barnabas_pipeline.logs.masks import mask_variables
from barnabas_pipeline.logs.templates import Templates
from barnabas_pipeline.pages.last_half_hour import FIELDS, LEADERS, LastHalfHour
from barnabas_pipeline.pages.shapes import Kind, Leader, Leaders
from barnabas_pipeline.tracking import definition as tracking
from barnabas_pipeline.tracking.counts import ERROR

_MOST_IDS: Final = 100_000
_MOST_FILES: Final = 10_000
_FAILED: Final = 400
_ERRORS: Final = ("ERROR", "FATAL")

_FAILURES: Final = (pl.exceptions.PolarsError, pa.ArrowException, ArithmeticError, ValueError)


class Reader(Protocol):
    """Parses the records of one kind of topic."""

    @property
    def columns(self) -> Sequence[str]:
        """The columns whose values are counted."""
        ...

    def rows(self, records: pa.Table) -> pl.DataFrame:
        """Return a row for each hit and for each rejected record."""
        ...

    def forget(self) -> None:
        """Forget which records were read, because a new topic replaces theirs."""
        ...

    def lists(self, counts: LastHalfHour) -> list[Leaders]:
        """Return the lists to show."""
        ...


def reader_of(kind: Kind) -> Reader:
    """Return a new reader, which knows no records yet."""
    return _READERS[kind]()


def read_rows(reader: Reader, records: pa.Table, now_ms: int) -> pl.DataFrame:
    """Return the rows of these records, from `Consumer.poll_arrow` with headers.

    Should a record make the reader fail, only this record is rejected.
    """
    return _rows(reader, _with_possible_times(records, now_ms))


def _rows(reader: Reader, records: pa.Table) -> pl.DataFrame:
    try:
        return reader.rows(records)
    except _FAILURES:
        if len(records) > 1:
            half = len(records) // 2
            parts = records.slice(0, half), records.slice(half)
            return pl.concat([_rows(reader, part) for part in parts])
    at_ms = _stored_ms(records)
    nothing = [pl.lit(None, pl.String).alias(name) for name in ("visitor", *reader.columns)]
    rejected = [pl.lit(False).alias("is_error"), pl.lit(True).alias("is_rejected")]
    return _selected(pl.DataFrame({"time_ms": at_ms}).with_columns(*nothing, *rejected), reader)


class _Seen:
    """The highest position of each of the last files."""

    def __init__(self) -> None:
        self.positions: dict[tuple[str, int], int] = {}

    def take(self, found: pl.DataFrame) -> pl.DataFrame:
        """Return the classified rows that were not sent twice, and remember their positions."""
        highest = found.group_by("file_id", "partition").agg(pl.col("position").max())
        for file_id, partition, position in highest.iter_rows():
            key = (file_id, partition)
            before = self.positions.pop(key, -1)  # so that it becomes the newest one
            self.positions[key] = max(before, position)
        while len(self.positions) > _MOST_FILES:
            del self.positions[next(iter(self.positions))]
        return found.filter(~pl.col("twice"))


class _Forgetful:
    def __init__(self) -> None:
        self._seen = _Seen()

    def forget(self) -> None:
        """Forget which records were read, because a new topic replaces theirs."""
        self._seen = _Seen()


class EventReader(_Forgetful):
    """Reads events of pages and apps."""

    columns = ("page", "name", "source")

    def __init__(self) -> None:
        super().__init__()
        self._ids = _RecentIds()

    def rows(self, records: pa.Table) -> pl.DataFrame:
        """Return a row for each event, with each id once."""
        found = tracking.classify(records, self._seen.positions)
        found = found.with_columns(_stored_ms(records).alias("stored_ms"))
        found = self._seen.take(found)
        found = found.filter(self._ids.take(found["id"]))
        is_view = pl.col("page_view") & ~pl.col("robot")
        rows = found.select(
            (pl.col("time_us") // 1_000).alias("time_ms"),
            pl.when(~pl.col("robot")).then("visitor").alias("visitor"),
            (pl.col("name") == ERROR).alias("is_error"),
            "reason",
            "stored_ms",
            "name",
            pl.when(is_view).then("path").alias("page"),
            pl.when(is_view).then(pl.coalesce("source", "referrer")).alias("source"),
        )
        return _judged(rows, self)

    def lists(self, counts: LastHalfHour) -> list[Leaders]:
        """Return pages, names and sources."""
        titles = {"page": "Pages", "name": "Events", "source": "Sources"}
        return [Leaders(title=title, rows=counts.top(name)) for name, title in titles.items()]


class AccessReader(_Forgetful):
    """Reads lines of access logs."""

    columns = ("page", "status", "source", "asset_referrer")

    def rows(self, records: pa.Table) -> pl.DataFrame:
        """Return a row for each hit."""
        found = access_lines.classify(records, self._seen.positions)
        found = found.with_columns(
            _stored_ms(records).alias("stored_ms"),
            hosts_of(found["referrer"]).alias("source"),
        )
        found = self._seen.take(found).filter(
            pl.col("reason").is_not_null() | (pl.col("format") != DIRECTIVE)
        )
        is_view = pl.col("page_view") & ~pl.col("robot")
        is_error = pl.col("status") >= _FAILED
        # As in the tables, a visitor is an address with a user agent.
        visitor = pl.concat_str("client", "agent", separator=" ", ignore_nulls=True)
        rows = found.select(
            (pl.col("time_us") // 1_000).alias("time_ms"),
            pl.when(~pl.col("robot") & pl.col("client").is_not_null())
            .then(visitor)
            .alias("visitor"),
            is_error.alias("is_error"),
            "reason",
            "stored_ms",
            pl.when(is_view).then("path").alias("page"),
            pl.when(is_error).then(pl.col("status").cast(pl.String)).alias("status"),
            pl.when(is_view & (pl.col("source") != pl.col("virtual_host").fill_null("")))
            .then("source")
            .alias("source"),
            pl.when(~pl.col("page_view")).then("source").alias("asset_referrer"),
        )
        return _judged(rows, self)

    def lists(self, counts: LastHalfHour) -> list[Leaders]:
        """Return pages, statuses of errors, and sources without the site itself."""
        return [
            Leaders(title="Pages", rows=counts.top("page")),
            Leaders(title="Errors by status", rows=counts.top("status")),
            Leaders(title="Sources", rows=counts.top("source", _own_host(counts))),
        ]


class LogReader(_Forgetful):
    """Reads lines of system logs."""

    columns = ("level", "component", "template")

    def __init__(self) -> None:
        super().__init__()
        self._formats = in_zone(catalogue("system"), "UTC")
        self._templates = Templates()
        self._texts: dict[str, tuple[str, str]] = {}
        """The format and the newest text of each template."""

    def rows(self, records: pa.Table) -> pl.DataFrame:
        """Return a row for each line and each log record."""
        found = system_logs.classify(records, self._seen.positions, self._formats)
        found = self._seen.take(found)
        masked = found.select("format", mask_variables(pl.col("message")).alias("masked"))
        rows = found.select(
            (pl.col("time_us") // 1_000).alias("time_ms"),
            pl.lit(None, pl.String).alias("visitor"),
            pl.col("level").is_in(_ERRORS).alias("is_error"),
            "reason",
            pl.col("received").dt.epoch("ms").alias("stored_ms"),
            "level",
            "component",
            self._template(masked),
        )
        return _judged(rows, self)

    def lists(self, counts: LastHalfHour) -> list[Leaders]:
        """Return levels, components, messages, and the newest bursts."""
        messages = [
            Leader(label=self._text(row["label"]), count=row["count"])
            for row in counts.top("template")
        ]
        return [
            Leaders(title="Bursts", rows=self._bursts(counts)),
            Leaders(title="Levels", rows=counts.top("level")),
            Leaders(title="Components", rows=counts.top("component")),
            Leaders(title="Messages", rows=messages),
        ]

    def _template(self, masked: pl.DataFrame) -> pl.Series:
        """Return the template of each message, and learn those that are not known."""
        distinct = masked.drop_nulls().unique(maintain_order=True)
        ids: list[str | None] = []
        for format_name, text in distinct.iter_rows():
            found = self._templates.learn(format_name, text)
            ids.append(None if found is None else found.id)
            if found is not None:
                self._texts[found.id] = format_name, found.text
        known = distinct.with_columns(pl.Series("template", ids, dtype=pl.String))
        return masked.join(known, on=["format", "masked"], how="left", maintain_order="left")[
            "template"
        ]

    def _text(self, template: str) -> str:
        return self._texts[template][1]

    def _bursts(self, counts: LastHalfHour) -> list[Leader]:
        minutes = counts.of_minutes("template").rename({"value": "template", "count": "lines"})
        of = [(each, self._texts[each][0]) for each in minutes["template"].unique().sort()]
        schema = {"template": pl.String, "format": pl.String}
        found = bursts(minutes, pl.DataFrame(of, schema=schema, orient="row"))
        newest = sorted(found, key=lambda each: each.begin, reverse=True)[:LEADERS]
        return [Leader(label=self._text(each.template), count=each.lines) for each in newest]


_READERS: Final[Mapping[Kind, Callable[[], Reader]]] = {
    "events": EventReader,
    "access": AccessReader,
    "logs": LogReader,
}


class _RecentIds:
    """The ids of the last events, at least `_MOST_IDS` of them and at most twice as many."""

    def __init__(self) -> None:
        self._newer: set[int] = set()
        self._older: set[int] = set()

    def take(self, ids: pl.Series) -> pl.Series:
        """Return whether each id is new; a null always is."""
        return pl.Series([id_ is None or self._is_new(hash(id_)) for id_ in ids], dtype=pl.Boolean)

    def _is_new(self, id_: int) -> bool:
        if id_ in self._newer or id_ in self._older:
            return False
        if len(self._newer) >= _MOST_IDS:
            self._newer, self._older = set(), self._newer
        self._newer.add(id_)
        return True


def _own_host(counts: LastHalfHour) -> str | None:
    """Return the host that refers to most images and scripts, which is the site itself."""
    referrers = counts.totals("asset_referrer")
    leading = referrers.most_common(1)
    is_main = bool(leading) and 2 * leading[0][1] > referrers.total()
    return leading[0][0] if is_main else None


def _judged(rows: pl.DataFrame, reader: Reader) -> pl.DataFrame:
    is_rejected = pl.col("reason").is_not_null()
    return _selected(
        rows.with_columns(
            is_rejected.alias("is_rejected"),
            pl.col("is_error").fill_null(False),
            pl.coalesce("time_ms", "stored_ms").alias("time_ms"),
        ),
        reader,
    )


def _selected(rows: pl.DataFrame, reader: Reader) -> pl.DataFrame:
    return rows.select(*FIELDS.names(), *reader.columns)


def _with_possible_times(records: pa.Table, now_ms: int) -> pa.Table:
    """Limit the records' timestamps, which producers choose, to those between 1970 and now."""
    column = records.schema.get_field_index("timestamp")
    field = records.schema.field(column)
    stored = _stored_ms(records).fill_null(now_ms).clip(0, now_ms)
    times = pa.array(stored.to_numpy().astype(np.int64)).cast(pa.timestamp("ms", "UTC"))
    return records.set_column(column, field, times.cast(field.type))


def _stored_ms(records: pa.Table) -> pl.Series:
    times = records["timestamp"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    return pl.Series("stored_ms", times, dtype=pl.Int64)
