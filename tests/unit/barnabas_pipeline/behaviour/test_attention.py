"""What an access log's page says first (SP-5)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from barnabas_pipeline.behaviour.attention import error_bursts, gaps
from barnabas_pipeline.behaviour.timeline import Moment, Timeline

BEGIN = datetime.fromisoformat("2026-03-02")
STEP = timedelta(minutes=15)
HOUR = timedelta(hours=1)


def timeline(hits: Sequence[int], errors: Sequence[int] = ()) -> Timeline:
    """Return a timeline with these hits in each quarter of an hour, and server errors by hour."""
    moments = [Moment(BEGIN + at * STEP, count, 0, 0, 0) for at, count in enumerate(hits)]
    classes = [
        (BEGIN + at * HOUR, {"2xx": 100, "5xx": count} if count else {"2xx": 100})
        for at, count in enumerate(errors)
    ]
    return Timeline(STEP, moments, HOUR, classes, [[0.0] * 24] * 7, 0, [0])


@pytest.mark.parametrize(
    ("errors", "found"),
    [
        ([0, 0, 0, 0, 10, 0, 0], [4]),
        ([2, 3, 1, 60, 2, 40, 3], [3]),  # of two that are large, neither is far above the mean
        ([0, 0, 0, 0, 9, 0, 0], []),
        ([50] * 24, []),
        ([0, 99, 0], []),  # too short to know what is usual
        ([], []),
    ],
)
def test_sp_5_many_server_errors(errors: list[int], found: list[int]) -> None:
    """SP-5"""
    bursts = error_bursts(timeline([], errors))
    assert [each.at for each in bursts] == [BEGIN + at * HOUR for at in found]
    assert all(each.hits == 100 + each.errors for each in bursts)


@pytest.mark.parametrize(
    ("hits", "found"),
    [
        ([50] * 8 + [0] * 2 + [50] * 8, [(8, 10)]),
        ([50] * 8 + [0] + [50] * 8, []),  # only fifty are missing
        ([90, 40, 20, 9, 4, 1, *[0] * 40, 1, 5, 9, 30, 60, 90], [(6, 46)]),
        ([3, 2, 1, 1, 1, 1, *[0] * 40, 1, 1, 2, 3, 9, 9], []),  # a quiet night
        ([50] * 8 + [0] * 9, []),  # the end of a log is no silence
        ([0] * 9 + [0], []),
        ([], []),
    ],
)
def test_sp_5_silences(hits: list[int], found: list[tuple[int, int]]) -> None:
    """SP-5"""
    silent = gaps(timeline(hits))
    assert [(each.begin, each.end) for each in silent] == [
        (BEGIN + begin * STEP, BEGIN + end * STEP) for begin, end in found
    ]
