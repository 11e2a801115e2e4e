"""Compiles users' patterns for access log lines.

    {client} - {user} [{time:%d/%b/%Y:%H:%M:%S %z}] "{request}" {status} {bytes} {response_time_ms}

The notation is that of `pattern.py`. A field between quotes may contain a quote only after a
backslash. A field between square brackets may contain blanks. Any other field ends at the character
that follows it in the pattern, and a referrer or an agent at the end of the pattern matches the
rest of the line. `{_}` is a column to be ignored, and may occur several times. A pattern in nginx's
notation is translated first (`nginx_notation.py`).

A line matches only if there is exactly one way to split it into these fields. If all possible ways
are put in order, the lazy match of an expression is the first of them and the greedy match is the
last. If both matches are equal, there is only one way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from barnabas.errors import ConfigError
from barnabas.similar_names import did_you_mean
from barnabas_formats.nginx_notation import field_of, is_of_nginx, translate
from barnabas_formats.pattern import TOKEN, literal_expression, time_expressions, wrong

UNITS_US: Final[Mapping[str, int]] = MappingProxyType(
    {"response_time_us": 1, "response_time_ms": 1_000, "response_time_s": 1_000_000}
)
"""The possible names of the response time field, with their units in microseconds."""
NAMES: Final = (
    *("client", "ident", "user", "time", "request", "method", "path", "query", "protocol"),
    *("status", "bytes", "referrer", "agent", "host", *UNITS_US),
)
IGNORED: Final = "_"

_NUMBER: Final = r"(?:[0-9]{1,9}(?:\.[0-9]{1,12})?|-)"
_WHOLE_NUMBER: Final = "(?:[0-9]{1,9}|-)"
_EXPRESSIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "client": r"(?:[0-9A-Za-z_.:%~-]+|\[[0-9A-Fa-f:.]+\])",
        "host": r"[0-9A-Za-z_.:\[\]-]+",
        "method": r"(?:[A-Za-z][A-Za-z0-9_-]*|-)",
        "protocol": r"(?:[A-Za-z]+/[0-9.]+|-)",
        "status": r"[0-9]{3}",
        "bytes": r"(?:[0-9]{1,18}|-)",
        **dict.fromkeys(UNITS_US, _NUMBER),
    }
)
_QUOTED: Final = r'(?:[^"\\]|\\.)*'
_BRACKETED: Final = r'[^\[\]"]*'
_WORD: Final = r'[^\s"]+'
_REST: Final = r'[^"]+'
_TAKE_THE_REST: Final = ("referrer", "agent")
_OF_REQUEST: Final = ("method", "path", "query", "protocol")
_W3C_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "date": "time:%Y-%m-%d %H:%M:%S",
        "c-ip": "client",
        "cs-username": "user",
        "cs-method": "method",
        "cs-uri-stem": "path",
        "cs-uri-query": "query",
        "cs-version": "protocol",
        "cs(user-agent)": "agent",
        "cs(referer)": "referrer",
        "cs-host": "host",
        "cs(host)": "host",
        "sc-status": "status",
        "sc-bytes": "bytes",
        "time-taken": "response_time_ms",
    }
)
_W3C_REQUIRED: Final = ("c-ip", "cs-method", "cs-uri-stem", "sc-status")
_W3C_IGNORED: Final = (
    *("s-ip", "s-port", "s-sitename", "s-computername", "cs-bytes", "cs(cookie)"),
    *("sc-substatus", "sc-win32-status"),
)
"""Other columns that IIS writes."""
_DIRECTIVE: Final = re.compile(r"\s*#?\s*fields:", re.IGNORECASE)
_EXAMPLE: Final = "{time:%d/%b/%Y:%H:%M:%S %z}"


class AccessPattern(NamedTuple):
    """Holds a compiled pattern. `groups` are the fields, in order. Ignored fields have
    other names.
    """

    regex: str
    groups: tuple[str, ...]
    time_form: str
    quoted: frozenset[str] = frozenset()
    """The fields in which a backslash escapes the next character."""
    w3c: tuple[str, ...] = ()
    """The columns of the W3C format in lower case, if the pattern was created from them. A plus
    sign in an agent then represents a blank."""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in self.groups if name in NAMES)


def compile_access_pattern(text: str) -> AccessPattern:
    """Compile a pattern. Raises `ConfigError`, which states the problem."""
    tokens = [*TOKEN.finditer(translate(text) if is_of_nginx(text) else text)]
    parts: list[str] = []
    groups: list[str] = []
    quoted: set[str] = set()
    time_form = ""
    for place, token in enumerate(tokens):
        name, form = token["name"], token["form"]
        if name is None:
            parts.append(_literal(token[0], text))
            continue
        if name in groups:
            raise wrong(text, f"{{{name}}} occurs twice")
        if form is not None and name != "time":
            raise wrong(text, f"only {{time:...}} may have a format, but {{{name}}} has one")
        if name == "time":
            time_form = form or ""
            inner = _time(time_form, text)
        else:
            inner = _expression(name, _last(tokens[:place]), _first(tokens[place + 1 :]))
        if inner == _QUOTED and name != IGNORED:
            quoted.add(name)
        group = f"{IGNORED}{place}" if name == IGNORED else name
        groups.append(group)
        parts.append(f"(?P<{group}>{inner})")
    try:
        check_names([name for name in groups if not name.startswith(IGNORED)])
    except ConfigError as error:
        raise wrong(text, str(error)) from None
    return AccessPattern(f"^{''.join(parts)}$", tuple(groups), time_form, frozenset(quoted))


def compile_w3c(text: str) -> AccessPattern:
    """Return the pattern for lines with the columns that a `#Fields:` directive lists. Raises
    `ConfigError`, which states the problem."""
    names = _DIRECTIVE.sub("", text).lower().split()
    place = names.index("date") if "date" in names else -1
    if names[place : place + 2] != ["date", "time"]:
        raise ConfigError(f"w3c: {text!r} does not have the columns date time, in this order")
    if double := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"w3c: {double[0]} occurs twice")
    if missing := [name for name in _W3C_REQUIRED if name not in names]:
        raise ConfigError(f"w3c: an access log needs {', '.join(missing)}{_typos(names, missing)}")
    fields = [_W3C_FIELDS.get(name, IGNORED) for name in names if name != "time"]
    # A host may be in any of several columns.
    first = [
        name if name == IGNORED or name not in fields[:number] else IGNORED
        for number, name in enumerate(fields)
    ]
    found = compile_access_pattern(" ".join(f"{{{name}}}" for name in first))
    # A column may contain anything but blanks.
    regex = found.regex.replace(_WORD, r"\S+").replace(_REST, r"\S+")
    # IIS writes whole milliseconds, whereas other servers write fractional seconds.
    regex = regex.replace(_NUMBER, _WHOLE_NUMBER)
    return found._replace(regex=regex, w3c=tuple(names))


def _typos(names: Sequence[str], missing: Sequence[str]) -> str:
    """Suggest known columns for unknown names."""
    known = (*_W3C_FIELDS, *_W3C_IGNORED, "time")
    hints = [
        f"; {name}: {near}"
        for name in names
        if name not in known and (near := did_you_mean(name, missing))
    ]
    return "".join(hints)


def check_names(names: Sequence[str]) -> None:
    """Check the fields of a pattern or of an object. Raises `ConfigError`, which states the
    problem."""
    if unknown := [name for name in names if name not in NAMES]:
        hints = [f"; {name}: {near}" for name in unknown if (near := _near(name))]
        known = ", ".join(NAMES)
        raise ConfigError(
            f"{', '.join(unknown)}: no such field of an access log{''.join(hints)}; the"
            f" fields are {known} (and, in a pattern, {{{IGNORED}}} for a column to be ignored)"
        )
    missing = [name for name in ("client", "time", "status") if name not in names]
    if "request" not in names:
        missing += [name for name in ("method", "path") if name not in names]
    if missing:
        hint = "; request, a whole request line, replaces method and path"
        is_request = missing[-1] in _OF_REQUEST
        raise ConfigError(f"an access log needs {', '.join(missing)}{hint if is_request else ''}")
    if "request" in names and (double := [name for name in _OF_REQUEST if name in names]):
        raise ConfigError(f"request already contains {', '.join(double)}")
    if len(times := [name for name in UNITS_US if name in names]) > 1:
        raise ConfigError(f"{', '.join(times)}: a line can have only one response time")


def _near(name: str) -> str:
    """Suggest a field for an unknown name, which may be the name of an nginx variable."""
    if field := field_of(name).partition(":")[0]:
        return f"write {field}"
    return did_you_mean(name, NAMES)


def _expression(name: str, before: str, after: str) -> str:
    """Return the expression for a field, which depends on the adjacent characters."""
    if name in _EXPRESSIONS:
        return _EXPRESSIONS[name]
    if before == after == '"':
        return _QUOTED
    if (before, after) == ("[", "]"):
        return _BRACKETED
    if not after and name in _TAKE_THE_REST:
        return _REST
    if not after or after in ' "[':
        return _WORD
    return f'[^"{re.escape(after)}]*'


def _last(tokens: Sequence[re.Match[str]]) -> str:
    """Return the literal character before a field, or an empty string."""
    return "" if not tokens or tokens[-1]["name"] else tokens[-1][0][-1]


def _first(tokens: Sequence[re.Match[str]]) -> str:
    """Return the literal character after a field, or an empty string."""
    return "" if not tokens or tokens[0]["name"] else tokens[0][0][0]


def _literal(text: str, pattern: str) -> str:
    # Polars does not accept an escaped tab.
    return literal_expression(text, pattern).replace("\\\t", "\t")


def _time(form: str, pattern: str) -> str:
    if not form:
        raise wrong(pattern, f"{{time}} has no format; add one, such as {_EXAMPLE}")
    found, _ = time_expressions(form, pattern)
    is_dated = "%d" in form and ("%Y" in form or "%y" in form)
    if not is_dated:
        raise wrong(pattern, f"an access log's time needs a year, a month and a day: {_EXAMPLE}")
    if "%Z" in form or "%z" in form.removesuffix("%z"):
        raise wrong(pattern, "an access log's time may have %z at its end, but no %Z")
    return found
