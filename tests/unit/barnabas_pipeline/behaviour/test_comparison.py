"""The last days against those before them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from barnabas_pipeline.behaviour.comparison import Comparison, compare
from barnabas_pipeline.behaviour.visits import SessionFigures

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = 24 * HOUR


def of_hours(hours: int, minute: int = 0) -> Comparison | None:
    """Of a log that has a hit, and a session of a page, in each hour."""
    times = [BEGIN + i * HOUR for i in range(hours)] + [BEGIN + hours * HOUR + minute * HOUR / 60]
    one = [1] * len(times)
    traffic = pl.DataFrame(
        {
            "minute": times,
            "utc_offset_minutes": [60] * len(times),
            "hits": one,
            "robot_hits": [0] * len(times),
            "client_errors": one,
            "server_errors": [0] * len(times),
            "bytes": [100] * len(times),
        }
    )
    people = pl.DataFrame(
        {
            "start": times,
            "client": [str(i % 5) for i in range(len(times))],
            "agent": ["a"] * len(times),
            "open": [False] * len(times),
            "bounce": [True] * len(times),
            "pages": one,
            "length_seconds": [7] * len(times),
        }
    )
    return compare(traffic, people)


@pytest.mark.parametrize(
    ("hours", "length"),
    [
        (60 * 24, 7 * DAY),
        (14 * 24, 7 * DAY),
        (14 * 24 - 12, 7 * DAY),  # a fortnight, but for a few hours
        (13 * 24 - 12, 6 * DAY),
        (5 * 24, 2 * DAY),
        (2 * 24, DAY),
        (10, 5 * HOUR + timedelta(seconds=30)),
    ],
)
def test_a_week_or_what_there_is(hours: int, length: timedelta) -> None:
    found = of_hours(hours)
    assert found is not None and found.length == length
    assert found.last.begin == found.before.end
    assert found.last.end - found.last.begin == found.before.end - found.before.begin == length
    newest = BEGIN + hours * HOUR + timedelta(minutes=1)
    assert found.last.end == (newest + HOUR).replace(tzinfo=None), "in the log's own time"


@pytest.mark.parametrize("minute", [0, 59], ids=["between two hits", "at a hit"])
def test_each_hit_is_of_one_period(minute: int) -> None:
    found = of_hours(20 * 24, minute)
    assert found is not None
    for period in (found.last, found.before):
        assert (period.hits, period.errors, period.size_bytes) == (168, 168, 16_800)
        assert period.people == SessionFigures(5, 168, 0, 168, 168, 168, 7.0)
        assert (period.error_share, period.robot_share) == (1.0, 0.0)


def test_of_nothing_and_of_a_minute_there_is_no_comparison() -> None:
    empty = pl.DataFrame(schema={"minute": pl.Datetime("us", "UTC")})
    assert compare(empty, pl.DataFrame()) is None
    assert of_hours(0) is None
    assert of_hours(0, minute=1) is None
