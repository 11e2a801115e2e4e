"""Computes tables of counts for system logs: lines by minute, component and template. Pure.

`merge` combines the table before a batch with the part that the batch adds, and returns the table
after the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import polars as pl

from barnabas_pipeline.instants import HOUR_US, MINUTE_US, utc, utc_floor
from barnabas_pipeline.logs import logins
from barnabas_pipeline.logs.schemas import MERGED
from barnabas_pipeline.places import merge_files


def count_entries(entries: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Count these entries, which must have `time_us`, and return the parts of all tables except
    `files`.
    """
    time_us = pl.col("time_us")
    rows = entries.with_columns(
        utc(time_us).dt.date().alias("day"),
        utc(time_us).alias("first"),
        utc(time_us).alias("last"),
        utc_floor(time_us, MINUTE_US).alias("minute"),
        utc_floor(time_us, HOUR_US).alias("hour"),
        pl.lit(1, pl.Int64).alias("lines"),
    )
    with_template = rows.filter(pl.col("template").is_not_null())
    return {
        "minutes": _merge_minutes(rows),
        "components": _merge_components(rows),
        "templates": _count_templates(with_template),
        "template_minutes": _merge_template_minutes(with_template),
        "logins": logins.logins(rows).select(MERGED["logins"].names),
    }


def merge(name: str, parts: pl.DataFrame) -> pl.DataFrame:
    """Merge the parts of a table."""
    return _MERGED[name](parts).select(MERGED[name].names)


def _merge_minutes(parts: pl.DataFrame) -> pl.DataFrame:
    return parts.group_by("minute", "format", "level", "day").agg(pl.col("lines").sum())


def _merge_components(parts: pl.DataFrame) -> pl.DataFrame:
    keys = ("hour", "format", "host", "component", "level", "day")
    return parts.group_by(keys).agg(
        pl.col("lines").sum(), pl.col("first").min(), pl.col("last").max()
    )


def _merge_template_minutes(parts: pl.DataFrame) -> pl.DataFrame:
    return parts.group_by("minute", "template", "day").agg(pl.col("lines").sum())


def _count_templates(rows: pl.DataFrame) -> pl.DataFrame:
    nothing = pl.lit(None, pl.String)
    return (
        rows.group_by("template", "format")
        .agg(pl.col("lines").sum(), pl.col("first").min(), pl.col("last").max())
        .with_columns(
            pl.lit(None, pl.Int64).alias("number"),
            nothing.alias("began"),
            nothing.alias("text"),
            pl.lit(-1, pl.Int64).alias("wildcards"),
        )
    )


def _merge_templates(parts: pl.DataFrame) -> pl.DataFrame:
    """Merge the templates, keeping the text with the most wildcards, because templates only ever
    become more general."""
    return parts.group_by("template").agg(
        # Tasks only count; the driver writes the part with the number and the text.
        pl.col("number", "format", "began").drop_nulls().first(),
        pl.col("text").get(pl.col("wildcards").arg_max()),
        pl.col("wildcards").max(),
        pl.col("lines").sum(),
        pl.col("first").min(),
        pl.col("last").max(),
    )


_MERGED: Final[Mapping[str, Callable[[pl.DataFrame], pl.DataFrame]]] = MappingProxyType(
    {
        "minutes": _merge_minutes,
        "components": _merge_components,
        "templates": _merge_templates,
        "template_minutes": _merge_template_minutes,
        "logins": logins.added_up,
        "files": merge_files,
    }
)
