"""Compiles users' patterns for log lines.

    {time:%Y-%m-%d %H:%M:%S,%f} {level} [{thread}] {component}: {message}

Names in braces are fields, a blank matches one or more blanks, a doubled brace matches one brace,
and everything else matches itself. `time` is followed by a colon and its format, in the notation of
`strptime`. `%f` is a fraction of a second, which is optional if no point or comma precedes it; `%I`
is an hour from 1 to 12 and needs `%p`, which is AM or PM; `%Z` is the name of a zone, or an offset.
`message` is the rest of the line and is required. The fields `host`, `component`, `level`, `pid`,
`thread` and `priority` (syslog's number) become columns; others are ignored. A line whose `level`
is not in `levels.py`, or whose `host` is a level, does not match.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from barnabas.errors import ConfigError
from barnabas_formats.levels import NAMES

COLUMNS: Final = ("time", "host", "component", "level", "pid", "thread", "priority", "message")

TOKEN: Final = re.compile(r"\{(?P<name>[a-z_]+)(?::(?P<form>[^{}]+))?\}|\{\{|\}\}| +|[^{} ]+|.")
_MISSPELT: Final = re.compile(r"\{(?P<name>[^{}: ]+)(?::[^{}]*)?\}")
# A level in place of the host means that the line is in another format.
_NO_HOSTS: Final = (
    *("TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "ERR", "ERROR", "SEVERE", "CRIT"),
    *("CRITICAL", "ALERT", "EMERG", "FATAL", "PANIC"),
)

_NOT_IN_HOSTS: Final = r"\s\[\](){}<>=\x22"


def _unlike(words: Sequence[str]) -> str:
    """Return the alternatives of an expression for a text that contains no blank, bracket, quote or
    equals sign, is not one of `words`, and does not end with a colon.

    Polars has no look-ahead, so the expression spells out how such a text may begin.
    """
    firsts = "".join(sorted({word[0] for word in words if word}))
    others = f"[^{_NOT_IN_HOSTS}]"
    parts = [rf"[^{_NOT_IN_HOSTS}:{firsts}]|[^{_NOT_IN_HOSTS}{firsts}]{others}*[^{_NOT_IN_HOSTS}:]"]
    for first in firsts:
        rests = [word[1:] for word in words if word.startswith(first)]
        parts.append(f"{first}(?:{_unlike(rests)}){'' if '' in rests else '?'}")
    return "|".join(parts)


_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "component": r"[^\s:\[\]]+",
        "level": f"(?i:{'|'.join(sorted(NAMES, reverse=True))})",
        "message": r".*",
        "pid": r"[0-9]+",
        "priority": r"(?:[0-9]|[1-9][0-9]|1[0-8][0-9]|19[01])",  # RFC 5424, 6.2.1
        "host": f"(?i:{_unlike(_NO_HOSTS)})",
        "thread": r".*?",
        "data": r"-|(?:\[(?:[^\]\\]|\\.)*\])+",  # structured data, RFC 5424, 6.3
    }
)
_USUAL: Final[Mapping[str, str]] = MappingProxyType({})
_OTHER: Final = r"\S+?"
_TIME: Final = {
    "Y": r"[0-9]{4}",
    "y": r"[0-9]{2}",
    "m": r"[0-9]{1,2}",
    "d": r"[ 0-9]?[0-9]",
    "b": r"[A-Za-z]{3}",
    "a": r"[A-Za-z]{3}",
    "H": r"[ 0-9]?[0-9]",
    "I": r"[ 0-9]?[0-9]",
    "p": r"(?i:[AP]M)",
    "M": r"[0-9]{1,2}",
    "S": r"[0-9]{1,2}",
    "f": r"[0-9]{1,9}",
    "z": r"(?:Z|[+-][0-9]{2}:?[0-9]{2})",
    "Z": r"(?:[A-Z]{3,5}|[+-][0-9]{2}(?::?[0-9]{2})?)",
}
_OF_TIME: Final = re.compile(r"%(.)|( +)|([^% ]+)")


class Pattern(NamedTuple):
    """Holds a compiled pattern. The groups of `regex` have the names in `COLUMNS`."""

    regex: str
    columns: tuple[str, ...]
    time_form: str
    is_loose: bool = False
    """Whether the pattern also matches lines in other formats, and is therefore tried last."""
    head: str = ""
    """The start of `regex`, up to the seconds of the time, which many patterns share. It is empty
    if the pattern contains no time."""


def compile_pattern(text: str, fields: Mapping[str, str] = _USUAL, start: str = "") -> Pattern:
    """Compile a pattern. Raises `ConfigError`, which states the problem.

    `fields` contains regular expressions that replace the usual ones for these fields. `start` is
    an expression that replaces the blanks before a message at the end of the pattern.
    """
    parts: list[str] = []
    columns: list[str] = []
    time_form, head = "", ""
    for token in TOKEN.finditer(text):
        name, form = token["name"], token["form"]
        if name is None:
            parts.append(literal_expression(token[0], text))
            continue
        if name in columns:
            raise wrong(text, f"{{{name}}} occurs twice")
        if name == "time":
            time_form = form or ""
            of_time, to_seconds = time_expressions(time_form, text)
            head = f"^{''.join(parts)}(?:{to_seconds})"
            parts.append(f"(?P<time>{of_time})")
        elif form is not None:
            raise wrong(text, f"only {{time:...}} may have a format, but {{{name}}} has one")
        else:
            inner = fields.get(name) or _FIELDS.get(name, _OTHER)
            if name == "message" and start and parts[-1] == " +":
                parts[-1] = start
            parts.append(f"(?P<{name}>{inner})" if name in COLUMNS else f"(?:{inner})")
        if name in COLUMNS:
            columns.append(name)
    if "message" not in columns:
        raise wrong(text, f"{{message}} is missing{_hint_at_kind(text)}")
    # Only the full expression has named groups.
    head = re.sub(r"\(\?P<[a-z]+>", "(?:", head)
    return Pattern(f"^{''.join(parts)}$", tuple(columns), time_form, head=head)


def _hint_at_kind(pattern: str) -> str:
    of_access = ("{client}", "{request}", "{status}")
    is_access = any(field in pattern for field in of_access)
    return '; if the lines are of an access log, add kind = "access"' if is_access else ""


def literal_expression(text: str, pattern: str) -> str:
    """Return the expression for a token that is not a field. Raises `ConfigError`."""
    if text.startswith(" "):
        return " +"
    if text in ("{{", "}}"):
        return re.escape(text[0])
    if text in "{}":
        raise wrong(pattern, _no_field(text, pattern))
    return re.escape(text)


def _no_field(brace: str, pattern: str) -> str:
    """Explain why a brace is not part of a field."""
    at = next(token.start() for token in TOKEN.finditer(pattern) if token[0] == brace)
    if (found := _MISSPELT.match(pattern, at)) is None:
        return f"{brace!r} belongs to no field; write {brace * 2} for a brace"
    name = found["name"]
    written = re.sub("[^a-z_]+", "_", name.lower()).strip("_")
    hint = f"; write {{{written}}}" if written else ""
    return (
        f"{{{name}}} is not a field: a name consists of lower-case letters and underscores{hint},"
        f" or {{{{{name}}}}} for these characters themselves"
    )


def time_expressions(form: str, pattern: str) -> tuple[str, str]:
    """Return the expression for a time, and the part of it up to the seconds."""
    if not form:
        raise wrong(pattern, "{time} has no format; add one, such as {time:%Y-%m-%d %H:%M:%S}")
    parts: list[str] = []
    seconds_end = 0
    for directive, blanks, literal in _OF_TIME.findall(form):
        if directive and directive not in _TIME:
            known = ", ".join(f"%{each}" for each in _TIME)
            raise wrong(pattern, f"%{directive} is unknown; use {known}")
        if directive == "f" and not (parts and parts[-1].endswith((",", ".", ":"))):
            parts.append(f"(?:[.,]{_TIME['f']})?")
        else:
            parts.append(_TIME[directive] if directive else " +" if blanks else re.escape(literal))
        if directive == "S":
            seconds_end = len(parts)
    present = {directive for directive, _, _ in _OF_TIME.findall(form)}
    is_dated = "d" in present and bool(present & {"m", "b"})
    has_hour = "H" in present if not present & {*"Ip"} else present & {*"HIp"} == {*"Ip"}
    # Some programs omit the date. A partial date would be useless.
    if not has_hour or not present >= {*"MS"} or not (is_dated or not present & {*"Yymbd"}):
        raise wrong(
            pattern,
            "a time needs %H, %M and %S (or %I with %p in place of %H), and month and day or no"
            " date at all",
        )
    return "".join(parts), "".join(parts[:seconds_end])


def wrong(pattern: str, what: str) -> ConfigError:
    """Return the error for an invalid pattern."""
    return ConfigError(f"the pattern {pattern!r}: {what}")
