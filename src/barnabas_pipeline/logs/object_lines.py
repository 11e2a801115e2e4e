"""Extracts columns from log lines that consist of keys and values, such as JSON objects.

Each line is decoded only once, regardless of the number of formats. The matching format is looked
up only once in a batch for each set of keys.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from barnabas_formats.format import TIME_UNITS_US, Format, JsonKeys
from barnabas_formats.levels import BY_NAME, BY_NUMBER, BY_SEVERITY
from barnabas_formats.objects import ABSENT, DECODERS, JSON, Object, first_value, value_at
from barnabas_pipeline.logs.times import OFFSETS

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_US: Final = timedelta(microseconds=1)
# The minimum number for each unit; each unit covers the years 1973 to 5138.
_SIZES: Final = ((1e17, "ns"), (1e14, "us"), (1e11, "ms"), (1e8, "s"))
_LATEST_US: Final = 253_402_300_799_000_000  # the year 9999
_DATE: Final = re.compile(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}(?:$|[T ][0-9]{2}:)")
_NUMBER: Final = re.compile(r"[0-9]{9,19}(?:\.[0-9]+)?")
_NAMED: Final = re.compile(r"(?P<time>[0-9].*) (?P<zone>[A-Z]{3,5})")
_OF_CODE: Final = re.compile(r":[0-9]+$")
_MOST_PLANS: Final = 10_000


class Columns(NamedTuple):
    """The columns of `log_lines.SCHEMA` that can be filled from an object. A column without a value
    is None.
    """

    format: str
    time_us: int | None = None
    host: str | None = None
    component: str | None = None
    level: str | None = None
    pid: str | None = None
    thread: str | None = None
    message: str | None = None
    more: str | None = None
    is_impossible: bool = False


_Plan = Sequence[tuple[Format, JsonKeys]]


class ObjectReader:
    """Reads lines in the `formats` that share a decoder."""

    def __init__(self, decoder: str, formats: Sequence[Format]) -> None:
        self._decode = DECODERS[decoder]
        pairs = [
            (each, keys)
            for each in formats
            if (each.decoder or JSON) == decoder
            for keys in each.json
        ]
        # The user's own formats come first, then the most specific ones, which require the most
        # keys.
        self._formats = sorted(
            pairs, key=lambda pair: (pair[0].is_built_in, pair[1].is_loose, -len(pair[1].required))
        )
        self._plans: dict[tuple[str, ...], _Plan] = {}

    def read(self, lines: Iterable[str]) -> list[Columns | None]:
        return [self._columns(line) for line in lines] if self._formats else [None for _ in lines]

    def _columns(self, line: str) -> Columns | None:
        found = self._decode(line)
        if found is None:
            return None
        shape = tuple(found)
        plan = self._plans.get(shape)
        if plan is None:
            plan = [pair for pair in self._formats if _may_have(shape, pair[1])]
            # In a log whose keys are data, every line has a different shape.
            if len(self._plans) < _MOST_PLANS:
                self._plans[shape] = plan
        for of, keys in plan:
            columns = _columns(found, of, keys)
            if columns is not None:
                return columns
        return None


def _may_have(shape: tuple[str, ...], keys: JsonKeys) -> bool:
    present = {name.partition(".")[0] for name in shape} | {*shape}
    return all(key in present or key.partition(".")[0] in present for key in keys.required)


def _columns(found: Object, of: Format, keys: JsonKeys) -> Columns | None:
    if any(value_at(found, key) is ABSENT for key in keys.required):
        return None
    values = {name: first_value(found, names) for name, names in keys.keys.items()}
    level = _level(values.get("level"), values.get("severity"))
    time = values.get("time")
    if not keys.required and values.get("message") is None:
        return None
    # A message alone is not a log line.
    if not keys.required and time is None and level is None:
        return None
    time_us = None
    if time is not None:
        time_us = _time_us(time, keys.unit, of.zone)
        if time_us is None and not _is_date(time):
            return None
    return Columns(
        format=of.name,
        time_us=time_us,
        host=_word(values.get("host")),
        component=_component(values.get("component")),
        level=level,
        pid=_word(values.get("pid")),
        thread=_word(values.get("thread")),
        message=_text(values.get("message")) or "",
        more=_text(values.get("more")) or None,
        is_impossible=time is not None and time_us is None,
    )


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        # JSON can escape half a surrogate pair, which a text column cannot contain.
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    # journald writes text that is not UTF-8 as a list of bytes.
    if isinstance(value, list) and value and all(type(each) is int for each in value):
        if all(0 <= each < 256 for each in value):
            return bytes(value).decode("utf-8", "replace")
    elif isinstance(value, list) and all(isinstance(each, str) for each in value):
        return "\n".join(value)
    return _text(json.dumps(value, ensure_ascii=False))


def _word(value: Any) -> str | None:
    if isinstance(value, dict | list | bool) or value is None:
        return None
    text = (_text(value) or "").strip()
    return text if text and text != "-" else None


def _component(value: Any) -> str | None:
    """Return the component. Line numbers are removed from source locations, because they change
    between versions."""
    text = _word(value)
    return None if text is None else _OF_CODE.sub("", text)


def _level(name: Any, severity: Any) -> str | None:
    if isinstance(name, str):
        return BY_NAME.get(name.strip().upper())
    if isinstance(name, int) and not isinstance(name, bool):
        return BY_NUMBER.get(name)
    try:
        return None if severity is None else BY_SEVERITY.get(int(severity))
    except (TypeError, ValueError):
        return None


def _is_date(value: Any) -> bool:
    return isinstance(value, str) and _DATE.match(value) is not None


def _time_us(value: Any, unit: str | None, zone: str) -> int | None:
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            return _iso_us(value, zone)
        value = float(value) if "." in value else int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if unit is None:
        unit = next((name for size, name in _SIZES if value >= size), None)
        if unit is None:
            return None
    # Keep whole numbers exact, because nanoseconds have more digits than a float.
    if isinstance(value, int):
        found = value // 1_000 if unit == "ns" else value * int(TIME_UNITS_US[unit])
    else:
        found = round(value * TIME_UNITS_US[unit])
    return found if 0 <= found <= _LATEST_US else None


def _iso_us(text: str, zone: str) -> int | None:
    # PostgreSQL's times end with a zone name.
    if (named := _NAMED.fullmatch(text)) is not None:
        text = named["time"] + OFFSETS.get(named["zone"], "")
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is None:
            at = at.replace(tzinfo=UTC if zone == "UTC" else ZoneInfo(zone))
        found = (at - _EPOCH) // _US
    except (ValueError, OverflowError):
        return None
    return found if 0 <= found <= _LATEST_US else None
