"""Parses instants and durations in ISO 8601, and short forms such as `-1h`. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from barnabas.errors import BarnabasError

_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d{1,9})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?"
    r"(?:(?P<seconds>\d{1,9})(?:\.(?P<fraction>\d{1,9}))?S)?)?",
    re.IGNORECASE,
)
_AGO: Final = re.compile(r"-(\d{1,9})(ms|s|m|h|d|w)")
_AGO_MS: Final = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
_UNITS_MS: Final = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}


class BadInstant(BarnabasError):
    """Raised if a text is not an instant or a duration; the message gives an example."""


def instant_ms(text: str) -> int:
    """Return an instant, such as `2026-11-21T17:30:00.000+01:00`, in milliseconds since the epoch.
    The default offset is UTC.

    Raises BadInstant.
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise BadInstant(f"{text}: not an instant, such as 2026-11-21T17:30:00.000") from None
    # Like Kafka's tool, assume UTC, regardless of the machine's time zone.
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    since = at - datetime(1970, 1, 1, tzinfo=UTC)
    return max(
        since.days * _UNITS_MS["days"] + since.seconds * 1000 + since.microseconds // 1000, 0
    )


def moment_ms(text: str, now_ms: int) -> int:
    """Parse `now`, `-1h` or `-PT1H` (before now), an instant, or milliseconds since the epoch.

    Raises BadInstant.
    """
    if text == "now":
        return now_ms
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return max(now_ms - int(ago[1]) * _AGO_MS[ago[2]], 0)
    if text.startswith("-P"):
        return max(now_ms - duration_ms(text[1:]), 0)
    # A number of fewer than eleven digits could be seconds or a year. As milliseconds, it would
    # mean a time before May 1970.
    if text.isascii() and text.isdecimal() and 11 <= len(text) < 19:
        return int(text)
    try:
        return instant_ms(text)
    except BadInstant:
        raise BadInstant(
            f"{text}: not a time, such as 2026-11-21T17:30 (UTC), 2026-11-21T17:30+01:00, "
            "-1h (an hour ago; also ms, s, m, d, w), now, or milliseconds since 1970"
        ) from None


def duration_ms(text: str) -> int:
    """Return a duration, such as `P1DT2H3M4.5S`, in milliseconds. Raises BadInstant."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groupdict().values()):
        raise BadInstant(f"{text}: not a duration, such as P1DT12H (a day and a half) or PT30M")
    whole = sum(int(found[name] or 0) * unit_ms for name, unit_ms in _UNITS_MS.items())
    # ".5" is 500 ms; fractions of a millisecond are dropped.
    return whole + int((found["fraction"] or "")[:3].ljust(3, "0"))


def instant_text(at_ms: int) -> str:
    """Format an instant in UTC, with milliseconds."""
    at = datetime.fromtimestamp(at_ms // 1000, UTC).replace(microsecond=at_ms % 1000 * 1000)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
