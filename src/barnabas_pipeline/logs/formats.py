"""The formats of log lines: the built-in formats, and the formats in a user's file.

    [[format]]
    name = "hadoop"
    pattern = "{time:%Y-%m-%d %H:%M:%S,%f} {level} [{thread}] {component}: {message}"
    zone = "Europe/Vienna"          # of times without an offset; UTC if it is left out

A name may have several patterns. The first pattern that matches a line counts; the user's are tried
first.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from barnabas.errors import ConfigError
from barnabas_pipeline.logs.pattern import Pattern, compile_pattern

RAW: Final = "raw"
"""The format of lines that match no other format."""
_KEYS: Final = {"name", "pattern", "zone"}


class Format(NamedTuple):
    """One pattern of a format."""

    name: str
    pattern: Pattern
    zone: str = "UTC"


_SYSLOG_TIME: Final = "{time:%b %d %H:%M:%S}"
_ISO_TIME: Final = "{time:%Y-%m-%dT%H:%M:%S%f%z}"
_LOG4J_TIME: Final = "{time:%Y-%m-%d %H:%M:%S,%f}"
_APACHE_TIME: Final = "{time:%a %b %d %H:%M:%S%f %Y}"
_PYTHON_TIME: Final = "{time:%Y-%m-%d %H:%M:%S%f}"
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

# A message may be empty, and its blank is then often missing. In RFC 5424 it may have a byte order
# mark.
_MAY_END: Final = r"(?: +|$)"
_MAY_END_5424: Final = "(?: +\ufeff?|$)"
# This is a host, and not the tag of a line without a host, which ends with a colon.
_HOST: Final = MappingProxyType({"host": r"\S*[^\s:]"})
_WITHOUT_TAG: Final = MappingProxyType(
    {**_HOST, "message": r"last message repeated [0-9]+ times|-- MARK --"}
)
# A word next to the message is a component only if it looks like one.
_PYTHON: Final = MappingProxyType(
    {
        "component": r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)+|root|__main__",
        "level": "DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL",
    }
)
_PYTHON_DEFAULT: Final = MappingProxyType({**_PYTHON, "component": r"[A-Za-z0-9_.]+"})


class _Known(NamedTuple):
    """A built-in pattern; `fields` and `start` are used as in `compile_pattern`."""

    name: str
    pattern: str
    fields: Mapping[str, str] = _NOTHING
    start: str = ""


_SYSLOG: Final = (
    # RFC 5424: structured data in brackets, and a hyphen for a missing field.
    *(
        _Known(
            "syslog",
            f"<{{priority}}>1 {time} {{host}} {{component}} {pid} {{id}} {{data}} {{message}}",
            start=_MAY_END_5424,
        )
        for time in (_ISO_TIME, "-")
        for pid in ("{pid}", "{other}")
    ),
    # RFC 3164, and its form in files: without a priority, and in newer files with a different time.
    *(
        _Known("syslog", f"{priority}{time} {{host}} {program}: {{message}}", _HOST, _MAY_END)
        for priority in ("", "<{priority}>")
        for time in (_SYSLOG_TIME, _ISO_TIME)
        for program in ("{component}[{pid}]", "{component}")
    ),
    # On the machine itself the host may be missing, and syslogd's own messages have no tag.
    *(
        _Known("syslog", f"{front}: {{message}}", start=_MAY_END)
        for front in (
            f"<{{priority}}>{_SYSLOG_TIME} {{component}}[{{pid}}]",
            f"<{{priority}}>{_SYSLOG_TIME} {{component}}",
            f"{_SYSLOG_TIME} {{component}}[{{pid}}]",
        )
    ),
    *(
        _Known("syslog", f"{priority}{time} {{host}} {{message}}", _WITHOUT_TAG)
        for priority in ("", "<{priority}>")
        for time in (_SYSLOG_TIME, _ISO_TIME)
    ),
)
_JAVA: Final = (
    *(
        _Known(
            "zookeeper",
            f"{_LOG4J_TIME} {server}- {{level}} [{{thread}}:{{component}}@{{line}}] - {{message}}",
        )
        for server in ("", "[myid:{id}] ", "[myid:] ")
    ),
    *(
        _Known(
            "openstack",
            f"{file}{{time:%Y-%m-%d %H:%M:%S.%f}} {{pid}} {{level}} {{component}} [{{thread}}]"
            f" {instance}{{message}}",
        )
        for file in ("", "{file} ")
        for instance in ("[instance: {instance}] ", "")
    ),
    _Known("hdfs", "{time:%y%m%d %H%M%S} {pid} {level} {component}: {message}"),
    _Known("log4j", f"{_LOG4J_TIME} {{level}} [{{thread}}] {{component}}: {{message}}"),
    _Known("log4j", f"{_LOG4J_TIME} {{level}} [{{thread}}] {{component}} ({{at}}) - {{message}}"),
    _Known("log4j", f"{_LOG4J_TIME} [{{thread}}] {{level}} {{component}} - {{message}}"),
    _Known("log4j", f"{_LOG4J_TIME} {{level}} {{component}}: {{message}}"),
    _Known("log4j", "{time:%y/%m/%d %H:%M:%S} {level} {component}: {message}"),
    # Flask's format comes before Kafka's, which would match it as well.
    _Known("python", f"[{_LOG4J_TIME}] {{level}} in {{component}}: {{message}}"),
    _Known("log4j", f"[{_LOG4J_TIME}] {{level}} [{{thread}}] {{message}} ({{component}})"),
    _Known("log4j", f"[{_LOG4J_TIME}] {{level}} {{message}} ({{component}})"),
)
_OTHERS: Final = (
    # The formats in the manual and its examples, each with and without a name.
    *(
        _Known("python", f"{_LOG4J_TIME}{rest}", _PYTHON)
        for rest in (
            " {component} {level} {message}",
            " {level} {component} {message}",
            " {level} {message}",
            " {level}:{component}:{message}",
            " {level}:{message}",
            ":{level}:{component}:{message}",
            ":{level}:{message}",
        )
    ),
    *(
        _Known("python", f"{_PYTHON_TIME}{rest}", _PYTHON)
        for rest in (
            " - {level} - {component} - {message}",
            " - {level} - {message}",
            " [{level}] {component}: {message}",
            " [{level}] {message}",
        )
    ),
    _Known("python", f"{_PYTHON_TIME} - {{component}} - {{level}} - {{message}}"),
    _Known("python", "{level}:{component}:{message}", _PYTHON_DEFAULT),
    # Celery's and Gunicorn's.
    _Known("python", f"[{_PYTHON_TIME}: {{level}}/{{thread}}] {{message}}"),
    _Known("python", "[{time:%Y-%m-%d %H:%M:%S %z}] [{pid}] [{level}] {message}"),
    # Apache's module is the component; it has none in versions before 2.4.
    *(
        _Known("apache", f"[{_APACHE_TIME}] [{module}{{level}}] {process}{{message}}")
        for module in ("{component}:", ":", "")
        for process in ("[pid {pid}:tid {thread}] ", "[pid {pid}] ", "")
    ),
)


def known_formats() -> tuple[Format, ...]:
    """Return the built-in formats."""
    return tuple(
        Format(each.name, compile_pattern(each.pattern, each.fields, each.start))
        for each in (*_SYSLOG, *_JAVA, *_OTHERS)
    )


def read_formats(path: Path) -> tuple[Format, ...]:
    """Return the formats of a user's file.

    Raises `ConfigError` with the place of an error, or `OSError`.
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
        return Format(entry["name"], compile_pattern(entry["pattern"]), zone)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def names(formats: Sequence[Format]) -> list[str]:
    return list(dict.fromkeys(each.name for each in formats))
