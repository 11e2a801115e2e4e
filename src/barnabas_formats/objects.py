"""Decodes lines that consist of keys and values: JSON, logfmt, and the journal's export format.

Each decoder returns the object in a line, or None if the line is not an object. Pure.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

Object = dict[str, Any]

_MOST_DEPTH: Final = 100
_PAIR: Final = re.compile(
    r'(?P<key>[A-Za-z_@][\w.@/-]*)=(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s"]*))(?:\s+|$)'
)
_BARE: Final = re.compile(r"[A-Za-z_@][\w.@/-]*(?:\s+|$)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_JOURNAL_KEY: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
_FIELD: Final = re.compile(r"(?P<key>[A-Z][A-Za-z-]*): (?P<value>.*)")
_BLANKS: Final = re.compile(" +")
# The columns of PostgreSQL's csvlog, in the order used since version 14. Older versions have fewer.
_CSVLOG: Final = (
    *("log_time", "user_name", "database_name", "process_id", "connection_from", "session_id"),
    *("session_line_num", "command_tag", "session_start_time", "virtual_transaction_id"),
    *("transaction_id", "error_severity", "sql_state_code", "message", "detail", "hint"),
    *("internal_query", "internal_query_pos", "context", "query", "query_pos", "location"),
    *("application_name", "backend_type", "leader_pid", "query_id"),
)
_CSVLOG_COLUMNS: Final = range(len(_CSVLOG) - 4, len(_CSVLOG) + 1)


def json_object(line: str) -> Object | None:
    if not line.startswith("{") or line.count("{") > _MOST_DEPTH * 10:
        return None
    try:
        found = json_value(line)
    # Raised for numbers with thousands of digits, and for lists nested too deeply.
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def json_value(text: str) -> Any:
    """Return the value of JSON text. Raises `ValueError` or `RecursionError`.

    `\\xNN`, which JSON lacks, is kept as it is, because nginx writes it for some characters, and
    lines that are not UTF-8 contain it.
    """
    try:
        return json.loads(text)
    except ValueError:
        if "\\x" not in text:
            raise
        return json.loads(_ESCAPE.sub(_byte_kept, text))


def _byte_kept(match: re.Match[str]) -> str:
    return f"\\{match[0]}" if match[1].startswith("x") and len(match[1]) > 1 else match[0]


def logfmt_object(line: str) -> Object | None:
    """Return the pairs in a line, if it contains only pairs and words without a value."""
    found: Object = {}
    at = 0
    while at < len(line):
        pair = _PAIR.match(line, at)
        if pair is None:
            bare = _BARE.match(line, at)
            # A sentence is not logfmt, even if it ends with a pair.
            if bare is None or not found:
                return None
            at = bare.end()
            continue
        quoted = pair["quoted"]
        found[pair["key"]] = pair["plain"] if quoted is None else _ESCAPE.sub(_unescaped, quoted)
        at = pair.end()
    return found or None


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) == 5:
        return chr(int(escape[1:], 16))
    if len(escape) == 3:
        return match[0]  # a byte
    return _ESCAPES.get(escape, escape)


def journal_object(record: str) -> Object | None:
    """Return the fields of a journal entry. A value with several lines is preceded by its length.

    In `record`, bytes that are not UTF-8 are surrogates, because the length is in bytes.
    """
    found: Object = {}
    rest = record.encode("utf-8", "surrogateescape")
    while rest:
        line, _, rest = rest.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not line:
            continue
        key = name.decode("utf-8", "backslashreplace")
        if not _JOURNAL_KEY.fullmatch(key):
            return None
        if not equals:
            # The value's size in bytes is stored in eight little-endian bytes.
            end = 8 + int.from_bytes(rest[:8], "little")
            if len(rest) < 8 or end > len(rest):
                return None
            value, rest = rest[8:end], rest[end:].removeprefix(b"\n")
        found[key] = value.decode("utf-8", "backslashreplace")
    return found or None


def csvlog_object(record: str) -> Object | None:
    try:
        rows = list(csv.reader(io.StringIO(record, newline=""), strict=True))
    except csv.Error:
        return None
    if len(rows) != 1 or len(rows[0]) not in _CSVLOG_COLUMNS:
        return None
    return {name: value for name, value in zip(_CSVLOG, rows[0], strict=False) if value}


def paragraph_object(record: str) -> Object | None:
    """Return the fields of a Debian-style paragraph: a key, a colon and a value in each line."""
    found: Object = {}
    for line in filter(None, record.split("\n")):
        match = _FIELD.fullmatch(line)
        if match is None:
            return None
        found[match["key"]] = _BLANKS.sub(" ", match["value"])
    return found or None


def value_at(found: Mapping[str, Any], key: str) -> object:
    """Return a key's value, or `ABSENT`. A key with dots may also be a path."""
    if key in found:
        return found[key]
    head, point, rest = key.partition(".")
    while point:
        inner = found.get(head)
        if isinstance(inner, dict) and (value := value_at(inner, rest)) is not ABSENT:
            return value
        more, point, rest = rest.partition(".")
        head = f"{head}.{more}"
    return ABSENT


def first_value(found: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the first value, in the order of the keys, that is present and not null."""
    for name in names:
        value = value_at(found, name)
        if value is not ABSENT and value is not None:
            return value
    return None


ABSENT: Final = object()
JSON: Final = "json"
JOURNAL: Final = "journal-export"
DECODERS: Final[Mapping[str, Callable[[str], Object | None]]] = MappingProxyType(
    {
        JSON: json_object,
        "logfmt": logfmt_object,
        JOURNAL: journal_object,
        "postgresql-csv": csvlog_object,
        "paragraph": paragraph_object,
    }
)
OF_RECORDS: Final = frozenset({JOURNAL, "postgresql-csv", "paragraph"})
"""The names of decoders that read all lines of a record, not only the first."""
OF_BYTES: Final = frozenset({JOURNAL})
"""The names of decoders that represent bytes that are not UTF-8 as surrogates."""
BEGINNINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        JSON: r'^\{"',
        "logfmt": r"^[A-Za-z_@][A-Za-z0-9_.@/-]*=",
        JOURNAL: r"^__CURSOR=",
        "paragraph": r"^Start-Date: ",
        "postgresql-csv": r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:.]{8,15} \S{3,6},",
    }
)
"""Maps a decoder to the start of every line that it accepts."""
