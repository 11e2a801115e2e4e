"""Parses access log lines in a user's own formats, which are tried before the catalogue.

A line that matches one of these formats but has impossible values is then tried with the formats of
the catalogue. If none of them fits either, the line is rejected because of the impossible values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, cast
from zoneinfo import ZoneInfo

import polars as pl

from barnabas_formats.access_pattern import UNITS_US, AccessPattern
from barnabas_formats.format import TIME_UNITS_US, Format, JsonKeys
from barnabas_formats.objects import ABSENT, first_value, value_at
from barnabas_pipeline.behaviour import json_line
from barnabas_pipeline.behaviour.line_front import host_without_port, is_client
from barnabas_pipeline.behaviour.line_parts import (
    BAD_TIME,
    Fields,
    RejectedLine,
    Request,
    checked_clf_moment,
    checked_request,
    client_of,
    client_without_port,
    duration_us,
    given,
    iso_moment,
    size_of,
    status_of,
    target_of,
)
from barnabas_pipeline.logs.times import instants

_ESCAPE: Final = re.compile(r"\\([\"\\])")  # nginx's \x22 stays as it is, as in built-in formats
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIELDS: Final = "(?i)^#fields: "
_MINUTE: Final = timedelta(minutes=1)

Parsed = tuple[int, Fields | str]
"""The number of a row, and either its fields or the reason why its values are impossible."""


class OwnLines(NamedTuple):
    """The fields of the lines in the user's formats and the reasons for rejecting lines, by row
    number."""

    fields: Mapping[int, Fields]
    reasons: Mapping[int, str]
    directives: Collection[int] = ()
    """The rows that contain a directive for one of the user's formats."""


def without_agent(formats: Sequence[Format]) -> set[str]:
    """Return the names of the formats without an agent column."""
    return {each.name for each in formats if not _has_agent(each)}


def _has_agent(of: Format) -> bool:
    return any("agent" in pattern.groups for pattern in of.access) or any(
        "agent" in keys.keys for keys in of.json
    )


def parse_own(lines: pl.DataFrame, formats: Sequence[Format]) -> OwnLines:
    """Parse lines, trying the formats in order.

    `lines`: each line's number (`row`), its `text`, and W3C's `columns` or null.
    """
    left = lines.select("row", "text", "columns")
    fields: dict[int, Fields] = {}
    reasons: dict[int, str] = {}
    for of in formats:
        for parse in _parsers(of):
            for row, found in parse(left):
                if isinstance(found, Fields):
                    fields[row] = found
                else:
                    reasons.setdefault(row, found)
            left = left.filter(~pl.col("row").is_in(list(fields)))
    return OwnLines(fields, reasons, _directives(left, formats))


def _directives(lines: pl.DataFrame, formats: Sequence[Format]) -> Collection[int]:
    known = {pattern.w3c for of in formats for pattern in of.access if pattern.w3c}
    if not known:
        return ()
    some = lines.filter(pl.col("text").str.contains(_FIELDS))
    rows = some.select("row", "text").iter_rows()
    return {row for row, text in rows if tuple(text.lower().split()[1:]) in known}


def _parsers(of: Format) -> Iterator[Callable[[pl.DataFrame], Iterator[Parsed]]]:
    for pattern in of.access:
        yield lambda lines, pattern=pattern: _texts(lines, of, pattern)  # type: ignore[misc]
    for keys in of.json:
        yield lambda lines, keys=keys: _objects(lines, of, keys)  # type: ignore[misc]


def _texts(lines: pl.DataFrame, of: Format, pattern: AccessPattern) -> Iterator[Parsed]:
    if pattern.w3c:
        lines = _with_columns(lines, pattern.w3c)
    some = lines.filter(pl.col("text").str.contains(pattern.regex))
    if not some.height:
        return
    # The flag `U` swaps lazy and greedy matching, which reveals ambiguous lines.
    first, last = (
        some["text"].str.extract_groups(regex).struct.unnest()
        for regex in (pattern.regex, f"(?U){pattern.regex}")
    )
    is_same = [first[name].eq_missing(last[name]) for name in pattern.groups]
    found = first.with_columns(some["row"]).filter(pl.all_horizontal(is_same))
    unknown = pl.Series([None] * found.height, dtype=pl.Int64)
    times = instants(found["time"], unknown, pattern.time_form, of.zone)
    offsets = _offsets(found["time"], times, pattern.time_form, of.zone)
    for row, time_us, offset in zip(
        found.iter_rows(named=True), times.to_list(), offsets.to_list(), strict=True
    ):
        for name in pattern.quoted:
            row[name] = _ESCAPE.sub(r"\1", row[name]) if "\\" in row[name] else row[name]
        if pattern.w3c and "agent" in row:
            row["agent"] = row["agent"].replace("+", " ")
        yield row["row"], _judged(of, row, lambda at=(time_us, offset): _moment(*at))  # type: ignore[misc]


def _with_columns(lines: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return the lines of files without a directive that lists other columns."""
    columns = pl.col("columns").str.to_lowercase().str.replace_all(r"\s+", " ")
    return lines.filter(columns.is_null() | (columns == " ".join(names)))


def _moment(time_us: int | None, offset: int | None) -> tuple[int, int]:
    if time_us is None or offset is None:
        raise RejectedLine(BAD_TIME)
    return time_us, offset


def _offsets(texts: pl.Series, times: pl.Series, form: str, zone: str) -> pl.Series:
    """Return the offsets from UTC in minutes, read from the ends of the texts or otherwise
    determined by the zone.
    """
    if form.endswith("%z"):
        parts = texts.str.extract_groups(r"([+-])([0-9]{2}):?([0-9]{2})$").struct
        minutes = parts.field("2").cast(pl.Int64) * 60 + parts.field("3").cast(pl.Int64)
        return minutes.zip_with(parts.field("1") != "-", -minutes).fill_null(0)
    local = times.cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
    return (local.dt.base_utc_offset() + local.dt.dst_offset()).dt.total_minutes()


def _objects(lines: pl.DataFrame, of: Format, keys: JsonKeys) -> Iterator[Parsed]:
    some = lines.filter(pl.col("text").str.starts_with("{"))
    for number, text in some.select("row", "text").iter_rows():
        try:
            found = json_line.object_in(text)
        except RejectedLine:
            continue
        if any(value_at(found, key) is ABSENT for key in keys.required):
            continue
        values = {name: first_value(found, names) for name, names in keys.keys.items()}
        # An object that lacks a client, a time or a status is in another format.
        if values["client"] is None or values["time"] is None or values["status"] is None:
            continue
        row = {name: json_line.text_of(value) for name, value in values.items()}
        time = row["time"]
        yield number, _judged(of, row, lambda time=time: json_moment(time, keys.unit, of.zone))  # type: ignore[misc]


def json_moment(text: str, unit: str | None, zone: str) -> tuple[int, int]:
    """Return microseconds since the epoch and the offset from UTC in minutes. Raises
    `RejectedLine`.

    `unit`: the unit of a number, or None to infer the unit from the number's size. `zone`: the zone
    of a time without an offset.
    """
    if json_line.is_number(text):
        if unit is None:
            return json_line.epoch_us(text), 0
        return round(float(text) * TIME_UNITS_US[unit]), 0
    if "/" in text:
        return checked_clf_moment(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise RejectedLine(BAD_TIME) from None
    if at.tzinfo is not None:
        return iso_moment(text.replace(",", "."))
    try:
        local = at.replace(tzinfo=ZoneInfo(zone))
        offset = cast(timedelta, local.utcoffset())
        return (local - _EPOCH) // timedelta(microseconds=1), offset // _MINUTE
    except OverflowError:
        raise RejectedLine(BAD_TIME) from None


def _judged(
    of: Format, row: Mapping[str, str], moment: Callable[[], tuple[int, int]]
) -> Fields | str:
    try:
        return fields_of(of.name, row, moment())
    except RejectedLine as rejected:
        return rejected.reason


def fields_of(name: str, row: Mapping[str, str], moment: tuple[int, int]) -> Fields:
    """Convert the texts of a line's columns to fields, in the format called `name`. Raises
    `RejectedLine`."""
    client = row["client"].removeprefix("[").removesuffix("]")
    # A gateway may have added the port.
    client = client_of(client) if is_client(client) else client_without_port(client)
    status = status_of(row["status"])
    request = _request(row, status)
    times = [duration_us(row[each], unit) for each, unit in UNITS_US.items() if each in row]
    return Fields(
        *moment,
        client,
        given(row.get("ident")),
        given(row.get("user")),
        *request[:4],
        status,
        size_of(row.get("bytes") or "-"),
        given(row.get("referrer")),
        given(row.get("agent")),
        given(host_without_port(row.get("host", ""))) or request.host,
        times[0] if times else None,
        name,
    )


def _request(row: Mapping[str, str], status: int) -> Request:
    if "request" in row:
        return checked_request(row["request"], status)
    method, target = row["method"], row["path"]
    # As with a whole request line, a server answers an unparsable request with an error.
    checked = checked_request(f"{method} {target}" if given(method) else "", status)
    if checked.method is None:
        return checked
    path, query, host = target_of(target)
    return Request(method, path, query or given(row.get("query")), given(row.get("protocol")), host)
