"""Reads alert rules and their sinks from a user's file.

lookback = "1d"                 # incidents that ended earlier are not sent

[[alert]]
name = "errors"
kind = "rate"
level = ["ERROR", "FATAL"]
threshold = 50                  # entries
window = "5m"
sinks = ["team"]                # all sinks in the file if left out

[sink.team]
kind = "webhook"
url_env = "TEAM_HOOK"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from barnabas.errors import ConfigError
from barnabas.similar_names import did_you_mean
from barnabas_formats.levels import LEVELS

MINUTE: Final = timedelta(minutes=1)
_NOTHING: Final = timedelta(0)
_DURATION: Final = re.compile(r"([0-9]{1,6}) ?([mhd])")
_UNITS: Final = MappingProxyType(
    {"m": MINUTE, "h": timedelta(hours=1), "d": timedelta(days=1)},
)
_MOST: Final = 1_000
"""The maximum number of alerts in a file."""
_MOST_STEPS: Final = 20


class Rule(NamedTuple):
    """An alert rule. Each kind of rule uses only some of these fields."""

    name: str
    kind: str
    sinks: tuple[str, ...]
    threshold: int = 0  # entries
    share: float = 0.0
    minimum: int = 100  # a share of fewer lines, hits or visitors is ignored
    window: timedelta = 5 * MINUTE
    hold: timedelta = _NOTHING
    learn: timedelta = timedelta(hours=1)
    levels: tuple[str, ...] = ()
    template: str | None = None
    format: str | None = None
    components: tuple[str, ...] = ()
    host: str | None = None
    steps: tuple[str, ...] = ()
    within: timedelta = 30 * MINUTE


class SinkOptions(NamedTuple):
    name: str
    kind: str
    options: Mapping[str, Any]


class Rules(NamedTuple):
    """The content of a rules file."""

    alerts: tuple[Rule, ...]
    sinks: tuple[SinkOptions, ...]
    lookback: timedelta


def read_rules(path: Path) -> Rules:
    """Return the rules in a user's file.

    Raises `ConfigError`, which contains the place of the mistake, or `OSError`.
    """
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    try:
        return _rules(content)
    except ConfigError as error:
        raise ConfigError(f"{path}{error}") from None


def _rules(content: Mapping[str, Any]) -> Rules:
    if unknown := content.keys() - {"alert", "sink", "lookback"}:
        raise ConfigError(
            f": {_unknown(unknown, ('alert', 'sink', 'lookback'), 'alert, sink and lookback')}"
        )
    sinks = content.get("sink", {})
    if not isinstance(sinks, dict) or not all(isinstance(each, dict) for each in sinks.values()):
        raise ConfigError(": a sink is a table with a name, such as [sink.team]")
    entries = content.get("alert")
    if not isinstance(entries, list) or not 0 < len(entries) <= _MOST:
        raise ConfigError(f": it must have a list of [[alert]] tables, of at most {_MOST:,}")
    found = tuple(_rule(number, entry, sinks) for number, entry in enumerate(entries, 1))
    names = [each.name for each in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f": two alerts have the name {twice[0]!r}")
    try:
        lookback = _duration(content.get("lookback", "1d"))
    except ConfigError as error:
        raise ConfigError(f": lookback: {error}") from None
    return Rules(found, tuple(_sink(name, each) for name, each in sinks.items()), lookback)


def _rule(number: int, entry: Any, sinks: Mapping[str, Any]) -> Rule:
    if not isinstance(entry, dict):
        raise ConfigError(": it must have a list of [[alert]] tables")
    where = f", alert {entry.get('name', number)!r}"
    kind = _kind(where, entry, _KINDS)
    of_kind = _KINDS[kind]
    if unknown := entry.keys() - {"name", "kind", "sinks"} - of_kind.keys():
        keys = ("name", "kind", "sinks", *of_kind)
        raise ConfigError(f"{where}: {_unknown(unknown, keys, f'{kind} has ' + ', '.join(keys))}")
    fields: dict[str, Any] = {"sinks": tuple(sinks), **_DEFAULTS.get(kind, {})}
    parsers = {"name": ("name", _text), "sinks": ("sinks", _texts), **of_kind}
    for key, (field, parse) in parsers.items():
        if key in entry:
            try:
                fields[field] = parse(entry[key])
            except ConfigError as error:
                raise ConfigError(f"{where}: {key}: {error}") from None
        elif key in _REQUIRED:
            raise ConfigError(f"{where}: {key} is missing")
    for sink in fields["sinks"]:
        if sink not in sinks:
            there = f"the sinks are {', '.join(sinks)}" if sinks else "there is no [sink.NAME]"
            raise ConfigError(f"{where}: sinks: {_unknown([sink], sinks, there)}")
    rule = Rule(kind=kind, **fields)
    if kind == "rate" and bool(rule.levels) == bool(rule.template):
        raise ConfigError(f"{where}: a rate has either a level or a template")
    return rule


def _sink(name: str, entry: Mapping[str, Any]) -> SinkOptions:
    where = f", sink {name!r}"
    kind = _kind(where, entry, _SINKS)
    keys = _SINKS[kind]
    if unknown := entry.keys() - {"kind"} - keys.keys():
        there = f"{kind} has {', '.join(('kind', *keys))}"
        raise ConfigError(f"{where}: {_unknown(unknown, keys, there)}")
    options = {}
    for key, parse in keys.items():
        if key in entry:
            try:
                options[key] = parse(entry[key])
            except ConfigError as error:
                raise ConfigError(f"{where}: {key}: {error}") from None
    for key in _SINKS_REQUIRE[kind]:
        # A secret may come from elsewhere: `url_env` or `url_file` instead of `url`.
        if not options.keys() & {key, f"{key}_env", f"{key}_file"}:
            raise ConfigError(f"{where}: {key} is missing")
    return SinkOptions(name, kind, options)


def _kind(where: str, entry: Mapping[str, Any], kinds: Mapping[str, Any]) -> str:
    if "kind" not in entry:
        raise ConfigError(f"{where}: kind is missing; the kinds are {', '.join(kinds)}")
    kind = str(entry["kind"])
    if kind not in kinds:
        listed = f"the kinds are {', '.join(kinds)}"
        raise ConfigError(f"{where}: kind: {_unknown([kind], kinds, listed)}")
    return kind


def _unknown(names: Any, known: Any, there: str) -> str:
    """Return an error message for an unknown key; it suggests a similar key or lists the known
    keys.
    """
    name = sorted(map(str, names))[0]
    near = did_you_mean(name, known)
    return f"{name!r} is unknown; " + (near or there)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ConfigError("text is expected")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise ConfigError("it is empty")
    return tuple(_text(each) for each in values)


def _steps(value: Any) -> tuple[str, ...]:
    """Return the paths of a funnel, each of which may end in `*`."""
    if not isinstance(value, list) or not 2 <= len(value) <= _MOST_STEPS:
        raise ConfigError(f"a list of 2 to {_MOST_STEPS} paths is expected")
    steps = _texts(value)
    for step in steps:
        if not step.startswith("/") or "*" in step[:-1]:
            raise ConfigError(
                f"{step!r} is not a path: a path begins with /, and may have * only at its end"
            )
        if "?" in step or "#" in step:
            raise ConfigError(f"{step!r} has a query or a fragment: give only the path before it")
    return steps


def _levels(value: Any) -> tuple[str, ...]:
    names = _texts(value)
    for name in names:
        if name not in LEVELS:
            raise ConfigError(_unknown([name], LEVELS, ", ".join(LEVELS)))
    return names


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError("it must be a whole number of at least 1")
    return value


def _port(value: Any) -> int:
    if _whole(value) > 65_535:
        raise ConfigError("a port must be between 1 and 65535")
    return int(value)


def _part(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 1:
        raise ConfigError("a share must be above 0 and at most 1")
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ConfigError("true or false is expected")
    return value


def _duration(value: Any) -> timedelta:
    # The tables contain counts per minute.
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None or not int(match[1]):
        raise ConfigError("minutes, hours or days are expected, such as 5m, 2h or 1d")
    found = int(match[1]) * _UNITS[match[2]]
    if found > timedelta(days=366):
        raise ConfigError("the longest duration is a year")
    return found


_Keys = Mapping[str, tuple[str, Callable[[Any], Any]]]

_WINDOW: Final[_Keys] = {"window": ("window", _duration)}
_HOLD: Final[_Keys] = {"for": ("hold", _duration)}
_SHARE: Final[_Keys] = {"share": ("share", _part)}
_FORMAT: Final[_Keys] = {"format": ("format", _text)}
_TEMPLATE: Final[_Keys] = {"template": ("template", _text)}
_KINDS: Final[Mapping[str, _Keys]] = MappingProxyType(
    {
        "rate": {
            "level": ("levels", _levels),
            **_TEMPLATE,
            **_FORMAT,
            "threshold": ("threshold", _whole),
            **_WINDOW,
            **_HOLD,
        },
        "new_template": {**_TEMPLATE, **_FORMAT, "learn": ("learn", _duration), **_WINDOW},
        "silence": {
            "component": ("components", _texts),
            **_FORMAT,
            "host": ("host", _text),
            **_HOLD,
        },
        "break_in": {**_WINDOW},
        "error_share": {**_SHARE, "min_hits": ("minimum", _whole), **_WINDOW, **_HOLD},
        "funnel": {
            "steps": ("steps", _steps),
            "below": ("share", _part),
            "min_visitors": ("minimum", _whole),
            "within": ("within", _duration),
            **_WINDOW,
            **_HOLD,
        },
        "rejected_share": {**_SHARE, "min_lines": ("minimum", _whole)},
    }
)
"""The keys of each kind of rule, with their fields and parsers."""
_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "new_template": {"window": timedelta(hours=1)},
        "silence": {"hold": 10 * MINUTE},
        "break_in": {"window": timedelta(hours=1)},
        "funnel": {"window": timedelta(hours=1), "minimum": 20},
    }
)
_REQUIRED: Final = ("name", "threshold", "share", "steps", "below")

_HTTP: Final[Mapping[str, Callable[[Any], Any]]] = {
    "url": _text,
    "url_env": _text,
    "url_file": _text,
    "token_env": _text,
    "token_file": _text,
}
_SINKS: Final[Mapping[str, Mapping[str, Callable[[Any], Any]]]] = MappingProxyType(
    {
        "webhook": _HTTP,
        "alertmanager": _HTTP,
        "mail": {
            "host": _text,
            "port": _port,
            "from": _text,
            "to": _texts,
            "starttls": _flag,
            "user": _text,
            "password_env": _text,
            "password_file": _text,
        },
        "topic": {"topic": _text, "bootstrap_servers": _text, "command_config": _text},
    }
)
_SINKS_REQUIRE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "webhook": ("url",),
        "alertmanager": ("url",),
        "mail": ("host", "from", "to"),
        "topic": ("topic", "bootstrap_servers"),
    }
)
