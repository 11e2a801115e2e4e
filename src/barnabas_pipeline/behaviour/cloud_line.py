"""Parses access log lines from AWS's Application Load Balancer and from S3. Pure.

    https 2018-07-02T22:23:00.186641Z app/lb/50dc6 192.0.2.7:2817 10.0.0.1:80 0.086 0.048 0.037
        200 200 0 57 "GET https://www.example.com:443/ HTTP/1.1" "agent" cipher protocol arn ...
    owner bucket [06/Feb/2019:00:00:38 +0000] 192.0.2.3 requester id REST.GET.OBJECT key
        "GET /key HTTP/1.1" 200 - 113 - 7 - "referrer" "agent" ...

Each format is identified by its first columns. The load balancer logs whole URLs, which contain the
virtual host, and three times, whose sum is the response time. In lines from S3, the user is the
requester.
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
    duration_us,
    given,
    iso_moment,
    size_of,
    status_of,
)

_ALB_HEAD: Final = re.compile(
    r"(?:https?|h2|grpcs?|wss?) ([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{1,9}Z) [^ ]+ "
)
_ALB: Final = re.compile(
    r"([^ ]+) (?:[^ ]+:[0-9]+|-) (-1|[0-9.]+) (-1|[0-9.]+) (-1|[0-9.]+)"
    rf" ([0-9]+|-) (?:[0-9]+|-) [0-9]+ ([0-9]+) {QUOTED} {QUOTED} [^ ]+ [^ ]+(?: .*)?"
)
_S3_HEAD: Final = re.compile(
    r"(?:[0-9a-f]{64}|-) [a-z0-9][a-z0-9.-]{1,61}[a-z0-9] "
    r"\[([0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9:]{8} [+-][0-9]{4})\] "
)
_S3: Final = re.compile(
    r"([^ ]+) ([^ ]+) [^ ]+ ([A-Z][A-Z0-9_.]*) [^ ]+ "
    rf"(?:{QUOTED}|-) ([0-9]+|-) [^ ]+ ([0-9]+|-) (?:[0-9]+|-) ([0-9]+|-) (?:[0-9]+|-)"
    rf" (?:{QUOTED}|-) (?:{QUOTED}|-)(?: [^ ]+(?: [^ ]+(?: [^ ]+(?: [^ ]+(?: [^ ]+"
    r"(?: ([^ ]+) .*| [^ ]+)?)?)?)?)?)?"
)


def fits(text: str) -> bool:
    """Return whether a line begins in a way that only lines from these logs do."""
    return _ALB_HEAD.match(text) is not None or _S3_HEAD.match(text) is not None


def decode(text: str) -> Fields:
    """Return the fields of a line that `fits`. Raises `RejectedLine`."""
    head = _ALB_HEAD.match(text)
    return _alb(text, head) if head else _s3(text)


def _alb(text: str, head: re.Match[str]) -> Fields:
    match = _ALB.fullmatch(text, head.end())
    if match is None:
        raise RejectedLine(UNKNOWN_COLUMNS)
    address, *times, status_text, sent, line, agent = match.groups()
    moment = iso_moment(head[1])
    client = client_without_port(address)
    status = status_of(status_text)
    # For an invalid request, the balancer writes `- http://host:80- -`.
    request = checked_request(line, status)
    parts = [duration_us(time, 1_000_000) for time in times]
    known = [part for part in parts if part is not None]
    return Fields(
        *moment,
        client,
        None,
        None,
        *request[:4],
        status,
        size_of(sent),
        None,
        given(_unescaped(agent)),
        request.host,
        # A time is -1 if the balancer could not send the request, or the connection was lost.
        sum(known) if len(known) == len(parts) else None,
        "aws_alb",
    )


def _s3(text: str) -> Fields:
    head = _S3_HEAD.match(text)
    match = _S3.fullmatch(text, head.end()) if head else None
    if head is None or match is None:
        raise RejectedLine(UNKNOWN_COLUMNS)
    address, requester, _, line, status_text, sent, total_ms, referrer, agent, host = match.groups()
    moment = checked_clf_moment(head[1])
    client = client_of(address)
    status = status_of(status_text)
    request = checked_request(line or "", status)
    return Fields(
        *moment,
        client,
        None,
        given(requester),
        *request[:4],
        status,
        size_of(sent),
        given(_unescaped(referrer or "")),
        given(_unescaped(agent or "")),
        given(host_without_port(host or "")),
        duration_us(total_ms, 1_000),
        "aws_s3",
    )


def _unescaped(text: str) -> str:
    return text.replace('\\"', '"').replace("\\\\", "\\")
