"""Parses the filters in an address. Pure.

    since=2026-03-01&until=2026-03-07T12:00&host=shop.example&page=/basket&compare=before

`since` and `until` are in UTC; `until` is excluded, unless it is a whole day, which is included. A
dimension given several times matches any of its values. The value `~` stands for a missing value.
An unusable value raises a `WebProblem` with status 400 that names its parameter.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple
from urllib.parse import urlencode

from barnabas.console.problem import WebProblem

MISSING: Final = "~"
"""The value of a dimension that stands for rows without a value."""
MOST_VALUES: Final = 50
MOST_CHARACTERS: Final = 2_000
PREVIOUS: Final = "before"
"""The value of `compare` that stands for the period of the same length just before."""
_PERIODS: Final = ("since", "until", "compare", "compare_until")


class Period(NamedTuple):
    """A period in microseconds since 1970. None stands for an open end."""

    since_us: int | None = None
    until_us: int | None = None  # excluded


class Filters(NamedTuple):
    """The parsed filters."""

    period: Period = Period()
    values: Mapping[str, tuple[str, ...]] = {}
    """The wanted values by dimension. A row has to match all dimensions."""
    other: Period | None = None
    """The period with which figures are compared, or None without a comparison."""

    @property
    def key(self) -> Hashable:
        """The same for filters that select the same."""
        return self.period, tuple(sorted(self.values.items())), self.other


def parse(pairs: Iterable[tuple[str, str]], dimensions: Collection[str]) -> Filters:
    """Return the filters in these URL parameters. Parameters that are neither a dimension nor a
    period are ignored, because they belong to the rows or to the page.
    """
    values: dict[str, tuple[str, ...]] = {}
    periods: dict[str, str] = {}
    for name, value in pairs:
        if len(value) > MOST_CHARACTERS:
            raise WebProblem(400, f"{name[:40]}: at most {MOST_CHARACTERS} characters are read")
        if name in _PERIODS:
            periods[name] = value
        elif name in dimensions:
            values[name] = (*values.get(name, ()), value)
            if len(values[name]) > MOST_VALUES:
                raise WebProblem(400, f"{name}: at most {MOST_VALUES} values can be given")
    period = _period(periods, "since", "until")
    return Filters(period, values, _other(periods, period))


def query(filters: Mapping[str, str | Collection[str]]) -> str:
    """Return URL parameters."""
    return urlencode(filters, doseq=True)


def _other(periods: Mapping[str, str], period: Period) -> Period | None:
    compare = periods.get("compare", "")
    if not compare:
        return None
    if compare != PREVIOUS:
        return _period(periods, "compare", "compare_until")
    if period.since_us is None or period.until_us is None:
        raise WebProblem(400, f"compare={PREVIOUS}: give since and until, too")
    length_us = period.until_us - period.since_us
    return Period(period.since_us - length_us, period.since_us)


def _period(periods: Mapping[str, str], first: str, last: str) -> Period:
    since_us = _moment_us(first, periods.get(first, ""))
    until_us = _moment_us(last, periods.get(last, ""), is_end=True)
    if since_us is not None and until_us is not None and until_us <= since_us:
        raise WebProblem(400, f"{last} has to be after {first}")
    return Period(since_us, until_us)


def _moment_us(name: str, text: str, *, is_end: bool = False) -> int | None:
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
        if is_end and len(text) == len(date.min.isoformat()):
            at += timedelta(days=1)
        at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        return round(at.timestamp()) * 1_000_000
    except (ValueError, OverflowError):
        raise WebProblem(
            400, f"{name}={text[:40]}: give a day or a time in UTC, such as 2026-03-01T12:00"
        ) from None


def row_limit(options: Mapping[str, str], usual: int, most: int) -> int:
    """Return how many rows the parameter `limit` asks for. Raises WebProblem."""
    text = options.get("limit", "") or str(usual)
    if not (text.isascii() and text.isdecimal() and len(text) <= 4 and 1 <= int(text) <= most):
        raise WebProblem(400, f"limit={text[:40]}: give a number from 1 to {most:,}")
    return int(text)
