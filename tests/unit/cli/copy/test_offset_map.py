"""Offsets are translated to the first copied record at or after them, whatever the gaps."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.copy.offset_map import OffsetMap, Run, runs_of
from barnabas.cli.copy.progress import Progress
from barnabas.types import TopicPartition

GAPS = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), max_size=30)
"""By record, how much its two offsets are above those of the record before it."""


def pairs(gaps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    sources = accumulate(gap for gap, _ in gaps)
    return list(zip(sources, accumulate(gap for _, gap in gaps), strict=True))


@given(GAPS)
def test_both_ways_lead_to_the_first_record_at_or_after_an_offset(
    gaps: list[tuple[int, int]],
) -> None:
    copied = OffsetMap(Run(source, target, 1) for source, target in pairs(gaps))
    ends = (0, 0) if not gaps else tuple(end + 1 for end in pairs(gaps)[-1])
    for offset in range(ends[0] + 2):
        expected = (target for source, target in pairs(gaps) if source >= offset)
        assert copied.to_target(offset) == next(expected, ends[1])
    for offset in range(ends[1] + 2):
        found = (source for source, target in pairs(gaps) if target >= offset)
        assert copied.to_source(offset) == next(found, ends[0])
    assert copied.record_count == len(gaps)


@given(GAPS)
def test_consecutive_records_are_one_run(gaps: list[tuple[int, int]]) -> None:
    copied = OffsetMap(Run(source, target, 1) for source, target in pairs(gaps))
    joins = sum(gap == (1, 1) for gap in gaps[1:])
    assert len(copied) == len(gaps) - joins


@given(st.lists(st.integers(1, 3), min_size=1), st.integers(0, 9))
def test_the_runs_of_a_batch_have_consecutive_targets(gaps: list[int], target: int) -> None:
    sources = list(accumulate(gaps))
    runs = list(runs_of(sources, target))
    found = [(run.source + n, run.target + n) for run in runs for n in range(run.size)]
    assert found == [(source, target + n) for n, source in enumerate(sources)]
    assert list(OffsetMap(runs)) == runs


def test_a_batch_without_gaps_is_one_run() -> None:
    assert list(runs_of(range(7, 10), 3)) == [Run(7, 3, 3)]


def test_runs_that_go_back_are_refused() -> None:
    copied = OffsetMap([Run(5, 5, 5)])
    with pytest.raises(ValueError, match="does not follow 10, 10"):
        copied.append(Run(9, 12, 1))


@given(GAPS, st.integers(0, 5))
def test_the_progress_is_read_as_it_was_written(gaps: list[tuple[int, int]], more: int) -> None:

    name = TopicPartition("a-topic-1", 2)
    written = OffsetMap(Run(source, target, 1) for source, target in pairs(gaps))
    progress = Progress("cluster")
    position = written.source_end + more
    for key, value in progress.runs_entries(name, list(written), 0, position):
        progress.apply(key, value)
        Progress("another cluster").apply(key, value)
    assert list(progress.maps[name]) == list(written)
    assert progress.maps[name].position == position


def test_a_topic_that_was_created_again_is_copied_from_its_start() -> None:

    name = TopicPartition("orders", 0)
    progress = Progress("cluster")
    progress.apply(*progress.topic_entry("orders", "1"))
    for entry in progress.runs_entries(name, [Run(0, 0, 5)], 0, 5):
        progress.apply(*entry)
    progress.apply(*progress.topic_entry("orders", "1"))
    assert progress.maps[name].position == 5
    progress.apply(*progress.topic_entry("orders", "2"))
    assert name not in progress.maps
