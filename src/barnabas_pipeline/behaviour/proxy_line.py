"""Parses access log lines from HAProxy and Envoy in their default formats. Pure.

    [syslog's head ]10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109
        200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1"
    [2016-04-15T20:17:00.310Z] "POST /api HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "agent" "id"
        "host" "tcp://10.0.2.1:80"

HAProxy writes the local time without a zone, so it is read as UTC. Envoy logs the client only in
the X-Forwarded-For header, whose first address is the visitor's. If the header is missing, the line
has no client.
"""

from __future__ import annotations

import re
from typing import Final

from barnabas_pipeline.behaviour.line_front import host_without_port
from barnabas_pipeline.behaviour.line_parts import (
    QUOTED,
    UNKNOWN_COLUMNS,
    Fields,
    RejectedLine,
    checked_clf_moment,
    checked_request,
    client_of,
    client_without_port,
    given,
    iso_moment,
    size_of,
    status_of,
)

_ISO: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:Z|[+-][0-9:]{5,6})"
_SYSLOG: Final = (
    rf"(?:<[0-9]{{1,3}}>1? ?)?(?:[A-Z][a-z]{{2}} [ 0-9][0-9] [0-9:]{{8}}|{_ISO}) (?:[^ \[\]]+ )?"
)
_PROGRAM: Final = (  # as in RFC 3164, and with number, message id and data as in RFC 5424
    r"[A-Za-z0-9_.-]*haproxy[A-Za-z0-9_.-]*(?:\[[0-9]+\]:|:| [0-9]+ [^ ]+ (?:-|\[[^\]]*\])) "
)
_HAPROXY_HEAD: Final = re.compile(
    rf"(?:(?:{_SYSLOG})?{_PROGRAM})?([0-9A-Fa-f.:\[\]]+:[0-9]+) "
    r"\[([0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9:]{8})\.([0-9]{3})\] "
)
_HAPROXY: Final = re.compile(
    r"[^ ]+ [^ /]+/[^ ]+ "
    r"-?[0-9]+/-?[0-9]+/-?[0-9]+/-?[0-9]+/(\+?-?[0-9]+) "
    r"(-?[0-9]+) \+?([0-9]+) [^ ]+ [^ ]+ [^ ]{4} "
    r"[0-9]+/[0-9]+/[0-9]+/[0-9]+/\+?[0-9]+ [0-9]+/[0-9]+ "
    r'(?:\{[^"]*\} ){0,2}"([^"]*)"(?: [^"]*)?'
)
_ENVOY_HEAD: Final = re.compile(r"\[([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z)\] \"")
_ENVOY: Final = re.compile(
    rf"{QUOTED} ([0-9]{{1,3}}) (?:-|[A-Za-z,]+) ([0-9]+) ([0-9]+) ([0-9]+|-) (?:[0-9]+|-)"
    rf" {QUOTED} {QUOTED} {QUOTED} {QUOTED} {QUOTED}"
)


def fits(text: str) -> bool:
    """Return whether a line begins in a way that only lines from these programs do."""
    if text[0] == "[":
        return _ENVOY_HEAD.match(text) is not None
    # Of the programs that write such a time, only HAProxy adds fractions of a second.
    return _HAPROXY_HEAD.match(text) is not None


def decode(text: str) -> Fields:
    """Return the fields of a line that `fits`. Raises `RejectedLine`."""
    return _envoy(text) if text[0] == "[" else _haproxy(text)


def _haproxy(text: str) -> Fields:
    head = _HAPROXY_HEAD.match(text)
    match = _HAPROXY.fullmatch(text, head.end()) if head else None
    if head is None or match is None:
        raise RejectedLine(UNKNOWN_COLUMNS)
    address, stamp, fraction = head.groups()
    total, status_text, size, line = match.groups()
    client = client_without_port(address)
    time_us, offset_minutes = checked_clf_moment(f"{stamp} +0000")
    status = status_of(status_text)
    request = checked_request(line, status)
    return Fields(
        time_us + int(fraction) * 1_000,
        offset_minutes,
        client,
        None,
        None,
        *request[:4],
        status,
        size_of(size),
        None,
        None,
        request.host,
        # With a plus, the total ends at the headers (`option logasap`). It is -1 if the client was
        # lost.
        int(total) * 1_000 if total.isdecimal() and len(total) < 12 else None,
        "haproxy",
    )


def _envoy(text: str) -> Fields:
    head = _ENVOY_HEAD.match(text)
    match = _ENVOY.fullmatch(text, head.end() - 1) if head else None
    if head is None or match is None:
        raise RejectedLine(UNKNOWN_COLUMNS)
    line, status_text, _, sent, duration, forwarded, agent, _, host, _ = match.groups()
    moment = iso_moment(head[1])
    client = client_of(forwarded.partition(",")[0].strip(" "))
    status = status_of(status_text)
    request = checked_request(line, status)
    return Fields(
        *moment,
        client,
        None,
        None,
        *request[:4],
        status,
        size_of(sent),
        None,
        given(agent.replace('\\"', '"')),
        given(host_without_port(host)),
        int(duration) * 1_000 if duration.isdecimal() and len(duration) < 12 else None,
        "envoy",
    )
