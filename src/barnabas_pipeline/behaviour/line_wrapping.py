"""Removes what other programs have written around an access log line. Pure.

    \\ufeff192.0.2.7 - - [...                                       a byte order mark
    <190>Oct 10 13:55:36 web nginx: 192.0.2.7 - - [...             syslog, RFC 3164 and 5424
    {"log":"192.0.2.7 - - [...\\n","stream":"stdout","time":"..."}  Docker
    2025-10-10T13:55:36.1Z stdout F 192.0.2.7 - - [...             Kubernetes
    web-1  | 192.0.2.7 - - [...                                    Docker Compose

The time of a hit is the time in the access log line, which has a zone. A container runtime's line
that contains only a part of the program's line stays wrapped, so it is rejected.
"""

from __future__ import annotations

import re
from typing import Final

from barnabas_formats.containers import Wrapped, unwrap

_MOST: Final = 3
"""The number of programs that may have wrapped a line: for example, syslog within a container."""
_ISO: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})"
_PROGRAM: Final = r"[A-Za-z_/][A-Za-z0-9_./@-]*"
_SYSLOG: Final = re.compile(
    rf"(?:<[0-9]{{1,3}}>)?(?:[A-Z][a-z]{{2}} [ 0-9][0-9] [0-9:]{{8}}|{_ISO}) +"
    rf"(?:[^ \[\]\"]+ +)?{_PROGRAM}(?:\[[0-9]+\])?: +"
)
_SYSLOG_1: Final = re.compile(
    rf"<[0-9]{{1,3}}>1 (?:{_ISO}|-) [^ ]+ [^ ]+ [^ ]+ [^ ]+ (?:-|(?:\[[^\]]*\])+) (?:\ufeff)?"
)
_COMPOSE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]* +\| ")


def unwrap_line(text: str) -> str:
    """Return the access log line in a line. A line that is not wrapped is returned unchanged."""
    text = text.removeprefix("\ufeff")
    for _ in range(_MOST):
        content = _content(text)
        if content is None:
            break
        text = content
    return text


def _content(text: str) -> str | None:
    if text.startswith(('{"log":"', "2", "1")):
        wrapped = unwrap(text)
        if wrapped is not None:
            return _whole(wrapped)
    for head in (_SYSLOG, _SYSLOG_1, _COMPOSE):
        match = head.match(text)
        if match and match.end() < len(text):
            return text[match.end() :]
    return None


def _whole(wrapped: Wrapped) -> str | None:
    """Return the content of a container's line, or None if the content is not a whole line."""
    if not wrapped.is_whole or not wrapped.content:
        return None
    # JSON can escape half a surrogate pair.
    return wrapped.content.encode("utf-8", "replace").decode()
