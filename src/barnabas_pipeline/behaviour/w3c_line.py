"""Parses lines in W3C's extended log format, as written by IIS and CloudFront. Pure.

    #Fields: date time s-ip cs-method ...          a directive: neither a hit nor an error
    2026-03-10 10:00:00 10.0.0.5 GET / ...         IIS: columns separated by blanks, in UTC
    2026-03-10<tab>10:00:00<tab>FRA56-P4<tab>...   CloudFront: by tabs, in UTC

Each line is parsed on its own. It may be in a different partition or batch from the directive that
precedes it in the file, and its fields must not depend on this. If the collector has not sent the
directive with the line (see `w3c_directive.py`), only the sets of columns that a program writes by
default are known. A set is recognised by its number of columns, and the value in every column must
be plausible. A `#Fields:` directive that lists any other set of columns is rejected, so that the
user notices it and can define a format with these columns.

The last of IIS's default columns, time-taken, looks like sc-bytes or cs-bytes, either of which a
site may log instead. The response time is therefore read only if both of these columns are also
present.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from barnabas_pipeline.behaviour.line_front import ADDRESS, host_without_port, is_address
from barnabas_pipeline.behaviour.line_parts import (
    UNKNOWN_COLUMNS,
    Fields,
    RejectedLine,
    client_of,
    duration_us,
    given,
    iso_moment,
    size_of,
    status_of,
)

_DIRECTIVE: Final = re.compile(
    r"#(?:Version|Fields|Software|Date|Start-Date|End-Date|Remark|GMT-Offset): ?(.*)"
)
# The column after the time: an address, a request's method, IIS's name for a site, or an edge
# location. A word such as INFO belongs to a different kind of log.
_BEGIN: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ \t])[0-9]{2}:[0-9]{2}:[0-9]{2}\1"
    rf"(?:{ADDRESS}|GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|W3SVC[0-9]+|[A-Z]{{3}}[0-9]+[-A-Z0-9]*)"
    r"\1"
)

_IIS_7: Final = (
    "date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent)"
    " sc-status sc-substatus sc-win32-status time-taken"
)
_IIS_8: Final = _IIS_7.replace("cs(User-Agent)", "cs(User-Agent) cs(Referer)")
_IIS_ALL: Final = (
    "date time s-sitename s-computername s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username"
    " c-ip cs-version cs(User-Agent) cs(Cookie) cs(Referer) cs-host sc-status sc-substatus"
    " sc-win32-status sc-bytes cs-bytes time-taken"
)
_CLOUDFRONT_ALL: Final = (
    "date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer)"
    " cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header"
    " cs-protocol cs-bytes time-taken x-forwarded-for ssl-protocol ssl-cipher"
    " x-edge-response-result-type cs-protocol-version fle-status fle-encrypted-fields c-port"
    " time-to-first-byte x-edge-detailed-result-type sc-content-type sc-content-len"
    " sc-range-start sc-range-end"
)
_CLOUDFRONT: Final = tuple(_CLOUDFRONT_ALL.split())
_CLOUDFRONT_COUNTS: Final = (24, 26, 33)  # columns have been appended over the years
_IIS: Final = {len(names.split()): tuple(names.split()) for names in (_IIS_7, _IIS_8, _IIS_ALL)}
_KNOWN: Final = {*_IIS.values(), *(_CLOUDFRONT[:count] for count in _CLOUDFRONT_COUNTS)}

_METHOD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_EDGE: Final = re.compile(r"[A-Z]{3}[0-9]{1,3}(?:-[A-Z0-9]+)?")
# A host with a port contains no slash, and a cookie contains an equals sign before any slash.
_URL_OR_NONE: Final = re.compile(r"-|(?:[A-Za-z][A-Za-z0-9+.-]*://|about:).*")
# This matches neither a host nor a cookie, which may be in the same place.
_AGENT: Final = re.compile(r"-|[^=;:/]+/.*|[A-Za-z0-9_-]+(?:\+[A-Za-z0-9_.,()-]+)+")
_VERSION: Final = re.compile(r"HTTP/[0-9.]+")
_NUMBERS: Final = (
    "s-port",
    "sc-status",
    "sc-substatus",
    "sc-win32-status",
    "sc-bytes",
    "cs-bytes",
    "time-taken",
)


def is_directive(text: str) -> bool:
    """Return whether a line is a directive. Raises `RejectedLine` if it lists unknown columns."""
    match = _DIRECTIVE.fullmatch(text)
    if match is None:
        return False
    if text.startswith("#Fields") and tuple(match[1].split()) not in _KNOWN:
        raise RejectedLine(UNKNOWN_COLUMNS)
    return True


def fits(text: str) -> bool:
    """Return whether a line begins in a way that only lines from these logs do."""
    return _BEGIN.match(text) is not None


def decode(text: str) -> Fields:
    """Return the fields of a line that `fits`. Raises `RejectedLine`."""
    columns = text.split("\t")
    if len(columns) in _CLOUDFRONT_COUNTS:
        return _cloudfront(dict(zip(_CLOUDFRONT, columns, strict=False)))
    columns = text.rstrip(" ").split(" ")
    names = _IIS.get(len(columns))
    if names is None:
        raise RejectedLine(UNKNOWN_COLUMNS)
    return _iis(dict(zip(names, columns, strict=True)))


def _iis(columns: dict[str, str]) -> Fields:
    agent, version = columns["cs(User-Agent)"], columns.get("cs-version", "-")
    is_usual = (
        is_address(columns["s-ip"])
        and (columns["c-ip"] == "-" or is_address(columns["c-ip"]))
        and columns["cs-uri-stem"][:1] in ("/", "*")
        and _METHOD.fullmatch(columns["cs-method"]) is not None
        and all(_NUMBER.fullmatch(columns[name]) for name in _NUMBERS if name in columns)
        and _URL_OR_NONE.fullmatch(columns.get("cs(Referer)", "-")) is not None
        and (version == "-" or _VERSION.fullmatch(version) is not None)
        and _VERSION.fullmatch(agent) is None
        and _AGENT.fullmatch(agent) is not None
        and not columns.get("cs-host", "-").isdecimal()
    )
    if not is_usual:
        raise RejectedLine(UNKNOWN_COLUMNS)
    agent = agent.replace("+", " ")  # columns cannot contain blanks
    if "cs-bytes" not in columns:
        columns["time-taken"] = "-"
    return _hit(columns, agent, columns["cs-uri-query"], 1_000, "iis")


def _cloudfront(columns: dict[str, str]) -> Fields:
    is_usual = (
        _EDGE.fullmatch(columns["x-edge-location"]) is not None
        and _METHOD.fullmatch(columns["cs-method"]) is not None
        and columns["cs-uri-stem"].startswith("/")
        and columns["cs-protocol"] in ("http", "https", "ws", "wss", "grpcs")
        and _NUMBER.fullmatch(columns["cs-bytes"]) is not None
    )
    if not is_usual:
        raise RejectedLine(UNKNOWN_COLUMNS)
    # Blanks are percent-encoded; in older lines, they are encoded twice.
    agent = unquote(unquote(columns["cs(User-Agent)"]).replace("%20", " "))
    return _hit(columns, agent, columns["cs-uri-query"], 1_000_000, "cloudfront")


def _hit(columns: dict[str, str], agent: str, query: str, unit_us: int, name: str) -> Fields:
    moment = iso_moment(f"{columns['date']} {columns['time']}+00:00")
    host = columns.get("x-host-header") or columns.get("cs-host") or ""
    return Fields(
        *moment,
        client_of(columns["c-ip"]),
        None,
        given(columns.get("cs-username")),
        columns["cs-method"],
        columns["cs-uri-stem"],
        given(query),
        given(columns.get("cs-version") or columns.get("cs-protocol-version")),
        status_of(columns["sc-status"]),
        size_of(columns.get("sc-bytes", "-")),
        given(columns.get("cs(Referer)")),
        given(agent),
        given(host_without_port(host)),
        duration_us(columns["time-taken"], unit_us),
        name,
    )
