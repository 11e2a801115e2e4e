"""Reads the formats in a user's file, which are tried before the built-in ones.

    [[format]]
    name = "hadoop"
    pattern = "{time:%Y-%m-%d %H:%M:%S,%f} {level} [{thread}] {component}: {message}"
    zone = "Europe/Vienna"          # of times without an offset; UTC if it is left out

    [[format]]
    name = "shop"
    json = { time = ["at"], level = ["severity"], message = ["text", "msg"] }

A name may have several patterns. The first pattern that matches a line counts.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from barnabas.errors import ConfigError
from barnabas_formats.format import RAW, Format, json_keys, zone_named
from barnabas_formats.pattern import compile_pattern

_KEYS: Final = {"name", "pattern", "json", "zone", "kind"}


def read_formats(path: Path) -> tuple[Format, ...]:
    """Return the formats of a user's file.

    Raises `ConfigError`, which names the place of the error, or `OSError`.
    """
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    entries = content.get("format")
    if not isinstance(entries, list) or not entries or content.keys() != {"format"}:
        raise ConfigError(f"{path}: it must only have a list of [[format]]")
    return tuple(_format(path, number, entry) for number, entry in enumerate(entries, 1))


def _format(path: Path, number: int, entry: dict[str, Any]) -> Format:
    where = f"{path}, format {number}"
    if unknown := entry.keys() - _KEYS:
        raise ConfigError(
            f"{where}: {', '.join(sorted(unknown))}: there are name, pattern or json, zone, kind"
        )
    for key in ("name",) if "json" in entry else ("name", "pattern"):
        if not isinstance(entry.get(key), str) or not entry[key]:
            raise ConfigError(f"{where}: {key} is missing, or not text")
    if entry["name"] == RAW:
        raise ConfigError(f"{where}: {RAW!r} is the name of lines that match no format")
    kind = entry.get("kind", "system")
    if kind not in ("access", "system"):
        raise ConfigError(f"{where}: {kind!r} is not a kind; there are access and system")
    if kind == "access":
        raise ConfigError(
            f"{where}: your own formats can only be of system logs, not of access logs"
        )
    try:
        return own_format(
            entry["name"],
            pattern=entry.get("pattern"),
            json=entry.get("json"),
            zone=entry.get("zone", "UTC"),
            kind=kind,
        )
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def own_format(
    name: str, *, pattern: str | None, json: Any = None, zone: str = "UTC", kind: str = "system"
) -> Format:
    """Return a user's format, which has a pattern or JSON keys. Raises `ConfigError`."""
    if (pattern is None) == (json is None):
        raise ConfigError("a format has either a pattern or json")
    if json is not None and not (isinstance(json, dict) and json):
        raise ConfigError("json: it must have lists of keys")
    return Format(
        name,
        () if pattern is None else (compile_pattern(pattern),),
        zone_named(zone),
        kind,
        json=() if json is None else (json_keys(json),),
    )
