"""Reads a format's file in the catalogue.

    title = "nginx's error log"
    source = "https://nginx.org/en/docs/ngx_core_module.html#error_log"
    patterns = ["{time:%Y/%m/%d %H:%M:%S} [{level}] {pid}#{thread}: {message}"]

    [[samples]]
    line = '...'
    values = { time = "2026-03-10T10:00:00Z", level = "ERROR", message = "..." }

`wraps = true` means that the message is itself a log line, wrapped by a container runtime.
`message_below = true` means that an empty message follows in the next line, indented or after
scopes (`=> ...`). Instead of `patterns`, a file may contain `decoder` or these lists:

    [[text]]      patterns with common properties: `fields` and `start` as in `compile_pattern`;
                  `loose = true` if they match lines of other formats and are therefore tried last
    [[json]]      for each column, the keys of a JSON object; the first key that is present is
                  used. `required`: keys that all objects of this format have. `unit`: the unit
                  of numeric times (s, ms, us, ns); otherwise, their size decides. `loose`: as
                  above. With `decoder`, such as "logfmt", the decoder returns the object
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from barnabas.errors import ConfigError
from barnabas_formats.access_pattern import AccessPattern
from barnabas_formats.pattern import Pattern, compile_pattern

RAW: Final = "raw"
"""The name of the format for lines that match no other format."""
TIME_UNITS_US: Final[Mapping[str, float]] = MappingProxyType(
    {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
)
"""Units of numeric times in objects, in microseconds."""
_KEYS: Final = {
    *("title", "source", "patterns", "text", "json", "decoder", "zone", "wraps", "samples"),
    "message_below",
}
_OPTIONS: Final = ("required", "unit", "loose")
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Sample(NamedTuple):
    """Holds a line and the values in it. A time without a year is in the year 2026."""

    line: str
    values: dict[str, object]


class JsonKeys(NamedTuple):
    """Lists the keys that a format uses in a JSON object.

    A dot in a key may also indicate nesting.
    """

    keys: Mapping[str, tuple[str, ...]]
    required: tuple[str, ...] = ()
    unit: str | None = None
    is_loose: bool = False


class Format(NamedTuple):
    """Describes a format. `kind` is "access" or "system". `zone` is the time zone for times without
    an offset.
    """

    name: str
    patterns: tuple[Pattern, ...] = ()
    zone: str = "UTC"
    kind: str = "system"
    title: str = ""
    source: str = ""
    json: tuple[JsonKeys, ...] = ()
    decoder: str | None = None
    wraps: bool = False
    samples: tuple[Sample, ...] = ()
    access: tuple[AccessPattern, ...] = ()
    """The patterns of a user's own format for access logs."""
    message_below: bool = False

    @property
    def is_built_in(self) -> bool:
        """Return whether the format is in the catalogue. A user's own formats are tried first."""
        return bool(self.source)


def read_format(path: Path | Traversable, kind: str) -> Format:
    """Return the format in this file. Raises `ConfigError` with the place of the error."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    if unknown := content.keys() - _KEYS:
        raise ConfigError(f"{path}: {', '.join(sorted(unknown))}: no such key")
    try:
        return _format(path.name.removesuffix(".toml"), kind, content)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _format(name: str, kind: str, content: Mapping[str, Any]) -> Format:
    groups = [{"patterns": content.get("patterns", [])}, *content.get("text", [])]
    return Format(
        name=name,
        patterns=tuple(pattern for group in groups for pattern in _patterns(group)),
        zone=zone_named(content.get("zone", "UTC")),
        kind=kind,
        title=content["title"],
        source=content["source"],
        json=tuple(json_keys(each) for each in content.get("json", ())),
        decoder=content.get("decoder"),
        wraps=content.get("wraps", False),
        message_below=content.get("message_below", False),
        samples=tuple(Sample(each["line"], each["values"]) for each in content.get("samples", ())),
    )


def _patterns(group: Mapping[str, Any]) -> Sequence[Pattern]:
    fields, start = group.get("fields", _NOTHING), group.get("start", "")
    found = [compile_pattern(each, fields, start) for each in group["patterns"]]
    return [each._replace(is_loose=group.get("loose", False)) for each in found]


def json_keys(entry: Mapping[str, Any]) -> JsonKeys:
    """Return the keys in a TOML table. Raises `ConfigError`."""
    columns = {name: keys for name, keys in entry.items() if name not in _OPTIONS}
    for name, keys in {**columns, "required": entry.get("required", [])}.items():
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise ConfigError(f"json: {name} is not a list of keys, such as [{name!r}]")
        if not keys and name in entry:
            raise ConfigError(f"json: {name} is an empty list; name a key, or leave {name} out")
    unit = entry.get("unit")
    if unit is not None and unit not in TIME_UNITS_US:
        raise ConfigError(
            f"json: {unit!r} is not a unit of time; the units are {', '.join(TIME_UNITS_US)}"
        )
    return JsonKeys(
        MappingProxyType({name: tuple(keys) for name, keys in columns.items()}),
        tuple(entry.get("required", ())),
        unit,
        entry.get("loose", False),
    )


def zone_named(zone: object) -> str:
    """Return the name of a time zone. Raises `ConfigError` if the zone does not exist."""
    try:
        return ZoneInfo(zone).key  # type: ignore[arg-type]
    except (KeyError, ValueError, TypeError, OSError):
        raise ConfigError(f"{zone!r} is not a time zone, such as Europe/Vienna") from None


def in_zone(formats: Sequence[Format], zone: str) -> tuple[Format, ...]:
    """Return the formats, with this zone for times without an offset. Formats that define their own
    zone keep it. Raises `ConfigError` if the zone does not exist.
    """
    zone = zone_named(zone)
    return tuple(each._replace(zone=zone) if each.zone == "UTC" else each for each in formats)
