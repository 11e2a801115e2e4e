"""Defines the fields of a hit, and reads the parts common to several formats. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from barnabas_pipeline.behaviour.line_front import host_without_port, is_address, is_client

NO_VALUE: Final = "no value"
TOO_LONG: Final = "too long"
EMPTY: Final = "empty line"
CONTROL_CHARACTER: Final = "control character"
UNBALANCED_QUOTES: Final = "unbalanced quotes"
NOT_AN_ACCESS_LOG: Final = "not an access log line"
BROKEN_JSON: Final = "broken JSON"
UNKNOWN_COLUMNS: Final = "columns that differ from those of the format that the line begins with"
VIRTUAL_HOST: Final = "a virtual host or a second address first, so the client is unclear"
BAD_CLIENT: Final = "a client that is no address or host name, or unclear columns before the time"
NO_CLIENT: Final = "no client"
MORE_COLUMNS: Final = "unclear columns after the status"
BAD_TIME: Final = "bad time"
BAD_REQUEST: Final = "bad request"
BAD_STATUS: Final = "bad status"
BAD_SIZE: Final = "bad size"

REASONS: Final = (
    NO_VALUE,
    TOO_LONG,
    EMPTY,
    CONTROL_CHARACTER,
    UNBALANCED_QUOTES,
    NOT_AN_ACCESS_LOG,
    BROKEN_JSON,
    UNKNOWN_COLUMNS,
    VIRTUAL_HOST,
    BAD_CLIENT,
    NO_CLIENT,
    MORE_COLUMNS,
    BAD_TIME,
    BAD_REQUEST,
    BAD_STATUS,
    BAD_SIZE,
)

DIRECTIVE: Final = "directive"
"""The result of `parse_line` for lines such as `#Version: 1.0`, which are neither hits nor errors.
"""

WITHOUT_AGENT: Final = ("common", "vhost_common", "haproxy")
"""Formats without an agent column."""

QUOTED: Final = r'"((?:[^"\\]|\\.)*)"'
"""Matches a text in quotes, in which a backslash escapes the next character."""

# The rule was defined with Java's `$`, which also matches before a final line terminator.
_END: Final = r"(?:\r\n|[\n\r\x85\u2028\u2029])?"
_METHOD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*" + _END)
_ORIGIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?([^/?#]*)")
_STATUS: Final = re.compile(r"([0-9]{3})(?:\r\n|[\n\r])?")
_SIZE: Final = re.compile(r"([0-9]{1,18})(?:\r\n|[\n\r])?")
_CLF_TIME: Final = re.compile(
    r"([0-9]{2})/([A-Za-z]{3})/([0-9]{4}):([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r" ([+-])([0-9]{2})([0-9]{2})"
)
_NEAR_CLF_TIME: Final = re.compile(
    r"([0-9]{1,2})(/[A-Za-z]{3}/[0-9]{4}:[0-9:]{8})(?:[.,]([0-9]{1,9}))?"
    r" (?:([+-][0-9]{2}):?([0-9]{2})|Z|UTC|GMT)"
)
_ISO_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
    r"(?:Z|[+-][0-9]{2}:?[0-9]{2})"
)
_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_LARGEST_OFFSET_MINUTES: Final = 18 * 60
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MINUTE: Final = timedelta(minutes=1)
_DECIMAL: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,12})?(?:[eE]-?[0-9]{1,2})?")
_KEPT_MOMENTS: Final = 4_096
_LONGEST_US: Final = 10**15


class Fields(NamedTuple):
    """The fields of a valid line. A field is None if the log contains "-" or lacks the column."""

    time_us: int  # since the epoch, UTC
    utc_offset_minutes: int
    client: str
    ident: str | None
    user: str | None
    method: str | None
    path: str | None
    query: str | None
    protocol: str | None
    status: int
    bytes: int | None
    referrer: str | None
    agent: str | None
    virtual_host: str | None = None  # without its port
    response_time_us: int | None = None
    format: str = "combined"


class Request(NamedTuple):
    """The parts of a request line. `host` is set only if the target is a whole URL. All parts are
    None if the line is not a request."""

    method: str | None = None
    path: str | None = None
    query: str | None = None
    protocol: str | None = None
    host: str | None = None


class RejectedLine(ValueError):
    """A line is invalid; the argument is one of `REASONS`."""

    @property
    def reason(self) -> str:
        return str(self.args[0])


def as_is(text: str) -> str:
    return text


def request_of(text: str, unmasked: Callable[[str], str] = as_is) -> Request | None:
    """Return the parts of a request line, or None if it is not a request."""
    words = text.split(" ")
    # HTTP/0.9 lines have no protocol, and careless clients send targets with blanks.
    has_protocol = len(words) > 2 and words[-1].startswith("HTTP/")
    target = " ".join(words[1:-1] if has_protocol else words[1:])
    if not target or not _METHOD.fullmatch(words[0]):
        return None
    path, query, host = target_of(target, unmasked)
    return Request(words[0], path, query, words[-1] if has_protocol else None, host)


def checked_request(text: str, status: int) -> Request:
    """Return the parts of a request line. All parts are None if the server could not parse the
    request.

    A server answers an unparsable request with an error. If the response is not an error, the log
    is damaged.
    """
    request = request_of(text)
    if request is None and status < 400:
        raise RejectedLine(BAD_REQUEST)
    return request or Request()


def target_of(
    target: str, unmasked: Callable[[str], str] = as_is
) -> tuple[str, str | None, str | None]:
    """Return the path, query and host of a request target."""
    # A request to a proxy contains the whole URL, in which an empty path means the root (RFC 9112,
    # 3.2.1).
    origin = _ORIGIN.match(target)
    path, mark, query = target[origin.end() if origin else 0 :].partition("?")
    return (
        unmasked(path) if path else "/",
        unmasked(query) if mark else None,
        host_without_port(origin[1]) or None if origin else None,
    )


def status_of(text: str) -> int:
    """Return the status. Raises `RejectedLine`."""
    match = _STATUS.fullmatch(text)
    status = int(match[1]) if match else 0
    if not 100 <= status <= 599:
        raise RejectedLine(BAD_STATUS)
    return status


def size_of(text: str) -> int | None:
    """Return the size, or None for a hyphen. Raises `RejectedLine`."""
    match = _SIZE.fullmatch(text)
    if match is None and text != "-":
        raise RejectedLine(BAD_SIZE)
    return int(match[1]) if match else None


def client_of(text: str) -> str:
    """Return the client. Raises `RejectedLine` unless it is an address or a host name."""
    if text in ("", "-"):
        raise RejectedLine(NO_CLIENT)
    if not is_client(text):
        raise RejectedLine(BAD_CLIENT)
    return text


def client_without_port(text: str) -> str:
    """Return the address in `address:port`; an IPv6 address may be in brackets."""
    address, _, port = text.rpartition(":")
    bare = address.removeprefix("[").removesuffix("]")
    if not (port.isascii() and port.isdigit() and is_address(bare)):
        raise RejectedLine(NO_CLIENT if text in ("", "-") else BAD_CLIENT)
    return bare


def given(text: str | None) -> str | None:
    """Return the text, or None if it denotes a missing value."""
    return None if text in (None, "", "-") else text


def duration_us(text: str, unit_us: int) -> int | None:
    """Convert a number of units to microseconds, or return None if the text is not a number, or the
    number is negative or too large."""
    if not _DECIMAL.fullmatch(text):
        return None
    found = round(float(text) * unit_us)
    return found if found < _LONGEST_US else None


@lru_cache(_KEPT_MOMENTS)  # all hits within a second have the same time
def clf_moment(text: str) -> tuple[int, int] | None:
    """Return microseconds since the epoch and the UTC offset in minutes, or None if the time does
    not exist or is outside the years 1 to 9999."""
    match = _CLF_TIME.fullmatch(text)
    if match is None:
        return None
    day, month, year, hour, minute, second, sign, hours, minutes = match.groups()
    offset_minutes = int(f"{sign}1") * (int(hours) * 60 + int(minutes))
    if int(minutes) > 59 or abs(offset_minutes) > _LARGEST_OFFSET_MINUTES:
        return None
    number = _MONTHS.get(month.lower(), 0)
    is_leap = second == "60"
    try:
        clock = datetime.combine(
            date(int(year), number, int(day)),
            # Python's times lack second 60; a leap second is added below.
            time(int(hour), int(minute), 59 if is_leap else int(second)),
            UTC,
        )
        utc = clock - timedelta(minutes=offset_minutes)
        if is_leap:
            # As in POSIX, a leap second counts as the next second; it occurs only at the end of a
            # UTC day.
            if utc.time() != time(23, 59, 59):
                return None
            utc += timedelta(seconds=1)
    except (ValueError, OverflowError):
        return None
    return (utc - _EPOCH) // _MICROSECOND, offset_minutes


def access_moment(text: str) -> tuple[int, int] | None:
    """Return microseconds since the epoch and the UTC offset in minutes of a time in the Common Log
    Format, or of a time that differs from it without being ambiguous, or None if there is none.

    Such times have a day with one digit, a fraction of a second, or a colon in the offset, or are
    in UTC, or are ISO times with a zone, such as nginx's `$time_iso8601`.
    """
    moment = clf_moment(text)
    if moment is not None:
        return moment
    match = _NEAR_CLF_TIME.fullmatch(text)
    if match is None:
        try:
            return iso_moment(text)
        except RejectedLine:
            return None
    day, rest, fraction, hours, minutes = match.groups()
    moment = clf_moment(f"{day:0>2}{rest} {hours or '+00'}{minutes or '00'}")
    if moment is None:
        return None
    return moment[0] + int((fraction or "").ljust(6, "0")[:6]), moment[1]


def checked_clf_moment(text: str) -> tuple[int, int]:
    found = clf_moment(text)
    if found is None:
        raise RejectedLine(BAD_TIME)
    return found


def iso_moment(text: str) -> tuple[int, int]:
    """Convert an ISO 8601 time with a zone to microseconds since the epoch and its offset from UTC
    in minutes. Raises `RejectedLine`."""
    if not _ISO_TIME.fullmatch(text):
        raise RejectedLine(BAD_TIME)
    try:
        at = datetime.fromisoformat(text)
        offset = at.utcoffset() or timedelta()
        if abs(offset) > _LARGEST_OFFSET_MINUTES * _MINUTE:
            raise RejectedLine(BAD_TIME)
        return (at - _EPOCH) // _MICROSECOND, offset // _MINUTE
    except (ValueError, OverflowError):
        raise RejectedLine(BAD_TIME) from None


def month_number(name: str) -> int:
    """Return the number of the month with this English abbreviation, or 0 if there is none."""
    return _MONTHS.get(name.lower(), 0)
