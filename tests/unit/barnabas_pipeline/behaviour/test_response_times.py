"""Histograms of response times: merged by addition, quantiles near the exact ones (SP-2)."""

from __future__ import annotations

import random

import polars as pl
import pytest

from barnabas_pipeline.behaviour.response_times import (
    BOUNDS,
    bucket_bounds,
    read_response_times,
)


def histogram(times: list[int], path: str = "/a") -> pl.DataFrame:
    bounds = bucket_bounds(pl.Series(times, dtype=pl.Int64))
    return pl.DataFrame({"path": [path] * len(times), "from_us": bounds, "hits": 1})


def test_a_time_is_in_the_bucket_that_begins_at_or_below_it() -> None:
    times = [-5, 0, 1, 2, 3, 999, 12_000, BOUNDS[-1], 10**15]
    for time, bound in zip(times, bucket_bounds(pl.Series(times)), strict=True):
        assert bound in BOUNDS
        assert bound <= max(time, 0)
        above = [each for each in BOUNDS if each > bound]
        assert not above or max(time, 0) < above[0]
    assert list(BOUNDS) == sorted(set(BOUNDS))


@pytest.mark.parametrize("seed", range(3))
def test_quantiles_are_within_a_bucket_of_the_exact_ones(seed: int) -> None:
    random_times = random.Random(seed)
    times = [int(random_times.lognormvariate(10, 1.5)) for _ in range(5_000)]
    found = read_response_times(histogram(times), 10).all
    assert found is not None and found.hits == len(times)
    ordered = sorted(times)
    for share, value in ((0.5, found.p50_us), (0.95, found.p95_us), (0.99, found.p99_us)):
        exact = ordered[int(share * len(ordered)) - 1]
        assert exact / 1.25 <= value <= exact * 1.25


def test_parts_in_any_portions_give_the_same_figures() -> None:
    times = [100 * i * i for i in range(1, 200)]
    parts = [histogram(times[::3]), histogram(times[1::3]), histogram(times[2::3])]
    once = histogram(times).group_by("path", "from_us").agg(pl.col("hits").sum())
    assert read_response_times(pl.concat(parts), 10) == read_response_times(once, 10)


def test_the_slowest_paths_come_first_and_rare_ones_not_at_all() -> None:
    slow, fast, rare = (
        histogram([10**6] * 9, "/slow"),
        histogram([10] * 9),
        histogram([10**9], "/x"),
    )
    found = read_response_times(pl.concat([fast, rare, slow]), 10)
    assert [each.name for each in found.paths] == ["/slow", "/a"]
    assert [each.name for each in read_response_times(rare, 10).paths] == ["/x"]
    assert read_response_times(rare.clear(), 10).all is None
