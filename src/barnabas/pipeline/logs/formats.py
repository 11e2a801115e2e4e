"""The formats of log lines: the built-in ones, and those of a user's file.

    [[format]]
    name = "hadoop"
    pattern = "{time:%Y-%m-%d %H:%M:%S,%f} {level} [{thread}] {component}: {message}"
    zone = "Europe/Vienna"          # of times without an offset; UTC if it is left out

A name may have several patterns; the first that matches a line counts, the user's before ours.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from barnabas.errors import ConfigError
from barnabas.pipeline.logs.pattern import Pattern, compiled

RAW: Final = "raw"
"""The format of lines that match no other."""
_KEYS: Final = {"name", "pattern", "zone"}


class Format(NamedTuple):
    """One pattern of a format."""

    name: str
    pattern: Pattern
    zone: str = "UTC"


_SYSLOG_TIME: Final = "{time:%b %d %H:%M:%S}"
_ISO_TIME: Final = "{time:%Y-%m-%dT%H:%M:%S%f%z}"
_KNOWN: Final = (
    # RFC 5424; structured data in brackets, or a hyphen if there is none.
    ("syslog", "<{priority}>1 " + _ISO_TIME + " {host} {component} {pid} {id} {data} {message}"),
    ("syslog", "<{priority}>1 " + _ISO_TIME + " {host} {component} - {id} {data} {message}"),
    # RFC 3164, and its form in files: without a priority, and newer ones with another time.
    *(
        ("syslog", f"{priority}{time} {{host}} {program}: {{message}}")
        for priority in ("", "<{priority}>")
        for time in (_SYSLOG_TIME, _ISO_TIME)
        for program in ("{component}[{pid}]", "{component}")
    ),
    (
        "zookeeper",
        "{time:%Y-%m-%d %H:%M:%S,%f} - {level} [{thread}:{component}@{line}] - {message}",
    ),
    *(
        (
            "openstack",
            f"{file}{{time:%Y-%m-%d %H:%M:%S.%f}} {{pid}} {{level}} {{component}} [{{thread}}]"
            f" {instance}{{message}}",
        )
        for file in ("", "{file} ")
        for instance in ("[instance: {instance}] ", "")
    ),
    ("hdfs", "{time:%y%m%d %H%M%S} {pid} {level} {component}: {message}"),
    ("log4j", "{time:%Y-%m-%d %H:%M:%S,%f} {level} [{thread}] {component}: {message}"),
    ("log4j", "{time:%Y-%m-%d %H:%M:%S,%f} {level} {component}: {message}"),
    ("log4j", "{time:%y/%m/%d %H:%M:%S} {level} {component}: {message}"),
    ("log4j", "[{time:%Y-%m-%d %H:%M:%S,%f}] {level} [{thread}] {message} ({component})"),
    ("log4j", "[{time:%Y-%m-%d %H:%M:%S,%f}] {level} {message} ({component})"),
    ("python", "{time:%Y-%m-%d %H:%M:%S,%f} {level} {component} {message}"),
    ("apache", "[{time:%a %b %d %H:%M:%S %Y}] [{level}] {message}"),
)


def known_formats() -> tuple[Format, ...]:
    """The built-in formats."""
    return tuple(Format(name, compiled(pattern)) for name, pattern in _KNOWN)


def read_formats(path: Path) -> tuple[Format, ...]:
    """The formats of a user's file. Raises `ConfigError` with the place of an error, `OSError`."""
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
        raise ConfigError(f"{where}: {', '.join(sorted(unknown))}: there are name, pattern, zone")
    for key in ("name", "pattern"):
        if not isinstance(entry.get(key), str) or not entry[key]:
            raise ConfigError(f"{where}: {key} is missing, or not text")
    if entry["name"] == RAW:
        raise ConfigError(f"{where}: {RAW!r} is the name of lines that match no format")
    zone = entry.get("zone", "UTC")
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, TypeError, OSError):
        raise ConfigError(f"{where}: {zone!r} is not a time zone, such as Europe/Vienna") from None
    try:
        return Format(entry["name"], compiled(entry["pattern"]), zone)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def names(formats: Sequence[Format]) -> list[str]:
    return list(dict.fromkeys(each.name for each in formats))
