"""The filters in an address: what they are, and that no text breaks them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.problem import WebProblem
from barnabas_pipeline.pages.filters import Filters, Period, parse

NAMES = ("page", "source")
PARAMETERS = st.sampled_from((*NAMES, "since", "until", "compare", "compare_until", "other"))
TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(("2026-03-01", "2026-03-02T12:00", "9999-12-31", "0001-01-01", "before", "~")),
)


@given(st.lists(st.tuples(PARAMETERS, TEXTS), max_size=6))
def test_any_text_gives_filters_or_a_problem(pairs: list[tuple[str, str]]) -> None:
    try:
        found = parse(pairs, NAMES)
    except WebProblem as problem:
        assert problem.status == 400
    else:
        assert isinstance(found, Filters)
        assert set(found.values) <= set(NAMES)
        since_us, until_us = found.period
        assert since_us is None or until_us is None or since_us < until_us


def micros(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


def test_the_last_day_is_included_and_the_last_minute_is_not() -> None:
    days = parse([("since", "2026-03-01"), ("until", "2026-03-07")], NAMES)
    assert days.period == Period(micros("2026-03-01"), micros("2026-03-08"))
    minutes = parse([("until", "2026-03-07T12:00")], NAMES)
    assert minutes.period == Period(None, micros("2026-03-07T12:00"))


def test_a_comparison_with_the_period_before() -> None:
    found = parse([("since", "2026-03-08"), ("until", "2026-03-14"), ("compare", "before")], NAMES)
    assert found.other == Period(micros("2026-03-01"), micros("2026-03-08"))


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([("since", "2026-03-08"), ("until", "2026-03-01")], "until has to be after since"),
        ([("compare", "before")], "give since and until"),
        ([("since", "yesterday")], "since=yesterday"),
        ([("page", "x")] * 51, "page: at most 50 values"),
        ([("page", "x" * 2_001)], "page: at most 2000 characters"),
    ],
)
def test_a_problem_names_its_parameter(pairs: list[tuple[str, str]], said: str) -> None:
    with pytest.raises(WebProblem, match=said):
        parse(pairs, NAMES)
