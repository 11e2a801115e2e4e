"""Parses many lines of access logs into columns, with Polars.

A strict pattern matches lines in the usual form; `parse_line` parses all others, and returns the
reason if a line is invalid. For matched lines the results are the same as those of `parse_line`.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from barnabas_pipeline.behaviour.access_line import URL, Fields, parse_line
from barnabas_pipeline.behaviour.line_front import ADDRESS, IPV4, NAME, SERVER_PORTS
from barnabas_pipeline.texts import texts

_WORD: Final = r'[^\x00-\x20\x7f"\\]+'
_QUOTED: Final = r'[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f"\\]*'
_HOST: Final = rf"(?:(?:{NAME}|_)(?::[0-9]{{1,5}})?|{IPV4}:(?:{'|'.join(SERVER_PORTS)}))"
_USER: Final = r"-|[A-Za-z_][A-Za-z0-9_.@-]*"
_MORE: Final = r'(?: "[-0-9A-Fa-f.:, ]*"| [0-9]+\.[0-9]+)*'
_PATTERN: Final = (
    rf"^(?:(?:{_HOST} )?(?<address>{ADDRESS})|(?<name>{NAME})) - (?<user>{_USER}) "
    r"\[(?<day>[0-3][0-9])/(?<month>[A-Z][a-z]{2})/(?<year>[12][0-9]{3})"
    r":(?<clock>(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])"
    r" (?<sign>[+-])(?<hours>0[0-9]|1[0-7])(?<minutes>[0-5][0-9])\] "
    rf'"(?<method>[A-Za-z][A-Za-z0-9_-]*) (?<target>{_WORD})(?: (?<protocol>HTTP/{_WORD}))?" '
    r"(?<status>[1-5][0-9]{2}) (?<size>[0-9]{1,18}|-)"
    rf'(?: "(?<referrer>{_QUOTED})" "(?<agent>{_QUOTED})"(?<more>{_MORE}))?$'
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
    }
)
SCHEMA: Final = pl.Schema([*FIELDS.items(), ("reason", pl.String)])


def parse_lines(values: pl.Series, is_cut: pl.Series) -> pl.DataFrame:
    """Return a row for each of `values` (binary): the fields of a valid line, or only its `reason`.

    `is_cut`: booleans, true where a value is only the beginning of a longer line.
    """
    lines = pl.DataFrame(
        {"value": values, "is_cut": is_cut, "text": texts(values).str.strip_chars_end("\r")}
    ).with_row_index("row")
    fast = _matched(lines)
    slow = lines.join(fast, on="row", how="anti")
    odd = pl.DataFrame(
        [_row(value, cut) for value, cut in zip(slow["value"], slow["is_cut"], strict=True)],
        schema=SCHEMA,
        orient="row",
    ).with_columns(slow["row"])
    # Callers join these rows to their records by position.
    return pl.concat([fast, odd.select(fast.columns)]).sort("row").drop("row")


def matched_count(values: pl.Series) -> int:
    """Return how many of these lines the pattern matches."""
    return int(texts(values).str.contains(_PATTERN).sum())


def _matched(lines: pl.DataFrame) -> pl.DataFrame:
    """Return the lines that the pattern matches, with the numbers of their rows."""
    fields = pl.col("text").str.extract_groups(_PATTERN).alias("fields")
    found = lines.filter(~pl.col("is_cut")).select("row", fields).unnest("fields")
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
    # If more quoted columns follow, an agent that looks like a referrer may be one, after a column
    # for the host: `parse_line` decides that.
    is_sure = pl.col("agent").is_in(["", "-"]).not_() & pl.col("agent").str.contains(URL).not_()
    return (
        found.filter(pl.col("day").is_not_null())
        .filter(is_sure | pl.col("more").str.contains('"', literal=True).fill_null(False).not_())
        .with_columns(
            pl.coalesce("address", "name").alias("client"),
            pl.lit(None, pl.String).alias("ident"),
            local.cast(pl.Int64).alias("local_us"),
            pl.when(pl.col("sign") == "-")
            .then(-offset)
            .otherwise(offset)
            .alias("utc_offset_minutes"),
            pl.col("target").str.replace(_ORIGIN, "").str.splitn("?", 2).alias("parts"),
        )
        .filter(pl.col("local_us").is_not_null())  # the 31st of February
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
            pl.lit(None, pl.String).alias("reason"),
        )
    )


def _given(name: str) -> pl.Expr:
    column = pl.col(name)
    return pl.when(~column.is_in(["", "-"])).then(column).alias(name)


def _row(value: bytes | None, is_cut: bool) -> tuple[object, ...]:
    parsed = parse_line(value, is_cut=is_cut)
    if isinstance(parsed, Fields):
        return (*parsed, None)
    return (*(None,) * len(FIELDS), parsed)
