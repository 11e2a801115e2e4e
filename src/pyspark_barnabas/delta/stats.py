"""What a table's log says of a data file: row count, least and greatest values, nulls.

Readers skip files by it, so a value that cannot be said exactly is left out (Delta's protocol,
"Per-file Statistics").
"""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed
import pyarrow.parquet as pq  # type: ignore[import-untyped]

_MOST_COLUMNS: Final = 32  # `delta.dataSkippingNumIndexedCols` by default
_LONGEST: Final = 32  # characters; a longer text is cut by writers, and the cut one is no bound


def statistics(metadata: pq.FileMetaData) -> str:
    """As JSON, from the footer of a Parquet file."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
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
        nulls[name] = sum(group.null_count for group in groups)
        bounded = [group for group in groups if group.num_values]
        if not bounded or not all(group.has_min_max for group in bounded):
            continue
        try:
            low = _text(min(group.min for group in bounded), up=False)
            high = _text(max(group.max for group in bounded), up=True)
        except (ValueError, OverflowError, pa.ArrowException):
            continue  # a time before the year 1 or behind 9999, which Python has not
        if low is not None and high is not None:
            least[name], greatest[name] = low, high
    return json.dumps(
        {
            "numRecords": metadata.num_rows,
            "minValues": least,
            "maxValues": greatest,
            "nullCount": nulls,
        }
    )


def _text(value: Any, *, up: bool) -> Any:
    """The value in JSON; None: it cannot be a bound there."""
    if isinstance(value, bool):
        return None  # Delta has no bounds of booleans
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return None  # NaN is greater than all numbers to readers, and a footer does not tell of it
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else None
    if isinstance(value, datetime.datetime):
        return _milliseconds(value, up=up)
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return None  # as a number in JSON it would lose digits
    return None


def _milliseconds(value: datetime.datetime, *, up: bool) -> str:
    """Cut to milliseconds, as the protocol has it; the upper bound must not come below a value."""
    micros = value.microsecond % 1000
    if micros and up:
        value += datetime.timedelta(microseconds=1000 - micros)
    zone = "Z" if value.tzinfo is not None else ""
    return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + zone
