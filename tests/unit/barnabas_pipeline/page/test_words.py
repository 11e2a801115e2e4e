from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from barnabas_pipeline.page import words


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59, "59 s"), (60, "1 min"), (61, "1 min 1 s"), (3720, "1 h 2 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


def test_shares_and_sizes() -> None:
    assert [words.percent(*pair) for pair in ((1, 3), (1, 30), (0, 3), (1, 0))] == [
        *("33%", "3.3%", "0%", "–")
    ]
    assert [words.size(size) for size in (0, 999, 1_234, 123_456, 5e9)] == [
        *("0 B", "999 B", "1.2 kB", "123 kB", "5.0 GB")
    ]
    assert words.share(2, [2, 8]) == "25.0%" and words.share(0, []) == "0.0%"


def test_intervals_and_periods() -> None:
    steps = (timedelta(hours=1), timedelta(hours=6), timedelta(days=1), timedelta(seconds=5))
    assert [words.interval(step) for step in steps] == ["hour", "6 hours", "day", "5 seconds"]
    first, last = datetime.fromisoformat("2026-12-30"), datetime.fromisoformat("2027-01-02")
    assert words.period(first, last) == "30 December 2026 to 2 January 2027"
    assert words.period(last, last) == "Saturday, 2 January 2027"
    assert words.span(last, timedelta(hours=1)) == "Saturday, 2 January 2027, 00:00 to 01:00"
    assert words.moment(datetime.fromisoformat("2026-03-02T07:05:00+00:00")) == (
        "2 March 2026, 07:05:00 UTC"
    )
    assert words.period(first, first + timedelta(days=1)) == "30 to 31 December 2026"
    assert words.short_moment(last) == "2 January, 00:00"
    lengths = (timedelta(days=7), timedelta(days=1), timedelta(minutes=90))
    assert [words.days(length) for length in lengths] == ["7 days", "day", "1 h 30 min"]
    assert words.zones([0, 90, -210]) == "UTC and UTC+01:30 and UTC-03:30"


def test_changes() -> None:
    pairs = ((3, 2), (2, 3), (1001, 1000), (1, 0), (0, 0))
    assert [words.change(*pair) for pair in pairs] == [*("▲ 50%", "▼ 33%", "± 0%", "new", "± 0%")]
    shares = ((0.5, 0.4), (0.01, 0.02), (0.5, 0.5))
    assert [words.points(*pair) for pair in shares] == [
        *("▲ 10.0 points", "▼ 1.0 points", "± 0 points")
    ]
