from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_pipeline.page.axes import round_ticks, short, time_ticks

BEGIN = datetime.fromisoformat("2026-03-02T13:17")


@given(st.floats(0.001, 1e12))
def test_ticks_are_few_and_reach_the_largest(largest: float) -> None:
    ticks = round_ticks(largest)
    assert ticks[0] == 0 and ticks[-1] >= largest
    assert 2 <= len(ticks) <= 5
    assert len(ticks) < 3 or ticks[-2] < largest


@pytest.mark.parametrize(
    ("largest", "ticks"),
    [(0, [0, 1]), (1, [0, 1]), (3, [0, 1, 2, 3]), (733, [0, 200, 400, 600, 800])],
)
def test_ticks_are_round(largest: float, ticks: list[float]) -> None:
    assert round_ticks(largest) == ticks


@given(st.integers(60, 400 * 365 * 86_400))
def test_times_are_few_and_inside(span_s: int) -> None:
    end = BEGIN + timedelta(seconds=span_s)
    ticks = time_ticks(BEGIN, end)
    assert len(ticks) <= 15
    assert all(BEGIN <= at <= end for at, _ in ticks)


def test_times_fall_on_the_clock() -> None:
    hours = time_ticks(BEGIN, BEGIN + timedelta(hours=30))
    assert [label for _, label in hours[:4]] == ["15:00", "18:00", "21:00", "Tue 3"]
    days = time_ticks(BEGIN, BEGIN + timedelta(days=13))
    assert days[0] == (datetime.fromisoformat("2026-03-03"), "Tue 3 Mar")


def test_short_numbers() -> None:
    assert [short(number) for number in (0, 950, 1200, 30_000, 4e6, 2.5e9)] == [
        *("0", "950", "1.2k", "30k", "4M", "2.5G")
    ]
