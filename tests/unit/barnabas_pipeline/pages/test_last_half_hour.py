"""The counts of the last half hour, against a plain count of the same rows."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import NamedTuple

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_pipeline.pages.last_half_hour import (
    FIELDS,
    LEADERS,
    MINUTE_MS,
    MINUTES,
    MOST_VALUES,
    MOST_VISITORS,
    ONLINE_MS,
    SLICE_MS,
    LastHalfHour,
)
from barnabas_pipeline.pages.shapes import Now
from tests.kit.shapes import misfits

NOW_MS = 1_790_000_000_000


class Hit(NamedTuple):
    time_ms: int
    visitor: str | None = None
    is_error: bool = False
    is_rejected: bool = False
    page: str | None = None


SCHEMA = {**FIELDS, "page": pl.String}


def rows(hits: list[Hit]) -> pl.DataFrame:
    return pl.DataFrame(hits, schema=SCHEMA, orient="row")


def counted(*hits: Hit, now_ms: int = NOW_MS) -> LastHalfHour:
    counts = LastHalfHour(["page"])
    counts.add(rows([*hits]), now_ms)
    return counts


HITS = st.builds(
    Hit,
    st.integers(NOW_MS - 40 * MINUTE_MS, NOW_MS + 3 * MINUTE_MS),
    st.sampled_from([None, "a", "b", "c"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, "/", "/basket", "/checkout"]),
)
BATCHES = st.lists(st.tuples(st.integers(0, 20 * MINUTE_MS), st.lists(HITS, max_size=8)))


@given(BATCHES)
def test_the_figures_are_those_of_a_plain_count(batches: list[tuple[int, list[Hit]]]) -> None:
    counts = LastHalfHour(["page"])
    kept: list[Hit] = []
    at_ms = NOW_MS
    for pause_ms, hits in batches:
        at_ms += pause_ms
        counts.add(rows(hits), at_ms)
        oldest = (at_ms // MINUTE_MS - MINUTES + 1) * MINUTE_MS
        now = [each._replace(time_ms=min(each.time_ms, at_ms)) for each in hits]
        kept = [each for each in (*kept, *now) if each.time_ms >= oldest]
    found = counts.show(at_ms)
    assert list(misfits(found, Now)) == []
    good = [each for each in kept if not each.is_rejected]
    assert found["hits"] == len(good)
    assert found["rejected"] == len(kept) - len(good)
    assert found["errors"] == sum(each.is_error for each in good)
    of_minutes = Counter(each.time_ms // MINUTE_MS * MINUTE_MS for each in good)
    assert {each["at"]: each["hits"] for each in found["minutes"] if each["hits"]} == of_minutes
    assert [each["at"] for each in found["minutes"]] == [
        (at_ms // MINUTE_MS - back) * MINUTE_MS for back in range(MINUTES - 1, -1, -1)
    ]
    first = (at_ms - ONLINE_MS) // SLICE_MS + 1
    recent = [each for each in good if each.time_ms // SLICE_MS >= first]
    assert found["online"] == len({each.visitor for each in recent} - {None})
    pages = Counter(each.page for each in good if each.page is not None)
    assert {each["label"]: each["count"] for each in counts.top("page")} == pages


def test_old_records_are_not_of_this_half_hour() -> None:
    found = counted(Hit(NOW_MS - 31 * MINUTE_MS), Hit(0), Hit(NOW_MS)).show(NOW_MS)
    assert (found["hits"], found["older"]) == (1, 2)


def test_a_minute_leaves_and_a_visitor_is_no_longer_there() -> None:
    counts = counted(Hit(NOW_MS, "a", page="/"))
    assert counts.show(NOW_MS)["online"] == 1
    later = counts.show(NOW_MS + ONLINE_MS + SLICE_MS)
    assert (later["hits"], later["online"]) == (1, 0)
    assert counts.show(NOW_MS + MINUTES * MINUTE_MS)["hits"] == 0
    assert counts.top("page") == []


@pytest.mark.parametrize("time_ms", [-(2**62), -1, 0, NOW_MS + 1, 2**62])
def test_an_impossible_time_is_harmless(time_ms: int) -> None:
    found = counted(Hit(time_ms, "a")).show(NOW_MS)
    assert found["hits"] + found["older"] == 1
    assert len(found["minutes"]) == MINUTES


def test_with_too_many_values_the_frequent_ones_remain() -> None:
    counts = LastHalfHour(["page"])
    for batch in range(5):
        many = [Hit(NOW_MS, page=f"/{batch}/{each}") for each in range(MOST_VALUES)]
        counts.add(rows([*many, *[Hit(NOW_MS, page="/")] * 3]), NOW_MS)
    assert counts.is_partial
    assert counts.top("page")[0] == {"label": "/", "count": 15}
    assert len(counts.top("page")) == LEADERS
    assert len(counts.totals("page")) <= 2 * MOST_VALUES
    assert counts.show(NOW_MS)["hits"] == 5 * (MOST_VALUES + 3)


def test_one_batch_of_too_many_values_is_bounded_as_well() -> None:
    many = [Hit(NOW_MS, page="/")] * 2
    many += [Hit(NOW_MS, page=f"/{each}") for each in range(10 * MOST_VALUES)]
    counts = counted(*many)
    assert counts.is_partial
    assert counts.top("page")[0] == {"label": "/", "count": 2}
    assert len(counts.totals("page")) <= 2 * MOST_VALUES


def test_a_long_value_is_shortened() -> None:
    [leader] = counted(Hit(NOW_MS, page="/" + "x" * 100_000)).top("page")
    assert len(leader["label"]) == 300


@pytest.mark.parametrize("slices", [1, 3])
def test_a_great_number_of_visitors_is_estimated(slices: int) -> None:
    """In at most `MOST_VISITORS` hashes each slice, with an error of about one per cent."""
    counts = LastHalfHour(["page"])
    many = 20 * MOST_VISITORS
    for slice_ in range(slices):
        at_ms = NOW_MS - slice_ * SLICE_MS
        for first in range(0, many, many // 4):
            people = range(first + slice_ * 1_000, first + slice_ * 1_000 + many // 4)
            counts.add(rows([Hit(at_ms, f"visitor-{each}") for each in people]), NOW_MS)
    assert counts.online(NOW_MS) == pytest.approx(many + (slices - 1) * 1_000, rel=0.05)
    assert len(pickle.dumps(counts)) < slices * MOST_VISITORS * 8 + 10_000
