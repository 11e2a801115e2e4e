"""Offsets of a query: what the checkpoint holds, and what is planned from it alone."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import CorruptData
from barnabas.types import TopicPartition
from pyspark_barnabas.offsets import (
    OffsetRange,
    StreamOffset,
    pack,
    ranges_between,
    shares,
    split,
)

WEB_0, WEB_1, LOG_0 = (TopicPartition(*each) for each in (("web", 0), ("web", 1), ("log", 0)))
NOTHING = StreamOffset({}, {})


def test_the_json_is_the_connectors_plus_the_start() -> None:
    offset = StreamOffset({WEB_1: 55, WEB_0: 120}, {WEB_1: 40})
    assert json.dumps(offset.to_json()) == (
        '{"@start": {"web": {"1": 40}}, "web": {"0": 120, "1": 55}}'
    )
    assert StreamOffset.from_json(offset.to_json()) == offset
    assert StreamOffset({LOG_0: 1}, {}).to_json() == {"log": {"0": 1}}


def test_the_ids_of_topics_stand_beside_their_numbers() -> None:
    offset = StreamOffset({WEB_0: 120, LOG_0: 7}, {}, {"web": "b", "log": "a"})
    assert json.dumps(offset.to_json()) == (
        '{"@ids": {"log": "a", "web": "b"}, "log": {"0": 7}, "web": {"0": 120}}'
    )
    assert StreamOffset.from_json(offset.to_json()) == offset
    begun = StreamOffset({WEB_0: 100, LOG_0: 7}, {}, {"web": "a"})
    assert ranges_between(begun, offset) == [OffsetRange(WEB_0, 100, 120, "b")]


def test_an_offset_that_covers_nothing_is_not_the_start_of_a_query() -> None:
    assert NOTHING.to_json() == {"@start": {}}
    assert StreamOffset.from_json({"@start": {}}) == NOTHING


@pytest.mark.parametrize(
    "encoded", [{"web": 5}, {"web": {"x": 5}}, {"web": {"0": None}}, [1], {"@ids": 1}]
)
def test_a_foreign_offset_is_refused(encoded: object) -> None:
    with pytest.raises(CorruptData, match="not an offset of format barnabas"):
        StreamOffset.from_json(encoded)  # type: ignore[arg-type]


def test_ranges_begin_where_the_offset_before_ended_unless_a_start_is_pinned() -> None:
    before = StreamOffset({WEB_0: 10, LOG_0: 7}, {WEB_0: 0})
    after = StreamOffset({WEB_0: 30, WEB_1: 5, LOG_0: 7}, {WEB_1: 2})
    assert ranges_between(before, after) == [OffsetRange(WEB_0, 10, 30), OffsetRange(WEB_1, 2, 5)]
    lost = StreamOffset({WEB_0: 30, LOG_0: 7}, {WEB_0: 25})
    assert ranges_between(before, lost) == [OffsetRange(WEB_0, 25, 30)]


def test_a_partition_without_a_beginning_is_an_error() -> None:
    with pytest.raises(CorruptData, match=r"no start for web-0: .*Let it finish the batch"):
        ranges_between(NOTHING, StreamOffset({WEB_0: 5}, {}))


@given(
    st.dictionaries(
        st.builds(TopicPartition, st.just("t"), st.integers(0, 20)), st.integers(0, 10**6)
    ),
    st.integers(1, 2 * 10**6),
)
def test_shares_never_exceed_the_limit_and_use_it_up(
    backlog: dict[TopicPartition, int], limit: int
) -> None:
    granted = shares(backlog, limit)
    assert granted.keys() == backlog.keys()
    assert all(0 <= granted[each] <= backlog[each] for each in backlog)
    assert sum(granted.values()) == min(limit, sum(backlog.values()))
    waiting = [each for each in backlog if backlog[each]]
    if len(waiting) <= limit:
        assert all(granted[each] for each in waiting), "no partition starves"


def test_shares_are_in_proportion() -> None:
    assert shares({WEB_0: 9000, WEB_1: 1000}, 100) == {WEB_0: 90, WEB_1: 10}
    assert shares({WEB_0: 9000, WEB_1: 1000}, 1) == {WEB_0: 1, WEB_1: 0}


def test_split_by_count_and_by_size() -> None:
    whole = [OffsetRange(WEB_0, 10, 110), OffsetRange(WEB_1, 0, 10)]
    assert split(whole, None, None) == whole
    assert split([], 4, 5) == []
    by_size = split(whole, None, 40)
    assert [each.size for each in by_size] == [33, 33, 34, 10]
    by_count = split(whole, 11, None)
    assert [each.size for each in by_count] == [10] * 11
    assert split(whole, 2, None) == whole
    for pieces in (by_size, by_count):
        web_0 = [each for each in pieces if each.topic_partition == WEB_0]
        assert (web_0[0].start, web_0[-1].end) == (10, 110)
        assert all(a.end == b.start for a, b in itertools.pairwise(web_0))


@given(st.lists(st.integers(1, 20), max_size=30), st.integers(1, 40))
def test_packed_ranges_keep_their_order_and_fill_each_list(sizes: list[int], most: int) -> None:
    ranges = [OffsetRange(TopicPartition("t", n), 0, size) for n, size in enumerate(sizes)]
    lists = pack(ranges, most)
    assert [each for some in lists for each in some] == ranges
    totals = [sum(each.size for each in some) for some in lists]
    assert all(total <= most or len(some) == 1 for total, some in zip(totals, lists, strict=True))
    for total, following in itertools.pairwise(lists):
        assert sum(each.size for each in total) + following[0].size > most, "no list ends early"
