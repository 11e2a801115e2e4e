"""Finds the response time among the columns after a line's agent. Pure.

    "agent" "192.0.2.9"                                   nginx.org's package: `main`
    "agent" 0.012                                         nginx: `$request_time`, in seconds
    "agent" rt=0.012 uct="0.000" urt="0.011"              named columns
    "agent" 411 0.001 [default-web-80] [] 10.0.0.5:80 ... ingress-nginx
    "agent" 42 "web@docker" "http://172.18.0.3:80" 12ms   Traefik

A bare whole number may be a size, a port, microseconds (Apache's `%D`) or seconds (`%T`). A whole
number is taken as a response time only if it has a unit. A fraction is taken as a response time
only if it has three digits after the point, as nginx writes it; a compression ratio has two.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from barnabas_pipeline.behaviour.line_parts import duration_us

PLAIN: Final = r"[-0-9A-Fa-f.:, ]*"
"""Matches a quoted column that contains addresses or numbers."""
SECONDS: Final = r"[0-9]{1,6}\.[0-9]{3}"
"""Matches nginx's `$request_time`, but not `$msec`, which is an instant and has more digits before
the point."""
INGRESS: Final = rf" [0-9]+ {SECONDS} \[[^\]\x22]*\] \[[^\]\x22]*\] [^\x22]*"
TRAEFIK: Final = r" [0-9]+ \x22[^\x22]*\x22 \x22[^\x22]*\x22 [0-9]{1,9}ms"
BARE: Final = rf"(?: \x22{PLAIN}\x22)* {SECONDS}(?: |$)"
NAMES: Final = r"(?:rt|request_time|response_time|req_time|duration|took)"

_PLAIN_ONLY: Final = re.compile(rf" \x22(?:{PLAIN}|unknown)\x22")
_INGRESS: Final = re.compile(INGRESS)
_TRAEFIK: Final = re.compile(TRAEFIK + " ?")
_BARE: Final = re.compile(rf"(?: \x22{PLAIN}\x22)* ({SECONDS}|[0-9.]+(?:us|µs|ms))(?: |$)")
_VALUE: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(us|µs|ms|s)?")
_NAME: Final = re.compile(rf"{NAMES}[=:]")
_UNITS_US: Final = {"us": 1, "µs": 1, "ms": 1_000, "s": 1_000_000}


class Tail(NamedTuple):
    """The columns after the agent."""

    format: str
    response_time_us: int | None = None
    is_unmistakable: bool = False
    """Whether this tail proves that the columns before it are the usual columns."""


def tail_of(text: str) -> Tail:
    """Identify the columns after the agent's closing quote."""
    if text in ("", " "):
        return Tail("combined")
    if _TRAEFIK.fullmatch(text):
        word = text.rstrip(" ").rpartition(" ")[2]
        return Tail("traefik", _time(word), is_unmistakable=True)
    if _INGRESS.fullmatch(text):
        return Tail("ingress_nginx", _time(text.split(" ", 3)[2]), is_unmistakable=True)
    if _PLAIN_ONLY.fullmatch(text):
        return Tail("nginx_main")
    bare = _BARE.match(text)
    found = _time(bare[1]) if bare else _named_time(text)
    return Tail("combined_more" if found is None else "combined_timed", found)


def _named_time(text: str) -> int | None:
    """Return the response time from the first column that is named as a response time."""
    parts = text.split('"')
    for place in range(0, len(parts), 2):  # outside quotes
        for word in parts[place].split(" "):
            match = _NAME.match(word)
            if match:
                is_quoted = match.end() == len(word) and place + 1 < len(parts)
                found = _time(parts[place + 1] if is_quoted else word[match.end() :].rstrip(","))
                if found is not None:
                    return found
    return None


def _time(text: str) -> int | None:
    """Convert a time to microseconds. A number without a unit is in seconds if it has a fraction;
    otherwise, it is not a time."""
    match = _VALUE.fullmatch(text)
    if match is None or not (match[2] or "." in match[1]):
        return None
    return duration_us(match[1], _UNITS_US[match[2] or "s"])
