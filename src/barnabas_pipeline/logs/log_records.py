"""Parses many records into columns.

A record either is a line, or contains many OpenTelemetry log records (OTLP), each of which becomes
a row.

The header `otlp.encoding` identifies OTLP and its encoding. If the header is missing, the encoding
configured for the job is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import polars as pl

from barnabas_formats import otlp
from barnabas_formats.format import Format
from barnabas_formats.otlp_request import ENCODINGS as OF_OTLP
from barnabas_formats.otlp_request import OTLP_JSON, NotOtlp
from barnabas_pipeline.logs.log_lines import SCHEMA, parse_lines, unwrap

LINES: Final = "lines"
AUTO: Final = "auto"
ENCODINGS: Final = (AUTO, LINES, *OF_OTLP)
"""How to read records that lack the header. `LINES`: as lines, or as OTLP in JSON if they were
written by the Collector's file exporter. `AUTO`: depending on the first bytes of each record."""

_OWN: Final = pl.Schema(
    {
        "item": pl.Int64,
        "service": pl.String,
        "trace_id": pl.String,
        "span_id": pl.String,
        "attributes": pl.String,
        "resource": pl.String,
        "letter": pl.Binary,
    }
)
"""The columns of OTLP. `item`: the number of a log record within its record, starting at 0.
`letter`: the value of the dead letter, if it differs from the value of the record."""
_DECODED: Final = pl.Schema(
    [
        ("record", pl.UInt32),
        *SCHEMA.items(),
        *_OWN.items(),
        ("is_timed", pl.Boolean),
        ("is_line", pl.Boolean),
    ]
)
_OF_ENTRY: Final = tuple(name for name in otlp.Entry._fields if name in _DECODED)
_PORTION: Final = 20_000  # log records; more Python objects would take too much memory


def parse_records(
    records: pl.DataFrame, received_us: pl.Series, formats: Sequence[Format], encoding: str
) -> pl.DataFrame:
    """Return rows of `log_lines.SCHEMA`, with the columns of OTLP and the number of each row's
    `record`, in the order of `records`.

    `records`: each record's `value`, whether it was `cut` and sent `twice`, and the `encoding` in
    its header. A record that was sent twice results in one row, regardless of its content.
    `encoding`: one of `ENCODINGS`.
    """
    rows = records.select(
        "value",
        "cut",
        "twice",
        _encodings(records, encoding, formats),
        received_us.alias("received_us"),
    ).with_row_index("record")
    is_line = pl.col("encoding").is_null()
    others = rows.filter(~is_line)
    lines = rows.filter(is_line) if others.height else rows
    fields = parse_lines(lines["value"], lines["cut"], lines["received_us"], formats)
    nothing = [pl.lit(None, kind).alias(name) for name, kind in _OWN.items()]
    found = pl.concat([lines.select("record"), fields], how="horizontal").with_columns(nothing)
    if not others.height:
        return found
    decoded = _decoded(others, formats)
    return pl.concat([found, decoded]).sort("record", maintain_order=True)


def parse_texts(
    values: pl.Series, is_cut: pl.Series, received_us: pl.Series, formats: Sequence[Format]
) -> pl.DataFrame:
    """Return the same rows as `parse_records` for the lines of a file, which have no headers."""
    nothing = pl.repeat(None, len(values), dtype=pl.String, eager=True)
    records = pl.DataFrame(
        {"value": values, "cut": is_cut, "twice": nothing.is_not_null(), "encoding": nothing}
    )
    return parse_records(records, received_us, formats, LINES)


def _encodings(records: pl.DataFrame, encoding: str, formats: Sequence[Format]) -> pl.Series:
    """Return the encoding of each record, or null for a line."""
    value = pl.col("value")
    without: pl.Expr
    if encoding == LINES and not any(each.name == otlp.FORMAT for each in formats):
        without = pl.lit(None, pl.String)
    elif encoding == LINES:
        without = pl.when(value.bin.starts_with(b'{"resourceLogs":')).then(pl.lit(OTLP_JSON))
    elif encoding == AUTO:
        # Only records that begin in one of these ways are examined one by one.
        is_likely = value.bin.starts_with(b"\n") | value.bin.starts_with(b"{")
        without = pl.when(is_likely).then(value).map_elements(otlp.recognise, pl.String)
    else:
        without = pl.when(True).then(pl.lit(encoding))
    # A truncated record, or one without a value, is rejected like a line.
    is_whole = value.is_not_null() & ~pl.col("cut")
    known = pl.when(is_whole).then(pl.coalesce("encoding", without))
    return records.select(known.alias("encoding")).to_series()


def _decoded(records: pl.DataFrame, formats: Sequence[Format]) -> pl.DataFrame:
    frames, waiting = [], []
    columns = records.select("record", "value", "encoding", "received_us", "twice")
    for record, value, encoding, received_us, twice in columns.iter_rows():
        if twice:
            waiting.append({"record": record})
        else:
            waiting += _rows(record, value, encoding, received_us)
        if len(waiting) >= _PORTION:
            frames.append(pl.DataFrame(waiting, schema=_DECODED))
            waiting = []
    rows = pl.concat([*frames, pl.DataFrame(waiting, schema=_DECODED)])
    # The Collector sends a file's lines unparsed, unless it is configured to parse them.
    is_line = pl.col("is_line").fill_null(False)
    rows = rows.with_row_index("row")
    lines = unwrap(rows.filter(is_line), formats, "is_timed")
    found = pl.concat([rows.filter(~is_line), lines]).sort("row")
    return found.drop("row", "is_timed", "is_line")


def _rows(record: int, value: bytes, encoding: str, received_us: int) -> Iterator[dict[str, Any]]:
    if encoding not in OF_OTLP:
        known = " nor ".join(OF_OTLP)
        yield {"record": record, "reason": f"the header otlp.encoding is neither {known}"}
        return
    try:
        found = otlp.decode(value, encoding)
    except NotOtlp as error:
        yield {"record": record, "reason": str(error)}
        return
    for entry in found.entries:
        time_us = entry.time_us or entry.observed_us or received_us
        yield {
            "record": record,
            **{name: getattr(entry, name) for name in _OF_ENTRY},
            "time_us": time_us,
            "format": otlp.FORMAT,
            "is_timed": entry.time_us is not None,
            "is_line": entry.is_text and entry.level is None,
        }
    for letter in found.letters:
        yield {"record": record, "reason": letter.reason, "letter": letter.value}
