"""Parses an access log line in any of the catalogue's formats. Pure.

The start of a line determines its decoder; no other is tried:

    {               objects of nginx, Caddy and Traefik      `json_line.py`
    #Fields:        directives of W3C's format               `w3c_line.py`
    2026-03-10      W3C's columns: IIS, CloudFront           `w3c_line.py`, `w3c_directive.py`
    http 2026-...   load balancers and S3                    `cloud_line.py`
    [2026-...       Envoy, and HAProxy behind syslog's head  `proxy_line.py`
    anything else   the Common Log Format and its extensions

    client ident user [10/Oct/2000:13:55:36 -0700] "GET /a?b=c HTTP/1.0" 200 2326 "referrer" "agent"
    '------------- head ---------------------------'                    'answer -'

`line_wrapping.py` first removes what other programs have written around the line, such as syslog's
head. `line_front.py` reads the columns before the time, which may include a virtual host. More
columns may follow the agent, such as times or the address in `X-Forwarded-For`, which the
configuration in nginx's own package logs. `line_tail.py` finds the response time among them. All
other columns are ignored, provided that the columns before them are unmistakably the usual ones.

Inside quotes, a server writes `\\"` for a quote and `\\\\` for a backslash. Each of these pairs is
masked by a control character, and the line is split at its remaining quotes. No pattern has to
handle escapes, and none backtracks, no matter how long or hostile the line is. The pieces are then
split at blanks, from both ends, because users and targets may contain blanks.

For an invalid line, `reason` is the first reason that applies. A malformed request does not make a
line invalid: if the server could not parse the request and answered it with 4xx or 5xx, the line is
valid but has no method or path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from barnabas_pipeline.behaviour import cloud_line, json_line, proxy_line, w3c_line
from barnabas_pipeline.behaviour.line_front import front, has_host_in_front
from barnabas_pipeline.behaviour.line_parts import (
    BAD_CLIENT,
    BAD_REQUEST,
    BAD_TIME,
    CONTROL_CHARACTER,
    DIRECTIVE,
    EMPTY,
    MORE_COLUMNS,
    NO_VALUE,
    NOT_AN_ACCESS_LOG,
    TOO_LONG,
    UNBALANCED_QUOTES,
    VIRTUAL_HOST,
    Fields,
    RejectedLine,
    Request,
    access_moment,
    given,
    request_of,
    size_of,
    status_of,
)
from barnabas_pipeline.behaviour.line_tail import Tail, tail_of
from barnabas_pipeline.behaviour.line_wrapping import unwrap_line
from barnabas_pipeline.texts import text_of

_MASKED_BACKSLASH: Final = "\x01"
_MASKED_QUOTE: Final = "\x02"

CONTROL: Final = r"[\x00-\x08\x0B\x0C\x0E-\x1F\x7F]"
"""Matches characters that never occur in a valid line."""
_CONTROL: Final = re.compile(CONTROL)

# The pieces of a line split at its quotes: head, request, answer (, referrer, a blank, agent,
# more).
_COMMON_PIECES: Final = 3
_COMBINED_PIECES: Final = 7

URL: Final = r"^[A-Za-z][A-Za-z0-9+.-]*://"
"""Matches the start of a referrer, but hardly ever the start of an agent."""
_URL: Final = re.compile(URL)
PRODUCT: Final = r"^[A-Za-z][A-Za-z0-9_.-]*/[0-9]"
"""Matches the usual start of an agent, but hardly ever the start of a referrer."""
_PRODUCT: Final = re.compile(PRODUCT)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PLAIN: Final = re.compile(r"(?:[-0-9A-Fa-f.:,; ]|unknown)*")
_DURATION: Final = re.compile(r"[0-9]+\.[0-9]+")
_LINE_BEGAN: Final = re.compile(r"\[[0-9]{2}/[A-Za-z]{3}/[0-9]{4}:")

_LONGEST_TIME: Final = 64

_DECODERS: Final[Sequence[tuple[Callable[[str], bool], Callable[[str], Fields]]]] = (
    (w3c_line.fits, w3c_line.decode),
    (cloud_line.fits, cloud_line.decode),
    (proxy_line.fits, proxy_line.decode),
)


def parse_line(value: bytes | None, *, is_cut: bool = False) -> Fields | str:
    """Return the fields of a line, the reason (from `REASONS`) why the line is invalid, or
    `DIRECTIVE`. The line feed must already have been removed.

    `is_cut`: whether the line has been truncated.
    """
    if value is None:
        return NO_VALUE
    if is_cut:
        return TOO_LONG
    # Programs on Windows end lines with CR LF; the line feed has already been removed.
    text = text_of(value.rstrip(b"\r"))
    # The head that syslog adds identifies HAProxy's lines, and their decoder reads it.
    if text and not proxy_line.fits(text):
        text = unwrap_line(text)
    if not text.strip(" "):
        return EMPTY
    if _CONTROL.search(text):
        return CONTROL_CHARACTER
    try:
        return _decode(text)
    except RejectedLine as rejected:
        return rejected.reason


def _decode(text: str) -> Fields | str:
    """Return the fields of a line. Raises `RejectedLine` for some invalid lines."""
    first = text[0]
    if first == "{":
        return json_line.decode(text)
    if first == "#" and w3c_line.is_directive(text):
        return DIRECTIVE
    for fits, decode in _DECODERS:
        if fits(text):
            return decode(text)
    # Mask pairs of backslashes first, because a quote after such a pair is not escaped.
    masked = text.replace("\\\\", _MASKED_BACKSLASH).replace('\\"', _MASKED_QUOTE)
    pieces = masked.split('"')
    # Quotes are paired, so the number of pieces is odd.
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
    stamp, columns = _stamp(head)
    status_text, size = answer[1:3]
    if not (stamp and status_text and size):
        return NOT_AN_ACCESS_LOG
    before = front(columns)
    if before is None:
        return VIRTUAL_HOST if has_host_in_front(head) else BAD_CLIENT
    tail = _tail(pieces, answer, is_combined=is_combined)
    if tail is None:
        return MORE_COLUMNS
    moment = access_moment(stamp)
    if moment is None:
        return BAD_TIME
    status = status_of(status_text)
    request = request_of(pieces[1], _unmasked)
    # A server answers an unparsable request with an error; otherwise, the log is damaged.
    if request is None and status < 400:
        return BAD_REQUEST
    request = request or Request()
    return Fields(
        *moment,
        before.client,
        _given(before.ident),
        _given(before.user),
        *request[:4],
        status,
        size_of(size),
        _given(pieces[3]) if is_combined else None,
        _given(pieces[5]) if is_combined else None,
        before.virtual_host,
        tail.response_time_us,
        _format(tail, has_host=before.virtual_host is not None, is_combined=is_combined),
    )


def _stamp(head: list[str]) -> tuple[str, list[str]]:
    """Return the time and the columns before it. The time is empty if there is none."""
    for count in (1, 2):  # nginx's $time_iso8601 is a single word
        words = head[-1 - count : -1]
        if words[0].startswith("[") and words[-1].endswith("]"):
            return " ".join(words)[1:-1][:_LONGEST_TIME], head[: -1 - count]
    return "", head


def _format(tail: Tail, *, has_host: bool, is_combined: bool) -> str:
    if not is_combined:
        return "vhost_common" if has_host else "common"
    return "vhost_combined" if has_host and not tail.is_unmistakable else tail.format


def _tail(pieces: list[str], answer: list[str], *, is_combined: bool) -> Tail | None:
    """Return the columns after the usual columns, or None if it is unclear where the usual columns
    end.
    """
    if not is_combined:
        return tail_of(" ".join(["", *answer[3:]])) if _is_usual_answer(answer[3:]) else None
    if "".join(answer[3:]):
        return None
    tail = tail_of('"'.join(pieces[_COMBINED_PIECES - 1 :]))
    return tail if tail.is_unmistakable or _is_usual_end(pieces) else None


def _with_plain_user(pieces: list[str]) -> list[str]:
    """Return the pieces with the quotes around the user removed. Apache writes an empty user in
    quotes.
    """
    if len(pieces) < 5 or "[" in pieces[0] or not pieces[2].startswith(" ["):
        return pieces
    return [f"{pieces[0]}{pieces[1] or '-'}{pieces[2]}", *pieces[3:]]


def _is_usual_answer(more: list[str]) -> bool:
    """Return whether status and size are the first columns after the request, judging by the
    columns that follow.

    If a fraction follows, the two columns are the status and the size. If a third whole number
    follows, the third number may be the size, and the second number the size of the request.
    """
    return not more or more == [""] or all(map(_DURATION.fullmatch, more))


def _is_usual_end(pieces: list[str]) -> bool:
    """Return whether referrer and agent are the first quoted columns, judging by the columns that
    follow.

    If the first quoted column is a host, the referrer is in the agent's usual position, and the
    agent follows. A site may also log the agent before the referrer.
    """
    more = pieces[_COMBINED_PIECES - 1 :]
    if _PRODUCT.match(pieces[3]) and (pieces[5] in ("", "-") or _URL.match(pieces[5])):
        return False  # the agent comes first
    if more == [""]:
        return True
    if any(map(_LINE_BEGAN.search, more)):
        return False  # two lines were merged
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
    if any(map(_PRODUCT.match, unnamed)) and not _PRODUCT.match(agent):
        return False  # the agent seems to come later
    is_referrer = referrer in ("", "-") or _SCHEME.match(referrer) is not None
    are_plain = all(map(_PLAIN.fullmatch, unnamed))  # addresses, numbers, hyphens
    if agent in ("", "-"):
        return is_referrer and are_plain
    return (is_referrer or are_plain) and not _URL.match(agent)


def _given(text: str) -> str | None:
    found = given(text)
    return None if found is None else _unmasked(found)


def _unmasked(text: str) -> str:
    return text.replace(_MASKED_QUOTE, '"').replace(_MASKED_BACKSLASH, "\\")
