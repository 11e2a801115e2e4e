"""Parses access log lines into columns, with Polars.

Lines in the usual form are matched by a strict pattern. All other lines are parsed by `parse_line`,
which returns a reason for each invalid line. For every line that the pattern matches, the pattern
and `parse_line` yield the same fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import polars as pl

from barnabas_formats.format import Format
from barnabas_pipeline.behaviour import w3c_directive
from barnabas_pipeline.behaviour.access_line import CONTROL, PRODUCT, URL, parse_line
from barnabas_pipeline.behaviour.line_front import ADDRESS, IPV4, NAME, SERVER_PORTS
from barnabas_pipeline.behaviour.line_parts import DIRECTIVE, Fields
from barnabas_pipeline.behaviour.line_tail import INGRESS, PLAIN, SECONDS, TRAEFIK
from barnabas_pipeline.behaviour.own_lines import OwnLines, parse_own
from barnabas_pipeline.texts import texts

_WORD: Final = r'[^\x00-\x20\x7f"\\]+'
_QUOTED: Final = r'[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f"\\]*'
_HOST: Final = rf"(?:(?:{NAME}|_)(?::[0-9]{{1,5}})?|{IPV4}:(?:{'|'.join(SERVER_PORTS)}))"
_USER: Final = r"-|[A-Za-z_][A-Za-z0-9_.@-]*"
_MORE: Final = r" [^\x00-\x08\x0a-\x1f\x7f\\]*"
_INGRESS: Final = INGRESS.replace(SECONDS, f"(?<ingress>{SECONDS})")
_TRAEFIK: Final = TRAEFIK.replace("[0-9]{1,9}ms", "(?<traefik>[0-9]{1,9})ms")
# The columns that may follow the agent: `nginx_main`, a bare time, a named time, and the columns of
# two programs.
_TAIL: Final = (
    rf'^(?:(?<main> "{PLAIN}")'
    rf'|(?: "{PLAIN}")* (?<bare>{SECONDS})(?: "{PLAIN}"| [0-9]+\.[0-9]+)*'
    rf'| rt=(?<named>{SECONDS})(?: [a-z_]+=(?:"[^"\[]*"|[^ "=\[]*))*'
    rf"|{_INGRESS}|{_TRAEFIK})$"
)
_PATTERN: Final = (
    rf"^(?:(?:(?<host>{_HOST}) )?(?<address>{ADDRESS})|(?<name>{NAME})) - (?<user>{_USER}) "
    r"\[(?<day>[0-3][0-9])/(?<month>[A-Z][a-z]{2})/(?<year>[12][0-9]{3})"
    r":(?<clock>(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])"
    r" (?<sign>[+-])(?<hours>0[0-9]|1[0-7])(?<minutes>[0-5][0-9])\] "
    rf'"(?<method>[A-Za-z][A-Za-z0-9_-]*) (?<target>{_WORD})(?: (?<protocol>HTTP/{_WORD}))?" '
    r"(?<status>[1-5][0-9]{2}) (?<size>[0-9]{1,18}|-)"
    rf'(?: "(?<referrer>{_QUOTED})" "(?<agent>{_QUOTED})"(?<more>{_MORE})?)?$'
)
_MONTHS: Final = {
    name: f"{number:02}"
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
_ORIGIN: Final = r"^[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*"

FIELDS: Final = pl.Schema(
    {
        "time_us": pl.Int64,
        "utc_offset_minutes": pl.Int32,
        "client": pl.String,
        "ident": pl.String,
        "user": pl.String,
        "method": pl.String,
        "path": pl.String,
        "query": pl.String,
        "protocol": pl.String,
        "status": pl.Int32,
        "bytes": pl.Int64,
        "referrer": pl.String,
        "agent": pl.String,
        "virtual_host": pl.String,
        "response_time_us": pl.Int64,
        "format": pl.String,
    }
)
_LINES_PER_THREAD: Final = 10_000  # a thread does not pay off for fewer lines
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - its text gets a Z
_DIRECTIVE: Final = (*(None,) * (len(FIELDS) - 1), DIRECTIVE, None)
SCHEMA: Final = pl.Schema([*FIELDS.items(), ("reason", pl.String)])


def parse_lines(
    values: pl.Series,
    is_cut: pl.Series,
    formats: Sequence[Format] = (),
    columns: pl.Series | None = None,
) -> pl.DataFrame:
    """Return a row for each of `values` (binary): the fields of a valid line, or only the `reason`
    of an invalid one. A directive is not a hit; in its row, only `format` is set.

    `is_cut`: whether each line has been truncated. `formats`: a user's own formats, which are tried
    first. `columns`: for each line of a file with W3C's directives, the columns listed in the
    preceding directive.
    """
    if columns is None:
        columns = pl.repeat(None, len(values), dtype=pl.String, eager=True)
    text = texts(values).str.strip_chars_end("\r")
    lines = pl.DataFrame(
        {"value": values, "is_cut": is_cut, "text": text, "columns": columns}
    ).with_row_index("row")
    own = _own(lines, formats) if formats else OwnLines({}, {})
    left = lines.filter(~pl.col("row").is_in(list(own.fields))) if own.fields else lines
    of_w3c: list[tuple[object, ...]] = []
    if columns.null_count() < len(columns):
        of_w3c = _of_w3c(left, own)
        left = left.filter(~pl.col("row").is_in([row for row, *_ in of_w3c]))
    fast = _matched(left)
    slow = left.join(fast, on="row", how="anti")
    odd = [
        (row, *(_DIRECTIVE if row in own.directives else _row(value, cut, own.reasons.get(row))))
        for row, value, cut in slow.select("row", "value", "is_cut").iter_rows()
    ]
    odd += [(row, *fields, None) for row, fields in own.fields.items()]
    odd += of_w3c
    rest = pl.DataFrame(odd, schema={"row": pl.UInt32, **SCHEMA}, orient="row")
    # Callers join these rows to their records by position.
    return pl.concat([fast, rest.select(fast.columns)]).sort("row").drop("row")


def _own(lines: pl.DataFrame, formats: Sequence[Format]) -> OwnLines:
    """Apply the user's own formats to the undamaged lines."""
    is_text = ~pl.col("is_cut") & pl.col("text").is_not_null()
    some = lines.filter(is_text & ~pl.col("text").str.contains(CONTROL))
    return parse_own(some, formats)


def matched_count(values: pl.Series) -> int:
    """Return the number of lines that the pattern parses."""
    lines = pl.DataFrame({"text": texts(values)}).with_columns(pl.lit(False).alias("is_cut"))
    return _matched(lines.with_row_index("row")).height


def _matched(lines: pl.DataFrame) -> pl.DataFrame:
    """Return the lines that the pattern matches, with their row numbers."""
    found = _with_tails(_groups(lines.filter(~pl.col("is_cut"))))
    stamp = pl.concat_str(
        "year",
        pl.lit("-"),
        pl.col("month").replace_strict(_MONTHS, default="00"),
        pl.lit("-"),
        "day",
        pl.lit(" "),
        "clock",
    )
    local = stamp.str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="us", strict=False)
    offset = pl.col("hours").cast(pl.Int32) * 60 + pl.col("minutes").cast(pl.Int32)
    return (
        found.with_columns(
            pl.coalesce("address", "name").alias("client"),
            pl.lit(None, pl.String).alias("ident"),
            local.cast(pl.Int64).alias("local_us"),
            pl.when(pl.col("sign") == "-")
            .then(-offset)
            .otherwise(offset)
            .alias("utc_offset_minutes"),
            pl.col("target").str.replace(_ORIGIN, "").str.splitn("?", 2).alias("parts"),
        )
        .filter(pl.col("local_us").is_not_null())  # null for 31 February
        .unnest("parts")
        .select(
            "row",
            (pl.col("local_us") - pl.col("utc_offset_minutes").cast(pl.Int64) * 60_000_000).alias(
                "time_us"
            ),
            "utc_offset_minutes",
            "client",
            "ident",
            _given("user"),
            "method",
            pl.when(pl.col("field_0") == "").then(pl.lit("/")).otherwise("field_0").alias("path"),
            pl.col("field_1").alias("query"),
            "protocol",
            pl.col("status").cast(pl.Int32),
            pl.col("size").cast(pl.Int64, strict=False).alias("bytes"),
            *(_given(name) for name in ("referrer", "agent")),
            pl.col("host").str.replace(r":[0-9]+$", "").alias("virtual_host"),
            "response_time_us",
            "format",
            pl.lit(None, pl.String).alias("reason"),
        )
    )


def _groups(lines: pl.DataFrame) -> pl.DataFrame:
    """Return the groups that the pattern captures from each matching line."""
    fields = pl.col("text").str.extract_groups(_PATTERN).alias("fields")
    # Polars matches a column in a single thread, so divide the lines among several.
    count = min(pl.thread_pool_size(), 1 + lines.height // _LINES_PER_THREAD)
    size = lines.height // count + 1
    parts = [
        lines.lazy().slice(part * size, size).select("row", fields).unnest("fields")
        for part in range(count)
    ]
    return pl.concat(pl.collect_all(parts)).filter(pl.col("day").is_not_null())


def values(row: Mapping[str, object]) -> dict[str, object]:
    """Return the `format` and the fields of a valid row from `parse_lines`, in the form in which
    samples show them.
    """
    found = {name: row[name] for name in FIELDS if row[name] is not None}
    time_us = found.pop("time_us", None)
    found.pop("utc_offset_minutes", None)
    time = {} if time_us is None else {"time": _iso(time_us)}
    return {"format": found.pop("format"), **time, **found}


def _iso(time_us: object) -> str:
    text = (_EPOCH + timedelta(microseconds=int(str(time_us)))).isoformat()
    return f"{text.rstrip('0') if '.' in text else text}Z"


def _with_tails(found: pl.DataFrame) -> pl.DataFrame:
    """Add `response_time_us` and `format`, and remove the lines whose last columns
    are ambiguous.
    """
    more = pl.col("more").fill_null("")
    has_host = pl.col("host").is_not_null()
    is_empty, is_url = pl.col("agent").is_in(["", "-"]), pl.col("agent").str.contains(URL)
    # The agent may come before the referrer; `parse_line` rejects such a line.
    is_in_order = ~(pl.col("referrer").str.contains(PRODUCT) & (is_empty | is_url)).fill_null(False)
    plain = found.filter((more == "") & is_in_order).with_columns(
        pl.lit(None, pl.Int64).alias("response_time_us"),
        pl.when(pl.col("agent").is_null())
        .then(pl.when(has_host).then(pl.lit("vhost_common")).otherwise(pl.lit("common")))
        .otherwise(pl.when(has_host).then(pl.lit("vhost_combined")).otherwise(pl.lit("combined")))
        .alias("format"),
    )
    longer = found.filter(more != "")
    if not longer.height:
        return plain
    # If more quoted columns follow, a column for the host may precede the referrer; the apparent
    # agent is then the referrer. `parse_line` decides that.
    is_sure = ~is_empty & ~is_url
    has_quotes = pl.col("more").str.contains('"', literal=True)
    times = pl.coalesce("ingress", "traefik", "bare", "named")
    tails = longer.with_columns(pl.col("more").str.extract_groups(_TAIL).alias("tail"))
    known = tails.unnest("tail").filter(pl.coalesce("main", times).is_not_null())
    is_unmistakable = pl.coalesce("ingress", "traefik").is_not_null()
    is_named = pl.col("named").is_not_null()
    return pl.concat(
        [
            plain,
            known.filter(
                is_unmistakable | (is_in_order & (is_named | is_sure | ~has_quotes))
            ).select(
                *longer.columns,
                (times.str.replace(".", "", literal=True).cast(pl.Int64) * 1_000).alias(
                    "response_time_us"
                ),
                pl.when(pl.col("ingress").is_not_null())
                .then(pl.lit("ingress_nginx"))
                .when(pl.col("traefik").is_not_null())
                .then(pl.lit("traefik"))
                .when(has_host)
                .then(pl.lit("vhost_combined"))
                .when(pl.col("main").is_not_null())
                .then(pl.lit("nginx_main"))
                .otherwise(pl.lit("combined_timed"))
                .alias("format"),
            ),
        ]
    )


def _given(name: str) -> pl.Expr:
    column = pl.col(name)
    return pl.when(~column.is_in(["", "-"])).then(column).alias(name)


def _row(value: bytes | None, is_cut: bool, reason: str | None) -> tuple[object, ...]:
    """Return the fields of a line, or the reason why it is invalid. `reason`: the reason why a line
    in a user's own format is invalid, if any; it takes precedence."""
    return _columns(parse_line(value, is_cut=is_cut), reason)


def _columns(parsed: Fields | str, reason: str | None) -> tuple[object, ...]:
    if isinstance(parsed, Fields):
        return (*parsed, None)
    if parsed == DIRECTIVE:
        return _DIRECTIVE
    return (*(None,) * len(FIELDS), reason or parsed)


def _of_w3c(lines: pl.DataFrame, own: OwnLines) -> list[tuple[object, ...]]:
    """Return rows for the lines whose columns are described by a directive in the same file."""
    is_usual = ~pl.col("is_cut") & (pl.col("text").str.strip_chars(" ") != "")
    some = lines.filter(
        is_usual & pl.col("columns").is_not_null() & ~pl.col("text").str.contains(CONTROL)
    )
    return [
        (row, *_columns(found, own.reasons.get(row)))
        for row, text, columns in some.select("row", "text", "columns").iter_rows()
        if row not in own.directives and (found := w3c_directive.parse(text, columns)) is not None
    ]
