"""Parses log lines into columns, with Polars.

Each line is assigned the first format that it matches. If it matches none, it is `raw`, and its
whole text is the message. Malformed lines, and lines with impossible times, get a `reason`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import polars as pl

from barnabas_formats import java_logging
from barnabas_formats.containers import join
from barnabas_formats.format import RAW, Format
from barnabas_formats.levels import BY_NAME, BY_SEVERITY
from barnabas_formats.objects import BEGINNINGS, DECODERS, JSON, OF_BYTES, OF_RECORDS
from barnabas_formats.pattern import Pattern
from barnabas_pipeline.logs.object_lines import Columns, ObjectReader
from barnabas_pipeline.logs.times import instants
from barnabas_pipeline.texts import texts

SCHEMA: Final = pl.Schema(
    {
        "time_us": pl.Int64,
        "format": pl.String,
        "host": pl.String,
        "component": pl.String,
        "level": pl.String,
        "pid": pl.String,
        "thread": pl.String,
        "message": pl.String,
        "more": pl.String,
        "reason": pl.String,
    }
)
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - its text gets a Z
_SAMPLE_LINES: Final = 50
_OF_OBJECTS: Final = pl.Schema(
    {name: pl.Boolean if name == "is_impossible" else SCHEMA[name] for name in Columns._fields}
)
_INNER: Final = ("host", "component", "level", "pid", "thread")
_WRAPPED: Final = r'^(?:\{"log":"|[0-9]{4}-[0-9]{2}-[0-9]{2}T\S+ (?:stdout|stderr) [FP])'
_BELOW: Final = (
    r"^(?<scopes>(?:[ \t]+=> [^\n]*\n)*)[ \t]+(?<message>[^\r\n]*)\r?(?:\n(?<rest>(?s:.*)))?$"
)
_PLAIN: Final = ("host", "component", "pid", "thread")


def parse_lines(
    values: pl.Series, is_cut: pl.Series, received_us: pl.Series, formats: Sequence[Format]
) -> pl.DataFrame:
    """Return a row of `SCHEMA` for each of `values` (binary). In a row with a `reason`, all other
    fields are null.

    `is_cut`: whether each line has been truncated. `received_us`: the time of each record, in
    microseconds since the epoch.
    """
    # Only the first line is matched; the rest, such as a stack trace, belongs to it.
    parts = texts(values).str.splitn("\n", 2)
    lines = pl.DataFrame(
        {
            "value": values,
            "is_cut": is_cut,
            "received_us": received_us,
            # A file may begin with a byte order mark.
            "head": parts.struct.field("field_0")
            .str.strip_prefix("\ufeff")
            .str.strip_chars_end("\r"),
            "more": parts.struct.field("field_1"),
        }
    ).with_row_index("row")
    bad = _bad(lines)
    left = lines.join(bad, on="row", how="anti").drop("is_cut")
    wrapping = [each.name for each in formats if each.wraps]
    rows = _matched(_joined(left) if wrapping else left, formats)
    is_wrapped = pl.col("format").is_in(wrapping)
    wrapped = rows.filter(is_wrapped)
    if wrapped.height:
        plain = rows.filter(~is_wrapped.fill_null(False))
        rows = pl.concat([plain, unwrap(wrapped, formats)])
    # Callers join these rows to their records by position.
    return pl.concat([bad, rows]).sort("row").drop("row")


def _matched(lines: pl.DataFrame, formats: Sequence[Format]) -> pl.DataFrame:
    """Return the rows of these lines. Each line is in the first format that matches, or raw if no
    format matches.
    """
    found = []
    left = lines = _with_level_below(lines)
    for takes in (*_takers(formats, is_built_in=False), *_takers(formats, is_built_in=True)):
        if not left.height:
            break
        rows = takes(left)
        if rows.height:
            found.append(rows)
            left = left.join(rows, on="row", how="anti")
    return pl.concat([*found, _raw(left)])


def _takers(
    formats: Sequence[Format], *, is_built_in: bool
) -> Iterator[Callable[[pl.DataFrame], pl.DataFrame]]:
    """Yield functions, each of which returns the rows of lines in certain formats."""
    ours = [each for each in formats if each.is_built_in == is_built_in]
    for decoder in DECODERS:
        some = [each for each in ours if each.json and (each.decoder or JSON) == decoder]
        if some:
            yield partial(_objects, decoder=decoder, formats=some)
    # Patterns with the same head are tried only on lines that begin with it; no line has two heads.
    groups: dict[tuple[bool, str], list[tuple[Format, Pattern]]] = {}
    for each in ours:
        for pattern in each.patterns:
            groups.setdefault((pattern.is_loose, pattern.head), []).append((each, pattern))
    for key in sorted(groups, key=lambda key: key[0]):
        yield partial(_texts, patterns=groups[key])


def _texts(lines: pl.DataFrame, patterns: Sequence[tuple[Format, Pattern]]) -> pl.DataFrame:
    head = patterns[0][1].head
    left = lines.filter(pl.col("head").str.contains(head)) if head else lines
    found = [_filled(left.select("row").clear())]
    for each, pattern in _busiest_first(left["head"], patterns):
        if not left.height:
            break
        # Searching for a match is several times as fast as extracting its groups.
        is_ours = left["head"].str.contains(pattern.regex)
        if is_ours.any():
            found.append(_fitting(left.filter(is_ours), each, pattern))
            left = left.filter(~is_ours)
    return pl.concat(found)


def _busiest_first(
    texts: pl.Series, patterns: Sequence[tuple[Format, Pattern]]
) -> Sequence[tuple[Format, Pattern]]:
    """Return the patterns, starting with the patterns of the most frequent formats.

    No line matches two formats in the catalogue, so the order of these formats affects only speed.
    The order of the patterns within a format, of loose patterns and of a user's own formats does
    matter.
    """
    of, pattern = patterns[0]
    if pattern.is_loose or not of.is_built_in or len(texts) < 10 * _SAMPLE_LINES:
        return patterns
    sample = texts.gather_every(len(texts) // _SAMPLE_LINES)
    counts = Counter[str]()
    for each, pattern in patterns:
        counts[each.name] += int(sample.str.contains(pattern.regex).sum())
    return sorted(patterns, key=lambda pair: -counts[pair[0].name])


def _objects(lines: pl.DataFrame, decoder: str, formats: Sequence[Format]) -> pl.DataFrame:
    some = lines.filter(pl.col("head").str.contains(BEGINNINGS[decoder]))
    is_record = decoder in OF_RECORDS
    texts = _records(some, decoder) if is_record else some["head"]
    found = ObjectReader(decoder, formats).read(texts)
    taken = pl.Series([each is not None for each in found], dtype=pl.Boolean)
    columns = pl.DataFrame(
        [each for each in found if each is not None], schema=_OF_OBJECTS, orient="row"
    )
    own = some.filter(taken).select("row", "received_us", pl.col("more").alias("lines"))
    rows = pl.concat([own, columns], how="horizontal")
    following = pl.lit(None, pl.String) if is_record else pl.col("lines")
    return _judged(
        rows.with_columns(
            # Impossible times remain null.
            pl.when(pl.col("is_impossible"))
            .then(pl.col("time_us"))
            .otherwise(pl.coalesce("time_us", "received_us"))
            .alias("time_us"),
            _both(pl.col("more"), following).alias("more"),
        )
    )


def _records(lines: pl.DataFrame, decoder: str) -> Iterable[str]:
    """Return each record with all of its lines, as input for the decoder."""
    whole = lines.select(
        "value", text=pl.concat_str("head", "more", separator="\n", ignore_nulls=True)
    )
    if decoder not in OF_BYTES:
        return whole["text"]
    return [
        text if value is None else value.decode("utf-8", "surrogateescape")
        for value, text in whole.iter_rows()
    ]


def _both(first: pl.Expr, second: pl.Expr) -> pl.Expr:
    joined = pl.concat_str(first, second, separator="\n", ignore_nulls=True)
    return pl.when(first.is_not_null() | second.is_not_null()).then(joined)


def _joined(lines: pl.DataFrame) -> pl.DataFrame:
    """Join the lines of each record that a container runtime has wrapped line by line."""
    is_wrapped = pl.col("more").is_not_null() & pl.col("head").str.contains(_WRAPPED)
    records = lines.filter(is_wrapped)
    if not records.height:
        return lines
    pairs = [join(head, more) for head, more in records.select("head", "more").iter_rows()]
    unwrapped = records.with_columns(
        pl.Series("head", [head for head, _ in pairs]),
        pl.Series("more", [more or None for _, more in pairs], dtype=pl.String),
    )
    return pl.concat([lines.filter(~is_wrapped), unwrapped])


def _with_level_below(lines: pl.DataFrame) -> pl.DataFrame:
    """Join the two lines of each record of Java's own logging."""
    is_java = pl.col("more").str.contains(java_logging.SECOND) & pl.col("head").str.contains(
        java_logging.FIRST
    )
    records = lines.filter(is_java)
    if not records.height:
        return lines
    below = pl.col("more").str.splitn("\n", 2).struct
    joined = records.with_columns(
        pl.concat_str(
            "head", below.field("field_0").str.strip_chars_end("\r"), separator=" "
        ).alias("head"),
        below.field("field_1").alias("more"),
    )
    return pl.concat([lines.filter(~is_java.fill_null(False)), joined])


def unwrap(
    rows: pl.DataFrame, formats: Sequence[Format], is_timed: str | None = None
) -> pl.DataFrame:
    """Parse the messages of the rows, which are themselves log lines, and return the rows with the
    resulting fields.

    The time is taken from the wrapping record, because it has a zone. `is_timed`: whether the
    wrapping record has a time; otherwise, the line's own time is used.
    """
    rows = rows.with_columns(pl.col("message").str.strip_chars_end("\r\n"))
    lines = rows.select(
        "row",
        "more",
        pl.col("time_us").alias("received_us"),
        pl.col("message").alias("head"),
        pl.lit(None, pl.Binary).alias("value"),
    )
    inner = _matched(lines, [each for each in formats if not each.wraps])
    known = inner.filter(pl.col("reason").is_null() & (pl.col("format") != RAW))
    found = known.select(
        "row",
        *(pl.col(name).alias(f"inner_{name}") for name in ("time_us", *_INNER, "message", "more")),
    )
    both = rows.join(found, on="row", how="left")
    is_known = pl.col("inner_message").is_not_null()
    own_time = pl.lit(False) if is_timed is None else is_known & ~pl.col(is_timed)
    return both.with_columns(
        *(pl.coalesce(f"inner_{name}", name).alias(name) for name in (*_INNER, "message")),
        pl.when(is_known).then("inner_more").otherwise("more").alias("more"),
        pl.when(own_time).then("inner_time_us").otherwise("time_us").alias("time_us"),
    ).select(rows.columns)


def _bad(lines: pl.DataFrame) -> pl.DataFrame:
    reason = (
        pl.when(pl.col("value").is_null())
        .then(pl.lit("the record has no value"))
        .when(pl.col("is_cut"))
        .then(pl.lit("the line is too long; only its beginning was sent"))
    )
    bad = lines.select("row", reason.alias("reason")).filter(pl.col("reason").is_not_null())
    return _filled(bad)


def _fitting(lines: pl.DataFrame, of: Format, pattern: Pattern) -> pl.DataFrame:
    groups = pl.col("head").str.extract_groups(pattern.regex).alias("groups")
    rows = lines.select("row", "received_us", "more", groups).unnest("groups")
    if of.message_below:
        rows = _with_message_below(rows)
    stripped = [name for name in _PLAIN if name in pattern.columns]
    rows = rows.with_columns(pl.col(name).str.strip_chars() for name in stripped)
    if "time" in pattern.columns:
        times = instants(rows["time"], rows["received_us"], pattern.time_form, of.zone)
    else:
        times = rows["received_us"]
    level = pl.lit(None, pl.String)
    if "level" in pattern.columns:
        level = _level_of(pl.col("level"))
    # Syslog messages have no level, but the priority contains the severity (RFC 5424, 6.2.1).
    elif "priority" in pattern.columns:
        level = _level_of_priority(pl.col("priority"))
    plain = [
        # RFC 5424 has a hyphen for a missing field (NILVALUE).
        pl.when(~pl.col(name).is_in(["-", ""])).then(pl.col(name)).alias(name)
        for name in stripped
    ]
    return _judged(
        rows.with_columns(
            times.alias("time_us"), level.alias("level"), pl.lit(of.name).alias("format"), *plain
        )
    )


def _with_message_below(rows: pl.DataFrame) -> pl.DataFrame:
    """Replace each empty message with the line that follows it in the record."""
    parts = pl.when(pl.col("message") == "").then(pl.col("more").str.extract_groups(_BELOW))
    rows = rows.with_columns(parts.alias("below"))
    field = pl.col("below").struct.field
    rest = pl.concat_str(
        field("scopes").str.strip_chars_end("\n"), field("rest"), separator="\n", ignore_nulls=True
    )
    rest = pl.when(field("scopes") == "").then(field("rest")).otherwise(rest)
    is_below = field("message").is_not_null()
    return rows.with_columns(
        pl.when(is_below).then(field("message")).otherwise("message").alias("message"),
        pl.when(is_below).then(rest).otherwise("more").alias("more"),
    ).drop("below")


def _judged(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows in `SCHEMA`. For a row with an impossible time, set `reason` and clear all
    other fields."""
    reason = pl.format("the line has an impossible time ({})", "format")
    is_good = pl.col("time_us").is_not_null()
    rows = _filled(rows.with_columns(pl.when(~is_good).then(reason).alias("reason")))
    others = [name for name in SCHEMA.names() if name != "reason"]
    return rows.with_columns(pl.when(is_good).then(pl.col(name)).alias(name) for name in others)


def _raw(lines: pl.DataFrame) -> pl.DataFrame:
    rows = lines.select(
        "row",
        "more",
        pl.col("received_us").alias("time_us"),
        pl.lit(RAW).alias("format"),
        pl.col("head").alias("message"),
    )
    return _filled(rows)


def _filled(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows in `SCHEMA`, with nulls in missing columns."""
    missing = [pl.lit(None, kind).alias(n) for n, kind in SCHEMA.items() if n not in rows.columns]
    return rows.with_columns(missing).select("row", *SCHEMA.names())


def _level_of(name: pl.Expr) -> pl.Expr:
    """Return the level that a line's `name` denotes, or null if it is not a level."""
    return name.str.to_uppercase().replace_strict(BY_NAME, default=None, return_dtype=pl.String)


def _level_of_priority(priority: pl.Expr) -> pl.Expr:
    """Return the level of a syslog message from the number in its first angle brackets."""
    severity = priority.cast(pl.Int32, strict=False) % 8
    return severity.replace_strict(BY_SEVERITY, default=None, return_dtype=pl.String)


def values(row: Mapping[str, Any], received_us: int) -> dict[str, object]:
    """Return the content of a row of `SCHEMA`, in the form in which samples and `barnabas formats
    try` show it.

    `received_us`: the time of the record, which is not shown as if it were the time of the line.
    """
    time_us = row["time_us"]
    shown = {name: value for name, value in row.items() if value is not None and name != "time_us"}
    if time_us is None or time_us == received_us:
        return shown
    at = _EPOCH + timedelta(microseconds=time_us)
    text = at.isoformat(timespec="microseconds" if time_us % 1_000_000 else "seconds")
    return {"time": f"{_trimmed(text)}Z", **shown}


def _trimmed(time: str) -> str:
    return time.rstrip("0") if "." in time else time
