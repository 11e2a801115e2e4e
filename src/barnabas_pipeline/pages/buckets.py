"""Chooses the buckets of timelines, which are in UTC. Pure."""

from __future__ import annotations

from typing import Final

from barnabas_pipeline.instants import DAY_US, HOUR_US, MINUTE_US

_SECOND_US: Final = 1_000_000
_MOST: Final = 120
_WEEK_US: Final = 7 * DAY_US
_MONDAY_US: Final = 4 * DAY_US  # 1970-01-05
_STEPS_US: Final = (
    *(_SECOND_US * each for each in (1, 2, 5, 10, 15, 30)),
    *(MINUTE_US * each for each in (1, 2, 5, 10, 15, 30)),
    *(HOUR_US * each for each in (1, 2, 3, 6, 12)),
    *(DAY_US * each for each in (1, 2)),
    *(_WEEK_US * each for each in (1, 2, 4, 12, 24, 52)),
)


def step_of(span_us: int) -> int:
    """Return the length of the buckets of a span, of which there are at most 120, and usually more
    than 40.
    """
    # The first bucket may begin before the span.
    for step_us in _STEPS_US:
        if span_us <= step_us * (_MOST - 1):
            return step_us
    return -(-span_us // (_WEEK_US * (_MOST - 1))) * _WEEK_US


def floor_of(time_us: int, step_us: int) -> int:
    """Return the begin of the bucket that contains a time. Weeks begin on Mondays."""
    offset_us = _MONDAY_US if step_us % _WEEK_US == 0 else 0
    return (time_us - offset_us) // step_us * step_us + offset_us
