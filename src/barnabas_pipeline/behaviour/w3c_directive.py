"""Parses lines in W3C's extended log format according to the `#Fields:` directive in the same file.
Pure.

The collector sends the directive with each line, in a header, because the line may be in a
different partition or batch. Without the directive, only known sets of columns are read
(`w3c_line.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import unquote

from barnabas_pipeline.behaviour import w3c_line
from barnabas_pipeline.behaviour.line_parts import (
    DIRECTIVE,
    Fields,
    RejectedLine,
    iso_moment,
)
from barnabas_pipeline.behaviour.own_lines import fields_of

NAMES: Final = ("iis", "cloudfront")
AGENT: Final = "cs(user-agent)"

MISSING: Final = "a #Fields directive without date, time, c-ip, cs-method, cs-uri-stem or sc-status"
DOUBLE: Final = "a #Fields directive that names a column twice"
MANY: Final = "a #Fields directive with more than 64 columns"
OTHER_COUNT: Final = "a number of columns that differs from that in the file's #Fields directive"

_MOST: Final = 64
_REQUIRED: Final = ("date", "time", "c-ip", "cs-method", "cs-uri-stem", "sc-status")
_FIELDS: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        "client": ("c-ip",),
        "user": ("cs-username",),
        "method": ("cs-method",),
        "path": ("cs-uri-stem",),
        "query": ("cs-uri-query",),
        "protocol": ("cs-version", "cs-protocol-version"),
        "agent": (AGENT,),
        "referrer": ("cs(referer)",),
        # CloudFront's cs(Host) contains the name of the distribution.
        "host": ("x-host-header", "cs-host", "cs(host)"),
        "status": ("sc-status",),
        "bytes": ("sc-bytes",),
    }
)
"""The columns that may contain a field; the first one present is used."""
_WHOLE: Final = re.compile("[0-9]{1,9}")
_KEPT_DIRECTIVES: Final = 256


class Columns(NamedTuple):
    """The columns in a directive, in lower case."""

    names: tuple[str, ...]
    places: Mapping[str, int]
    """Maps each field to the position of its column."""

    @property
    def are_of_cloudfront(self) -> bool:
        return "x-edge-location" in self.names


def parse(text: str, columns: str) -> Fields | str | None:
    """Return the fields of a line from a file with a `#Fields:` directive, or the reason why the
    line is invalid, or `DIRECTIVE`. Return None if the directive does not apply to the line.

    `columns`: the columns listed in the directive, which is the line itself or precedes the line.
    """
    if text.startswith("#"):
        if not text.startswith("#Fields:"):
            return None
        found = _columns_of(columns)
        return DIRECTIVE if isinstance(found, Columns) else found
    found = _columns_of(columns)
    if not isinstance(found, Columns):
        # A line with known columns could be misread. Lines in other formats are unmistakable.
        return found if w3c_line.fits(text) else None
    try:
        return _decode(text, found)
    except RejectedLine as rejected:
        return rejected.reason


@lru_cache(_KEPT_DIRECTIVES)
def _columns_of(text: str) -> Columns | str:
    """Return the columns in a directive, or the reason why the directive cannot be used."""
    names = tuple(text.lower().split())
    # The collector replaces an overlong directive with an empty text.
    if len(names) > _MOST or not names:
        return MANY
    if len({*names}) < len(names):
        return DOUBLE
    if not {*_REQUIRED} <= {*names}:
        return MISSING
    places = {
        field: next(names.index(each) for each in columns if each in names)
        for field, columns in _FIELDS.items()
        if any(each in names for each in columns)
    }
    return Columns(names, places)


def _decode(text: str, columns: Columns) -> Fields:
    values = text.split("\t") if "\t" in text else text.rstrip(" ").split(" ")
    if len(values) != len(columns.names):
        raise RejectedLine(OTHER_COUNT)
    found = dict(zip(columns.names, values, strict=True))
    row = {field: values[place] for field, place in columns.places.items()}
    taken = found.get("time-taken", "-")
    if columns.are_of_cloudfront:
        # Blanks are percent-encoded; in older lines, they are encoded twice.
        row["agent"] = unquote(unquote(row.get("agent", "-")).replace("%20", " "))
        row["response_time_s"] = taken
    else:
        row["agent"] = row.get("agent", "-").replace("+", " ")
        # IIS writes whole milliseconds; other programs may write fractional seconds.
        row["response_time_ms"] = taken if _WHOLE.fullmatch(taken) else "-"
    name = "cloudfront" if columns.are_of_cloudfront else "iis"
    return fields_of(name, row, iso_moment(f"{found['date']} {found['time']}+00:00"))
