"""Computes axes for the pictures, at round numbers and round times of day."""

from __future__ import annotations

from datetime import datetime, timedelta

_HOUR_S, _DAY_S = 3600, 86_400
_TIME_STEPS_S = (
    *(60, 300, 600, 1800, _HOUR_S, 3 * _HOUR_S, 6 * _HOUR_S, 12 * _HOUR_S),
    *(
        _DAY_S,
        2 * _DAY_S,
        4 * _DAY_S,
        7 * _DAY_S,
        14 * _DAY_S,
        28 * _DAY_S,
        91 * _DAY_S,
        365 * _DAY_S,
    ),
)
_A_MONDAY = datetime.fromisoformat("2001-01-01")  # without a zone, like all times in this module


def round_ticks(largest: float, most: int = 4) -> list[float]:
    """Return 0 and up to `most` round numbers above it; the last is at least `largest`."""
    if largest <= 0:
        return [0, 1]
    size = 10.0**-6
    while True:
        for factor in (1, 2, 2.5, 5):
            step = size * factor
            if step * most >= largest and (step >= 1 or largest < 1):
                count = next(n for n in range(1, most + 1) if step * n >= largest)
                return [step * n for n in range(count + 1)]
        size *= 10


def time_ticks(begin: datetime, end: datetime, most: int = 14) -> list[tuple[datetime, str]]:
    """Return up to `most` times between `begin` and `end` (without zones), with their labels."""
    span_s = (end - begin).total_seconds()
    coarsest_s = _TIME_STEPS_S[-1] * (int(span_s // (_TIME_STEPS_S[-1] * most)) + 1)
    step_s = next((s for s in _TIME_STEPS_S if span_s / s <= most), coarsest_s)
    step = timedelta(seconds=step_s)
    # Count the steps from a Monday, so that days begin at midnight and weeks on Mondays.
    at = _A_MONDAY + step * -(-(begin - _A_MONDAY) // step)
    ticks = []
    while at <= end:
        ticks.append((at, _label(at, step_s)))
        at += step
    return ticks


def _label(at: datetime, step_s: int) -> str:
    if step_s < _DAY_S:
        return f"{at:%H:%M}" if (at.hour, at.minute) != (0, 0) else f"{at:%a} {at.day}"
    if step_s < 28 * _DAY_S:
        return f"{at:%a} {at.day} {at:%b}"
    return f"{at:%b %Y}"


def short(number: float) -> str:
    """Format a number for an axis: 950, 1.2k, 30k, 4M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= limit:
            return f"{number / limit:.1f}".rstrip("0").rstrip(".") + unit
    return f"{number:g}"
