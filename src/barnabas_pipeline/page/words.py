"""Formats numbers and times for pages. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta


def number(value: float) -> str:
    return f"{value:,}"


def percent(part: float, whole: float = 1.0) -> str:
    """Format the percentage of the whole, or a dash if the whole is 0."""
    if not whole:
        return "–"
    ratio = part / whole
    return f"{ratio:.1%}" if 0 < ratio < 0.1 else f"{ratio:.0%}"


def share(value: float, all_values: Iterable[float]) -> str:
    """Format a bar's relative length for the style sheet."""
    largest = max(all_values, default=0) or 1
    return f"{value / largest:.1%}"


def change(new: float, old: float) -> str:
    """Format the relative change."""
    if not old:
        return "new" if new else "± 0%"
    ratio = new / old - 1
    return "± 0%" if abs(ratio) < 0.005 else f"{_arrow(ratio)} {abs(ratio):.0%}"


def points(new: float, old: float) -> str:
    """Format the difference between two shares in percentage points."""
    difference = 100 * (new - old)
    if abs(difference) < 0.05:
        return "± 0 points"
    return f"{_arrow(difference)} {abs(difference):.1f} points"


def duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def short_duration(microseconds: float) -> str:
    """Format a response time: 930 µs, 12 ms, 1.5 s."""
    if microseconds < 1_000:
        return f"{microseconds:.0f} µs"
    if microseconds < 1_000_000:
        return f"{microseconds / 1_000:.3g} ms" if microseconds < 999_500 else "1 s"
    seconds = microseconds / 1_000_000
    return f"{seconds:.3g} s" if seconds < 60 else duration(seconds)


def interval(step: timedelta) -> str:
    """Format an interval for "hits per ...": hour, 6 hours, day."""
    seconds = int(step.total_seconds())
    for unit, name in ((604_800, "week"), (86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds % unit == 0:
            count = seconds // unit
            return name if count == 1 else f"{count} {name}s"
    return f"{seconds} seconds"


def size(size_bytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size_bytes < 1000 or unit == "TB":
            break
        size_bytes /= 1000
    return (
        f"{size_bytes:.0f} {unit}"
        if size_bytes >= 10 or unit == "B"
        else f"{size_bytes:.1f} {unit}"
    )


def period(begin: datetime | None, end: datetime | None, nothing: str = "nothing yet") -> str:
    """Format a period, from its first day to its last."""
    if begin is None or end is None:
        return nothing
    if begin.date() == end.date():
        return f"{begin:%A}, {begin.day} {begin:%B %Y}"
    if (begin.year, begin.month) == (end.year, end.month):
        return f"{begin.day} to {end.day} {end:%B %Y}"
    if begin.year == end.year:
        return f"{begin.day} {begin:%B} to {end.day} {end:%B %Y}"
    return f"{begin.day} {begin:%B %Y} to {end.day} {end:%B %Y}"


def nothing(records: int) -> str:
    """Return the heading of a page for this many records, none of which has a time."""
    return "nothing valid" if records else "nothing yet"


def span(at: datetime, step: timedelta) -> str:
    """Format the interval that begins at this time, for a tooltip."""
    day = f"{at:%A}, {at.day} {at:%B %Y}"
    if step >= timedelta(days=1):
        return day
    return f"{day}, {at:%H:%M} to {at + step:%H:%M}"


def days(length: timedelta) -> str:
    """Format a length in days, as in "the last 7 days"."""
    count = length // timedelta(days=1)
    if count:
        return "day" if count == 1 else f"{count} days"
    return duration(length.total_seconds())


def zones(offsets_minutes: Iterable[int]) -> str:
    """Format time zones by their offsets: UTC+01:00 and UTC+02:00."""
    return " and ".join(map(_zone, offsets_minutes))


def short_moment(at: datetime) -> str:
    """Format a time without its zone: 14 March, 18:22."""
    return f"{at.day} {at:%B, %H:%M}"


def moment(at: datetime) -> str:
    """Format a time with its zone."""
    return f"{at.day} {at:%B %Y, %H:%M:%S} {at.tzname() or ''}".rstrip()


def _zone(offset_minutes: int) -> str:
    if not offset_minutes:
        return "UTC"
    hours, minutes = divmod(abs(offset_minutes), 60)
    return f"UTC{'-' if offset_minutes < 0 else '+'}{hours:02}:{minutes:02}"


def _arrow(difference: float) -> str:
    return "▲" if difference > 0 else "▼"
