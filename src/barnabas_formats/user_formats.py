"""Reads a user's file of formats, which are tried before the built-in ones.

    [[format]]
    name = "hadoop"
    pattern = "{time:%Y-%m-%d %H:%M:%S,%f} {level} [{thread}] {component}: {message}"
    zone = "Europe/Vienna"          # for times without an offset; UTC if omitted

    [[format]]
    name = "shop"
    json = { time = ["at"], level = ["severity"], message = ["text", "msg"] }

    [[format]]
    name = "gateway"
    kind = "access"                 # a web server's log; `access_pattern.py` lists the fields
    pattern = '{client} [{time:%d/%b/%Y:%H:%M:%S %z}] "{request}" {status} {response_time_ms}'

    [[format]]
    name = "proxy"                  # in nginx's notation, which describes only access logs
    pattern = '$remote_addr [$time_local] "$request" $status $request_time'

    [[format]]
    name = "our-iis"
    kind = "access"
    w3c = "#Fields: date time c-ip cs-method cs-uri-stem cs-host sc-status time-taken"

Several patterns may share a name if they are for the same kind of log. The first pattern that
matches a line is used.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from barnabas.errors import ConfigError
from barnabas.similar_names import did_you_mean
from barnabas_formats.access_pattern import check_names, compile_access_pattern, compile_w3c
from barnabas_formats.catalogue import names
from barnabas_formats.format import RAW, Format, JsonKeys, in_zone, json_keys, zone_named
from barnabas_formats.nginx_notation import is_of_nginx
from barnabas_formats.pattern import compile_pattern

ACCESS: Final = "access"
_KEYS: Final = ("name", "kind", "zone", "pattern", "json", "w3c")
_SYSTEM: Final = "system"
_SYSTEM_NAMES: Final = (
    *("time", "level", "severity", "host", "component", "pid", "thread", "message", "more"),
)
_WAYS: Final = ("json", "w3c")
_ALWAYS_UTC: Final = "Etc/UTC"  # no option overrides this zone


def read_formats(path: Path) -> tuple[Format, ...]:
    """Return the formats of a user's file.

    Raises `ConfigError`, with the place of the error, or `OSError`.
    """
    try:
        content = tomllib.loads(path.read_text("utf-8-sig"))  # some editors write a byte order mark
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: the file is not text in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}") from None
    entries = content.get("format")
    if not isinstance(entries, list) or not entries or content.keys() != {"format"}:
        raise ConfigError(
            f"{path}: the file must contain at least one [[format]] table and nothing else"
        )
    found: list[Format] = []
    for number, entry in enumerate(entries, 1):
        made = _format(path, number, entry)
        _check_name(f"{path}, format {number}", made, found)
        found.append(made)
    return tuple(found)


def _check_name(where: str, made: Format, before: Sequence[Format]) -> None:
    """Raise `ConfigError` if a built-in format has this name, or if an earlier format in the file
    has the same name and is identical or of another kind.
    """
    if made.name in names():
        raise ConfigError(
            f"{where}: {made.name!r} is the name of a built-in format; choose another, such as"
            f" {f'our-{made.name}'!r}"
        )
    for number, other in enumerate(before, 1):
        if other.name != made.name:
            continue
        if other == made:
            raise ConfigError(f"{where}: {made.name!r} is the same as format {number}")
        if other.kind != made.kind:
            raise ConfigError(
                f"{where}: format {number} has the name {made.name!r}, too, and is of the kind"
                f" {other.kind}; only formats of one kind may have the same name"
            )


def _format(path: Path, number: int, entry: dict[str, Any]) -> Format:
    where = f"{path}, format {number}"
    if not isinstance(entry, dict):
        raise ConfigError(
            f"{path}: the file may contain only [[format]] tables, and must contain at least one"
        )
    if unknown := sorted(entry.keys() - set(_KEYS)):
        hints = [f"; {key}: {near}" for key in unknown if (near := did_you_mean(key, _KEYS))]
        raise ConfigError(
            f"{where}: {', '.join(unknown)}: no such key{''.join(hints)}; the keys are name,"
            " kind, zone and one of pattern, json and w3c (unit and required are keys within json)"
        )
    _check_text(where, entry, "name", "a format needs one")
    if not any(way in entry for way in _WAYS):
        _check_text(where, entry, "pattern", "a format needs a pattern, json or w3c")
    if entry["name"] == RAW:
        raise ConfigError(f"{where}: {RAW!r} is reserved for lines that match no format")
    kind = entry.get("kind", ACCESS if is_of_nginx(str(entry.get("pattern"))) else _SYSTEM)
    if kind not in (ACCESS, _SYSTEM):
        near = did_you_mean(str(kind), (ACCESS, _SYSTEM))
        hint = f"; {near}" if near else "; use access or system"
        raise ConfigError(f"{where}: {kind!r} is not a kind{hint}")
    try:
        if "w3c" in entry:
            return _w3c(entry, kind)
        return own_format(
            entry["name"],
            pattern=entry.get("pattern"),
            json=entry.get("json"),
            zone=entry.get("zone", "UTC"),
            kind=kind,
        )
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _check_text(where: str, entry: Mapping[str, Any], key: str, why: str) -> None:
    if key not in entry:
        raise ConfigError(f"{where}: {key} is missing: {why}")
    if not isinstance(entry[key], str):
        raise ConfigError(f"{where}: {key} is not text: write {key} = '...'")
    if not entry[key].strip():
        raise ConfigError(f"{where}: {key} is empty: {why}")


def _w3c(entry: dict[str, Any], kind: str) -> Format:
    if entry.keys() & {"pattern", "json", "zone"}:
        raise ConfigError("a format with w3c has no pattern, json or zone")
    if not isinstance(entry["w3c"], str):
        raise ConfigError("w3c must be text: a directive such as '#Fields: date time c-ip'")
    if kind != ACCESS:
        raise ConfigError('w3c: the format needs kind = "access"')
    return w3c_format(entry["name"], entry["w3c"])


def w3c_format(name: str, columns: str) -> Format:
    """Return a user's format with the columns of a `#Fields:` directive. Raises `ConfigError`."""
    return Format(name, zone=_ALWAYS_UTC, kind=ACCESS, access=(compile_w3c(columns),))


def own_format(
    name: str,
    *,
    pattern: str | None = None,
    json: Any = None,
    zone: str = "UTC",
    kind: str = _SYSTEM,
) -> Format:
    """Return a user's format, which has a pattern or JSON keys. Raises `ConfigError`."""
    if (pattern is None) == (json is None):
        raise ConfigError("a format has either a pattern or json")
    found = Format(name, zone=zone_named(zone), kind=kind)
    if json is not None:
        return found._replace(json=(_own_keys(json, kind),))
    if kind == ACCESS:
        return found._replace(access=(compile_access_pattern(pattern or ""),))
    return found._replace(patterns=(compile_pattern(pattern or ""),))


def _own_keys(json: Any, kind: str) -> JsonKeys:
    if not (isinstance(json, dict) and json):
        raise ConfigError("json: the value must be a table of lists of keys")
    keys = json_keys(json)
    if kind == ACCESS:
        try:
            check_names(tuple(keys.keys))
        except ConfigError as error:
            raise ConfigError(f"json: {error}") from None
    elif unknown := [name for name in keys.keys if name not in _SYSTEM_NAMES]:
        known = ", ".join(_SYSTEM_NAMES)
        nears = [(name, did_you_mean(name, _SYSTEM_NAMES)) for name in unknown]
        hints = [f"; {name}: {near}" for name, near in nears if near]
        raise ConfigError(
            f"json: {', '.join(unknown)}: no such field{''.join(hints)}; the fields are {known}"
        )
    return keys


def kind_of_pattern(pattern: str) -> str:
    """Return the kind of log for a pattern without a `kind`."""
    is_access = is_of_nginx(pattern) or ("{client}" in pattern and "{message}" not in pattern)
    return ACCESS if is_access else _SYSTEM


def of_kind(formats: Iterable[Format], kind: str) -> tuple[Format, ...]:
    return tuple(each for each in formats if each.kind == kind)


def read_access_formats(path: Path | None, zone: str | None = None) -> tuple[Format, ...]:
    """Return the formats for access logs in a user's file.

    `zone` is the zone for times without an offset in formats that define none. Raises
    `ConfigError`, including when the file has no format for access logs, or `OSError`.
    """
    return () if path is None else access_formats(path, read_formats(path), zone)


def access_formats(
    path: Path, formats: Iterable[Format], zone: str | None = None
) -> tuple[Format, ...]:
    """Return the formats in a file that are for access logs. See `read_access_formats`."""
    found = of_kind(formats, ACCESS)
    if not found:
        raise ConfigError(f'{path}: no format for access logs; such a format has kind = "access"')
    return found if zone is None else in_zone(found, zone)
