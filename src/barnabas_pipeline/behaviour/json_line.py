"""Parses an access log line that is a JSON object. Pure.

Three programs write such lines, each with its own keys:

    nginx     remote_addr, and status with request or request_method (`log_format ... escape=json`)
    Caddy     an object `request` with remote_ip
    Traefik   ClientHost and DownstreamStatus

The keys that nginx writes are chosen by the site's owner. They are usually named after nginx's
variables, and only these names are recognised. Any other object is not considered an access log
line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Final

from barnabas_formats.objects import json_value
from barnabas_pipeline.behaviour.line_front import host_without_port
from barnabas_pipeline.behaviour.line_parts import (
    BAD_REQUEST,
    BAD_TIME,
    BROKEN_JSON,
    NOT_AN_ACCESS_LOG,
    Fields,
    RejectedLine,
    Request,
    checked_clf_moment,
    checked_request,
    client_of,
    client_without_port,
    duration_us,
    given,
    iso_moment,
    size_of,
    status_of,
    target_of,
)

Object = Mapping[str, object]

_ISO_KEYS: Final = ("time_iso8601", "@timestamp", "timestamp", "time")
_CLF_KEYS: Final = ("time_local", "time")
_HOST_KEYS: Final = ("host", "http_host", "server_name")
# The limits below which a number means seconds, milliseconds, microseconds and nanoseconds since
# the epoch, respectively. Each unit covers the years 1973 to 5138.
_UNITS_US: Final = ((1e11, 1e6), (1e14, 1e3), (1e17, 1.0), (1e20, 1e-3))
_EARLIEST: Final = 1e8
_NUMBER: Final = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,9})?")
_GO_DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ns|us|µs|μs|ms|s|m|h)")
_GO_UNITS_US: Final = {
    "ns": 1e-3,
    "us": 1.0,
    "µs": 1.0,
    "μs": 1.0,
    "ms": 1e3,
    "s": 1e6,
    "m": 6e7,
    "h": 3.6e9,
}


def decode(text: str) -> Fields:
    """Return the fields of a line that begins with a brace. Raises `RejectedLine`."""
    found = object_in(text)
    if "ClientHost" in found and "DownstreamStatus" in found:
        return _traefik(found)
    request = found.get("request")
    if isinstance(request, dict) and "status" in found and _has(request, "method", "uri"):
        return _caddy(found, request)
    if "remote_addr" in found and "status" in found:
        return _nginx(found)
    raise RejectedLine(NOT_AN_ACCESS_LOG)


def object_in(text: str) -> Object:
    """Return the JSON object in a line. Raises `RejectedLine`."""
    try:
        found = json_value(text)
        if "\\u" in text:
            # Half a surrogate pair is not text; no table can store it.
            json.dumps(found, ensure_ascii=False).encode()
    # Also reject numbers with thousands of digits, and lists nested a thousand deep.
    except (ValueError, RecursionError):
        raise RejectedLine(BROKEN_JSON) from None
    if not isinstance(found, dict):
        raise RejectedLine(NOT_AN_ACCESS_LOG)
    return found


def _nginx(found: Object) -> Fields:
    client = client_of(_text(found, "remote_addr"))
    moment = _nginx_moment(found)
    status = status_of(_text(found, "status"))
    request = _nginx_request(found, status)
    host = next((_text(found, key) for key in _HOST_KEYS if given(_text(found, key))), "")
    return Fields(
        *moment,
        client,
        None,
        given(_text(found, "remote_user")),
        *request[:4],
        status,
        size_of(_text(found, "body_bytes_sent") or _text(found, "bytes_sent") or "-"),
        given(_text(found, "http_referer") or _text(found, "http_referrer")),
        given(_text(found, "http_user_agent")),
        given(host_without_port(host)),
        duration_us(_text(found, "request_time"), 1_000_000),
        "nginx_json",
    )


def _nginx_moment(found: Object) -> tuple[int, int]:
    for keys, reader in ((_ISO_KEYS, iso_moment), (_CLF_KEYS, checked_clf_moment)):
        for key in keys:
            # The value of the key `time` may have either of these forms.
            text = _text(found, key)
            if text and (key != "time" or (text[4:5] == "-") == (reader is iso_moment)):
                return reader(text)
    return epoch_us(_text(found, "msec")), 0


def _nginx_request(found: Object, status: int) -> Request:
    line = _text(found, "request")
    if line or "request" in found:
        return checked_request(line, status)
    method = _text(found, "request_method")
    target = _text(found, "request_uri") or _text(found, "uri")
    if not (method and target):
        if "request_method" in found and status >= 400:
            return Request()
        raise RejectedLine(BAD_REQUEST)
    path, query, host = target_of(target)
    arguments = _text(found, "args") or _text(found, "query_string")
    return Request(
        method, path, query or given(arguments), given(_text(found, "server_protocol")), host
    )


def _caddy(found: Object, request: Object) -> Fields:
    # `client_ip` is the client behind trusted proxies; early versions wrote address and port.
    address = _text(request, "client_ip") or _text(request, "remote_ip")
    client = client_of(address) if address else client_without_port(_text(request, "remote_addr"))
    stamp = _text(found, "ts")
    moment = (epoch_us(stamp), 0) if _NUMBER.fullmatch(stamp) else iso_moment(stamp)
    path, query, _ = target_of(_text(request, "uri") or "/")
    headers = request.get("headers")
    return Fields(
        *moment,
        client,
        None,
        given(_text(found, "user_id")),
        _text(request, "method"),
        path,
        query,
        given(_text(request, "proto")),
        status_of(_text(found, "status")),
        size_of(_text(found, "size") or "-"),
        _header(headers, "Referer"),
        _header(headers, "User-Agent"),
        given(host_without_port(_text(request, "host"))),
        _caddy_duration(found.get("duration")),
        "caddy",
    )


def _caddy_duration(found: object) -> int | None:
    """Convert a number of seconds, or a string such as "1.2ms", to microseconds."""
    if isinstance(found, str) and (match := _GO_DURATION.fullmatch(found)):
        return round(float(match[1]) * _GO_UNITS_US[match[2]])
    return duration_us(text_of(found), 1_000_000)


def _traefik(found: Object) -> Fields:
    start = _text(found, "StartUTC") or _text(found, "StartLocal") or _text(found, "time")
    status = status_of(_text(found, "DownstreamStatus"))
    path, query, _ = target_of(_text(found, "RequestPath") or "/")
    duration = _text(found, "Duration")  # nanoseconds
    return Fields(
        *iso_moment(start),
        client_of(_text(found, "ClientHost")),
        None,
        given(_text(found, "ClientUsername")),
        given(_text(found, "RequestMethod")),
        path,
        query,
        given(_text(found, "RequestProtocol")),
        status,
        size_of(_text(found, "DownstreamContentSize") or "-"),
        given(_text(found, "request_Referer")),
        given(_text(found, "request_User-Agent")),
        given(host_without_port(_text(found, "RequestHost"))),
        int(duration) // 1_000 if duration.isdecimal() and len(duration) < 19 else None,
        "traefik_json",
    )


def is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def epoch_us(text: str) -> int:
    """Convert a number to microseconds since the epoch. The unit is inferred from the size of the
    number.
    """
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    for limit, unit_us in _UNITS_US:
        if _EARLIEST <= number < limit:
            return round(number * unit_us)
    raise RejectedLine(BAD_TIME)


def _has(found: Object, *names: str) -> bool:
    return all(name in found for name in names)


def _text(found: Object, name: str) -> str:
    """Return a value as text, or an empty string if the value is missing, or is neither text nor a
    number."""
    return text_of(found.get(name))


def text_of(value: object) -> str:
    """Return a value as text, or an empty string if the value is neither text nor a number."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return ""


def _header(headers: object, name: str) -> str | None:
    """Return the first value of a header, which may be a list of values."""
    values = headers.get(name) if isinstance(headers, dict) else None
    first = values[0] if isinstance(values, list) and values else values
    return given(first) if isinstance(first, str) else None
