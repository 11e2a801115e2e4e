"""Implements the part of HTTP/1.1 that tests need: requests and responses with JSON objects."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

MOST_HEAD_BYTES: Final = 8192
MOST_BODY_BYTES: Final = 65_536
LONGEST_S: Final = 10.0
"""The time limit for receiving a request."""

_REQUEST_LINE = re.compile(r"([A-Z]+) ([!-~]+) HTTP/1\.[01]")
_JSON = "application/json"
_HERE = ("127.0.0.1", "localhost", "[::1]")


class Request(NamedTuple):
    """A request. `path` is the path split into its parts, and `body` is the JSON object, or empty
    if there is no body."""

    method: str
    path: tuple[str, ...]
    query: Mapping[str, str]
    body: dict[str, Any]


class Answer(NamedTuple):
    """A response with a status and a JSON object.

    `allow` lists the allowed methods for status 405.
    """

    status: int
    body: dict[str, Any]
    allow: str = ""

    def encode(self) -> bytes:
        body = json.dumps(self.body).encode() + b"\n"
        allow = f"Allow: {self.allow}\r\n" if self.allow else ""
        head = (
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}\r\n"
            f"Content-Type: {_JSON}\r\nContent-Length: {len(body)}\r\n"
            f"Connection: close\r\n{allow}\r\n"
        )
        return head.encode() + body


class Refused(Exception):
    """Raised to respond with an error."""

    def __init__(self, status: int, reason: str, allow: str = "") -> None:
        super().__init__(reason)
        self.answer = Answer(status, {"error": reason}, allow)


async def read_request(reader: asyncio.StreamReader) -> Request:
    """Read the next request. Raises Refused."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise Refused(431, f"the head is longer than {MOST_HEAD_BYTES} bytes") from None
    except asyncio.IncompleteReadError:
        raise Refused(
            400, "not an HTTP request: the connection ended before the end of the head"
        ) from None
    line, *rest = head.decode("latin-1").split("\r\n")
    found = _REQUEST_LINE.fullmatch(line)
    if found is None:
        raise Refused(400, "not an HTTP request: its first line is not 'METHOD /path HTTP/1.1'")
    fields = {name.strip().lower(): value.strip() for name, _, value in map(_divide, rest)}
    _check_origin(fields)
    target = urlsplit(found[2])
    path = tuple(part for part in target.path.split("/") if part)
    return Request(found[1], path, dict(parse_qsl(target.query)), await _body(reader, fields))


def _check_origin(fields: Mapping[str, str]) -> None:
    """Reject requests from a page in a browser, even after DNS rebinding, in which the name of the
    page's server is changed to point to this machine, so that the browser mistakes this server for
    that one. Raises Refused.
    """
    host = fields.get("host")
    if host is not None and _name(host) not in _HERE:
        raise Refused(403, f"Host: {host[:80]!r} is not this machine: use 127.0.0.1 or localhost")
    origin = fields.get("origin")
    if origin is not None and _name(origin.partition("://")[2]) not in _HERE:
        raise Refused(403, f"Origin: {origin[:80]!r}: a page from another server may not send this")


def _name(host: str) -> str:
    """Return the host without its port, in lower case."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).lower()


def _divide(line: str) -> tuple[str, str, str]:
    return line.partition(":")


async def _body(reader: asyncio.StreamReader, fields: Mapping[str, str]) -> dict[str, Any]:
    # No test client needs chunks, and supporting a second way to end a body would invite errors.
    if "transfer-encoding" in fields:
        raise Refused(411, "send the body with Content-Length, not in chunks")
    length = fields.get("content-length", "0")
    if not length.isascii() or not length.isdigit():
        raise Refused(400, f"Content-Length: {length[:40]!r} is not a number")
    if int(length) > MOST_BODY_BYTES:
        raise Refused(413, f"the body is longer than {MOST_BODY_BYTES} bytes")
    if not int(length):
        return {}
    # A web page can send forms to other origins, but not JSON (CORS preflight).
    if fields.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
        raise Refused(415, f"send the body with Content-Type: {_JSON}")
    try:
        body = json.loads(await reader.readexactly(int(length)))
    except asyncio.IncompleteReadError:
        raise Refused(400, "the body is shorter than its Content-Length") from None
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise Refused(400, f"the body must be a JSON object, not {type(body).__name__}")
    return body
