"""Instants and durations in ISO 8601: for --to-datetime and --by-duration. Pure."""

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
_UNITS_MS: Final = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}


class BadInstant(BarnabasError):
    """A text that is not an instant or a duration; the message gives an example."""


def instant_ms(text: str) -> int:
    """`2026-11-21T17:30:00.000+01:00` as milliseconds since the epoch; UTC without an offset.

    Raises BadInstant.
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise BadInstant(f"{text}: not an instant, such as 2026-11-21T17:30:00.000") from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    since = at - datetime(1970, 1, 1, tzinfo=UTC)
    return max(
        since.days * _UNITS_MS["days"] + since.seconds * 1000 + since.microseconds // 1000, 0
    )


def duration_ms(text: str) -> int:
    """`P1DT2H3M4.5S` in milliseconds. Raises BadInstant."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groupdict().values()):
        raise BadInstant(f"{text}: not a duration, such as P1DT12H (a day and a half) or PT30M")
    whole = sum(int(found[name] or 0) * unit_ms for name, unit_ms in _UNITS_MS.items())
    return whole + int((found["fraction"] or "")[:3].ljust(3, "0"))


def instant_text(at_ms: int) -> str:
    """The instant in UTC, to the millisecond."""
    at = datetime.fromtimestamp(at_ms // 1000, UTC).replace(microsecond=at_ms % 1000 * 1000)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
