"""Computes a data file's statistics for a table's log: rows, minimum and maximum values, and nulls.

Readers use the statistics to skip files, so inexact values are omitted (Delta's protocol, "Per-file
Statistics"). For a column without bounds, the null count is omitted as well: if there is a null
count but no bounds, deltalake 1.6.6 assumes an empty range and finds no rows.
"""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed
import pyarrow.parquet as pq  # type: ignore[import-untyped]

_MOST_COLUMNS: Final = 32  # `delta.dataSkippingNumIndexedCols` by default
_LONGEST: Final = 32  # characters of a text
_LAST: Final = "\U0010ffff"
_GREATEST: Final = {"FLOAT": "3.4028234663852886e38", "DOUBLE": "1.7976931348623157e308"}


def statistics(metadata: pq.FileMetaData) -> str:
    """Return the statistics as JSON, from the footer of a Parquet file."""
    least: dict[str, str] = {}
    greatest: dict[str, str] = {}
    nulls: dict[str, str] = {}
    for index in range(min(metadata.num_columns, _MOST_COLUMNS)):
        column = metadata.schema.column(index)
        name = column.name
        if column.path != name or column.max_repetition_level:
            continue  # within a struct, a list or a map
        groups = [
            metadata.row_group(group).column(index).statistics
            for group in range(metadata.num_row_groups)
        ]
        if not all(group is not None and group.has_null_count for group in groups):
            continue
        null_count = str(sum(group.null_count for group in groups))
        bounded = [group for group in groups if group.num_values]
        if not bounded:
            nulls[name] = null_count
        if not bounded or not all(group.has_min_max for group in bounded):
            continue
        try:
            low = _lower(min(group.min for group in bounded))
            high = _upper(max(group.max for group in bounded), column.physical_type)
        except (ValueError, OverflowError, pa.ArrowException):
            continue  # Python has no times before the year 1 or after 9999
        if low is not None and high is not None:
            least[name], greatest[name], nulls[name] = low, high, null_count
    return (
        f'{{"numRecords": {metadata.num_rows}, "minValues": {_object(least)}, '
        f'"maxValues": {_object(greatest)}, "nullCount": {_object(nulls)}}}'
    )


def _object(values: dict[str, str]) -> str:
    """Return a JSON object with these JSON values, without dropping digits of decimals."""
    return "{" + ", ".join(f"{json.dumps(name)}: {text}" for name, text in values.items()) + "}"


def _lower(value: Any) -> str | None:
    """Return a lower bound in JSON, or None if there is none."""
    if isinstance(value, str):
        return json.dumps(value[:_LONGEST])
    if isinstance(value, datetime.datetime):
        return json.dumps(_milliseconds(value, up=False))
    return _exact(value)


def _upper(value: Any, physical_type: str) -> str | None:
    """Return an upper bound in JSON, or None if there is none."""
    if isinstance(value, str):
        if len(value) <= _LONGEST:
            return json.dumps(value)
        # Any continuation sorts before the highest character.
        return None if value[_LONGEST] == _LAST else json.dumps(value[:_LONGEST] + _LAST)
    if isinstance(value, datetime.datetime):
        return json.dumps(_milliseconds(value, up=True))
    if isinstance(value, float):
        # Readers treat NaN as greater than any number, but a footer does not show whether there is
        # one.
        return None if math.isinf(value) else _GREATEST[physical_type]
    return _exact(value)


def _exact(value: Any) -> str | None:
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return json.dumps(value)
    if isinstance(value, datetime.date):
        return json.dumps(value.isoformat())
    if isinstance(value, Decimal):
        return f"{value:f}"
    return None


def _milliseconds(value: datetime.datetime, *, up: bool) -> str:
    """Return the time in milliseconds, as in the protocol, rounded `up` for an upper bound."""
    micros = value.microsecond % 1000
    if micros and up:
        value += datetime.timedelta(microseconds=1000 - micros)
    zone = "Z" if value.tzinfo is not None else ""
    return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + zone
