"""Computes histograms of response times in fixed buckets, each a fifth wider than the one before.
Pure.

All paths and batches use the same buckets, so the histograms of several batches or paths are merged
by addition. A quantile is within one bucket's width of the exact value.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

import polars as pl

_STEPS_PER_OCTAVE: Final = 4
_OCTAVES: Final = 40  # up to twelve days
BOUNDS: Final = (
    0,
    *sorted({round(2 ** (i / _STEPS_PER_OCTAVE)) for i in range(_STEPS_PER_OCTAVE * _OCTAVES)}),
)
"""The lower bounds of the buckets, in microseconds."""
_NEXT: Final = dict(pairwise(BOUNDS))
_FEWEST_HITS: Final = 5
_QUANTILES: Final = (0.5, 0.95, 0.99)


class Times(NamedTuple):
    """The response times of some hits, in microseconds."""

    name: str
    hits: int
    p50_us: int
    p95_us: int
    p99_us: int


class ResponseTimes(NamedTuple):
    """The response times of all timed hits, and of the slowest paths."""

    all: Times | None
    paths: list[Times]


def bucket_bounds(times_us: pl.Series) -> pl.Series:
    """Return the lower bound of each time's bucket."""
    bounds = pl.Series(BOUNDS, dtype=pl.Int64)
    # A proxy whose clock was set back may have logged a negative time.
    places = bounds.search_sorted(times_us.clip(0), side="right")
    return bounds.gather(places.cast(pl.Int64) - 1)


def read_response_times(histograms: pl.DataFrame, kept: int) -> ResponseTimes:
    """Return the times for all hits, and for the paths with the highest 95th percentiles.

    `histograms`: rows of the table `response_times`. A path with only a few hits is not ranked.
    """
    if not histograms.height:
        return ResponseTimes(None, [])
    whole = histograms.select(pl.lit("all").alias("path"), "from_us", "hits")
    (total,) = _times(whole)
    by_path = _times(histograms.select("path", "from_us", "hits"))
    often = [each for each in by_path if each.hits >= min(_FEWEST_HITS, total.hits)]
    slowest = sorted(often, key=lambda each: (-each.p95_us, -each.hits, each.name))
    return ResponseTimes(total, slowest[:kept])


def _times(rows: pl.DataFrame) -> list[Times]:
    summed = rows.group_by("path", "from_us").agg(pl.col("hits").sum()).sort("path", "from_us")
    grouped = summed.group_by("path", maintain_order=True).agg("from_us", "hits")
    found = []
    for path, bounds, hits in grouped.iter_rows():
        p50, p95, p99 = (_quantile(bounds, hits, share) for share in _QUANTILES)
        found.append(Times(path, sum(hits), p50, p95, p99))
    return found


def _quantile(bounds: list[int], hits: list[int], share: float) -> int:
    """Return the response time that is not exceeded by this share of the hits.

    The value is interpolated, on the assumption that the hits in a bucket are spread evenly over
    it.
    """
    wanted = share * sum(hits)
    before = 0
    for bound, count in zip(bounds, hits, strict=True):
        if before + count >= wanted:
            width = _NEXT.get(bound, bound) - bound
            return bound + round(width * (wanted - before) / count)
        before += count
    return bounds[-1]
