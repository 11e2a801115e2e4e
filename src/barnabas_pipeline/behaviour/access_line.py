"""Parses a line of an access log: the Combined Log Format, and the Common one it extends. Pure.

    client ident user [10/Oct/2000:13:55:36 -0700] "GET /a?b=c HTTP/1.0" 200 2326 "referrer" "agent"
    '------------- head ---------------------------'                    'answer -'

`line_front.py` reads the columns before the time, which may include a virtual host. More columns
may follow the agent: the address in `X-Forwarded-For`, as in the format of nginx's own package,
times and so on. They are ignored if it is certain that the columns before them are the usual ones.

Inside quotes a server writes `\\"` for a quote and `\\\\` for a backslash. Both pairs are masked by
one control character each, after which a line is simply split at its quotes: no pattern has to
handle escapes, and none backtracks, however long or hostile a line is. Pieces are split again at
their blanks, from both ends, because users and targets may contain blanks.

A line is valid, or has the first `reason` that applies. Malformed requests are not the log's fault:
a request that a server could not parse (and answered with 4xx or 5xx) is a valid line without
method and path.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple

from barnabas_pipeline.behaviour.line_front import front, has_host_in_front

NO_VALUE: Final = "no value"
TOO_LONG: Final = "too long"
NOT_UTF8: Final = "not UTF-8"
EMPTY: Final = "empty line"
CONTROL_CHARACTER: Final = "control character"
UNBALANCED_QUOTES: Final = "unbalanced quotes"
NOT_AN_ACCESS_LOG: Final = "not an access log line"
VIRTUAL_HOST: Final = "a virtual host or a second address in front, and unclear which is the client"
BAD_CLIENT: Final = "a client that is no address or host name, or unclear columns before the time"
MORE_COLUMNS: Final = "unclear columns behind the status"
BAD_TIME: Final = "bad time"
BAD_REQUEST: Final = "bad request"
BAD_STATUS: Final = "bad status"
BAD_SIZE: Final = "bad size"

REASONS: Final = (
    NO_VALUE,
    TOO_LONG,
    NOT_UTF8,
    EMPTY,
    CONTROL_CHARACTER,
    UNBALANCED_QUOTES,
    NOT_AN_ACCESS_LOG,
    VIRTUAL_HOST,
    BAD_CLIENT,
    MORE_COLUMNS,
    BAD_TIME,
    BAD_REQUEST,
    BAD_STATUS,
    BAD_SIZE,
)

_MASKED_BACKSLASH: Final = "\x01"
_MASKED_QUOTE: Final = "\x02"

# Java's `$`, which defined this rule, also matches before a final line terminator.
_END: Final = r"(?:\r\n|[\n\r\x85\u2028\u2029])?"
_CONTROL: Final = re.compile(r"[\x00-\x08\x0B\x0C\x0E-\x1F\x7F]")
_METHOD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*" + _END)
_ORIGIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")
_STATUS: Final = re.compile(r"([0-9]{3})(?:\r\n|[\n\r])?")
_SIZE: Final = re.compile(r"([0-9]{1,18})(?:\r\n|[\n\r])?")
_TIME: Final = re.compile(
    r"([0-9]{2})/([A-Za-z]{3})/([0-9]{4}):([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r" ([+-])([0-9]{2})([0-9]{2})"
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

# Pieces of a line split at its quotes: head, request, answer (, referrer, a blank, agent, more).
_COMMON_PIECES: Final = 3
_COMBINED_PIECES: Final = 7

URL: Final = r"^[A-Za-z][A-Za-z0-9+.-]*://"
"""A referrer may begin like this; an agent hardly ever does."""
_URL: Final = re.compile(URL)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PLAIN: Final = re.compile(r"(?:[-0-9A-Fa-f.:,; ]|unknown)*")
_DURATION: Final = re.compile(r"[0-9]+\.[0-9]+")
_LINE_BEGAN: Final = re.compile(r"\[[0-9]{2}/[A-Za-z]{3}/[0-9]{4}:")


class Fields(NamedTuple):
    """The fields of a valid line; None stands for "-" in the log."""

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


def parse_line(value: bytes | None, *, is_cut: bool = False) -> Fields | str:
    """Return the fields of a line without its line feed, or the reason (from `REASONS`) why it is
    invalid.

    `is_cut`: the value is only the beginning of a longer line.
    """
    if value is None:
        return NO_VALUE
    if is_cut:
        return TOO_LONG
    try:
        # Programs on Windows end lines with CR LF, of which the line feed is gone.
        text = value.rstrip(b"\r").decode()
    except UnicodeDecodeError:
        return NOT_UTF8
    if not text.strip(" "):
        return EMPTY
    if _CONTROL.search(text):
        return CONTROL_CHARACTER
    # Pairs of backslashes first: a quote behind such a pair is not escaped.
    masked = text.replace("\\\\", _MASKED_BACKSLASH).replace('\\"', _MASKED_QUOTE)
    pieces = masked.split('"')
    # Quotes come in pairs, so there is always one more piece.
    if len(pieces) % 2 == 0:
        return UNBALANCED_QUOTES
    return _of_pieces(pieces)


def _of_pieces(pieces: list[str]) -> Fields | str:
    pieces = _with_plain_user(pieces)
    is_combined = len(pieces) >= _COMBINED_PIECES and pieces[4] == " "
    if not is_combined and len(pieces) != _COMMON_PIECES:
        return NOT_AN_ACCESS_LOG
    head, answer = pieces[0].split(" "), pieces[2].split(" ")
    if len(head) < 5 or head[-1] or "" in head[:-1] or len(answer) < 3 or answer[0]:
        return NOT_AN_ACCESS_LOG
    stamp, zone = head[-3:-1]
    if not (stamp.startswith("[") and zone.endswith("]")):
        return NOT_AN_ACCESS_LOG
    status_text, size = answer[1:3]
    if not (status_text and size):
        return NOT_AN_ACCESS_LOG
    before = front(head[:-3])
    if before is None:
        return VIRTUAL_HOST if has_host_in_front(head) else BAD_CLIENT
    if not (_is_usual_end(pieces) if is_combined else _is_usual_answer(answer[3:])):
        return MORE_COLUMNS
    if is_combined and "".join(answer[3:]):
        return MORE_COLUMNS
    moment = _moment(f"{stamp[1:65]} {zone.partition(']')[0]}")
    if moment is None:
        return BAD_TIME
    status_match = _STATUS.fullmatch(status_text)
    status = int(status_match[1]) if status_match else 0
    if not 100 <= status <= 599:
        return BAD_STATUS
    request = _request(pieces[1])
    # A server answers a request that it cannot parse with an error; otherwise the log is damaged.
    if request is None and status < 400:
        return BAD_REQUEST
    size_match = _SIZE.fullmatch(size)
    if size_match is None and size != "-":
        return BAD_SIZE
    time_us, offset_minutes = moment
    method, path, query, protocol = request or (None, None, None, None)
    return Fields(
        time_us,
        offset_minutes,
        before.client,
        _given(before.ident),
        _given(before.user),
        method,
        path,
        query,
        protocol,
        status,
        int(size_match[1]) if size_match else None,
        _given(pieces[3]) if is_combined else None,
        _given(pieces[5]) if is_combined else None,
    )


def _with_plain_user(pieces: list[str]) -> list[str]:
    """Return the pieces as if the line's user were not in quotes; Apache writes an empty user in
    quotes."""
    if len(pieces) < 5 or "[" in pieces[0] or not pieces[2].startswith(" ["):
        return pieces
    return [f"{pieces[0]}{pieces[1] or '-'}{pieces[2]}", *pieces[3:]]


def _is_usual_answer(more: list[str]) -> bool:
    """Return whether status and size are the first columns after the request, as far as the columns
    after them show.

    If a fraction follows, the two are what they seem to be; a third whole number might be the size,
    and the second one the size of the request.
    """
    return not more or more == [""] or all(map(_DURATION.fullmatch, more))


def _is_usual_end(pieces: list[str]) -> bool:
    """Return whether referrer and agent are the first quoted columns, as far as the columns after
    them show.

    With a host before them, the referrer is where the agent should be, and the agent follows it.
    """
    more = pieces[_COMBINED_PIECES - 1 :]
    if more == [""]:
        return True
    if any(map(_LINE_BEGAN.search, more)):
        return False  # two lines became one
    between, quoted = more[::2], more[1::2]
    if not all(text.startswith(" ") for text in between[:-1]) or between[-1][:1].strip(" "):
        return False
    unnamed = [
        text
        for before, text in zip(between, quoted, strict=False)
        if not before.endswith("=")  # as in rt="0.012"
    ]
    referrer, agent = pieces[3], pieces[5]
    if not unnamed:
        return True
    is_referrer = referrer in ("", "-") or _SCHEME.match(referrer) is not None
    are_plain = all(map(_PLAIN.fullmatch, unnamed))  # addresses, numbers, hyphens
    if agent in ("", "-"):
        return is_referrer and are_plain
    return (is_referrer or are_plain) and not _URL.match(agent)


def _request(piece: str) -> tuple[str, str, str | None, str | None] | None:
    """Return method, path, query and protocol, or None if it is not a request."""
    words = piece.split(" ")
    # HTTP/0.9 has none, and targets from careless clients contain blanks.
    has_protocol = len(words) > 2 and words[-1].startswith("HTTP/")
    target = " ".join(words[1:-1] if has_protocol else words[1:])
    if not target or not _METHOD.fullmatch(words[0]):
        return None
    # A request to a proxy has the whole URL, whose empty path is the root (RFC 9112, 3.2.1).
    origin = _ORIGIN.match(target)
    path, mark, query = target[origin.end() if origin else 0 :].partition("?")
    return (
        words[0],
        _unmasked(path) if path else "/",
        _unmasked(query) if mark else None,
        words[-1] if has_protocol else None,
    )


def _moment(text: str) -> tuple[int, int] | None:
    """Return microseconds since the epoch and the offset from UTC in minutes, or None if the
    years 1 to 9999 have no such time."""
    match = _TIME.fullmatch(text)
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
            # Python's times have no second 60; a leap second is added below.
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


def _given(text: str) -> str | None:
    return None if text in ("", "-") else _unmasked(text)


def _unmasked(text: str) -> str:
    return text.replace(_MASKED_QUOTE, '"').replace(_MASKED_BACKSLASH, "\\")
