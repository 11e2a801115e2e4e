"""Classifies the records in the collector's topic: hits, dead letters, and records sent twice.
Pure.

records ─▶ located ─▶ classified ─┬▶ events         valid, once
           (places)    (columns,  ├▶ dead letters   with a reason, once
                        twice?)   └▶ file counts    read = valid + dead letters + sent twice
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_formats.format import Format
from barnabas_pipeline.behaviour import w3c_directive
from barnabas_pipeline.behaviour.access_lines import parse_lines
from barnabas_pipeline.behaviour.line_parts import DIRECTIVE, WITHOUT_AGENT
from barnabas_pipeline.behaviour.own_lines import without_agent
from barnabas_pipeline.behaviour.robots import are_robots
from barnabas_pipeline.behaviour.schemas import EVENTS
from barnabas_pipeline.places import Positions, locate, mark_sent_twice

# The rule was defined with Java's `$`, which also matches before a final line terminator.
_ASSET: Final = (
    r"(?i-u)\.(?:css|js|mjs|map|json|xml|rss|atom|txt|ico|png|jpe?g|gif|svg|webp|avif|bmp|woff2?|ttf"
    r"|otf|eot|mp3|mp4|webm|ogg|wav|avi|mov|pdf|zip|gz|tgz|bz2|xz|7z|rar|tar|exe|dmg|deb|rpm|iso)"
    r"(?u:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?$"
)


def classify(records: pa.Table, seen: Positions, formats: Sequence[Format] = ()) -> pl.DataFrame:
    """Add the place, the fields, `robot`, `page_view`, `reason` and `twice` to every record.

    `records`: records of one topic, with headers, and in order within each partition. `seen`: the
    highest positions in earlier records.
    """
    lines = mark_sent_twice(locate(records), seen)
    return pl.concat([lines, parse_hits(lines, formats)], how="horizontal")


def parse_hits(lines: pl.DataFrame, formats: Sequence[Format] = ()) -> pl.DataFrame:
    """Return the fields, `robot`, `page_view` and `reason` of every line.

    `lines`: the columns of `locate`.
    """
    fields = parse_lines(lines["value"], lines["cut"], formats, lines["columns"])
    page_view = (
        (pl.col("method") == "GET")
        & (pl.col("status").is_between(200, 299) | (pl.col("status") == 304))
        & ~pl.col("path").str.contains(_ASSET)
    )
    # Without an agent column, a robot cannot be told from a person.
    agentless = [*WITHOUT_AGENT, *without_agent(formats)]
    is_agentless = pl.col("format").is_in(agentless) | (
        pl.col("format").is_in(w3c_directive.NAMES)
        & ~pl.col("columns").str.to_lowercase().str.contains(w3c_directive.AGENT, literal=True)
    )
    has_agent = is_agentless.fill_null(False).not_()
    robots = are_robots(fields["agent"])
    return (
        fields.with_columns(lines["columns"])
        .with_columns(
            page_view.fill_null(False).alias("page_view"), (robots & has_agent).alias("robot")
        )
        .drop("columns")
    )


def events(lines: pl.DataFrame) -> pl.DataFrame:
    """Return the hits from `classify` without duplicates, with `time_us` in place of `time`."""
    is_hit = pl.col("reason").is_null() & (pl.col("format") != DIRECTIVE)
    valid = lines.filter(~pl.col("twice") & is_hit)
    return valid.select("time_us", *EVENTS.names[1:])
