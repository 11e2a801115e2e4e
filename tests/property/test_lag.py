"""IN-5: whatever a group, its log and the looks at them do, a verdict claims nothing false."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.lag.history import History
from barnabas.client.lag.sample import Sample, Unread
from barnabas.client.lag.summary import add_up, slowest_member
from barnabas.client.lag.verdict import Basis, State, Verdict, judge
from barnabas.types import TopicPartition

WALL_MS = 1_795_281_471_000
PATIENCE_MS = 20_000

# What happens between two looks: ms that pass, offsets written (below 0: the log is cut), offsets
# committed (below 0: a reset), offsets deleted at the start, and who has the partition.
turns = st.lists(
    st.tuples(
        st.integers(1, 15_000),
        st.one_of(st.integers(0, 50), st.sampled_from([0, 0, -5])),
        st.one_of(st.integers(0, 60), st.sampled_from([0, 0, 0, 0, -3])),
        st.sampled_from([0, 0, 0, 7]),
        st.sampled_from(["m", "m", "m", "n", None]),
        st.integers(0, 3),  # how the look reads: not, in part, wholly, wholly without times
    ),
    min_size=1,
    max_size=40,
)


def _samples(story: list[tuple[int, int, int, int, str | None, int]]) -> list[Sample]:
    """Every third offset is a marker; timestamps are those of the moments of writing."""
    samples = []
    at_ms = start = end = 0
    committed: int | None = None
    for passed_ms, written, read, deleted, member, how in story:
        at_ms += passed_ms
        end = max(end + written, start)
        start = min(start + deleted, end)
        if read > 0:
            committed = min((committed or 0) + read, end + 2)
        elif read < 0 and committed is not None:
            committed = max(committed + read, 0)
        sample = Sample(at_ms, WALL_MS + at_ms, committed, start, end, None, member)
        if how:
            to = sample.position + sample.offsets // (2 if how == 1 else 1)
            records = sum(offset % 3 != 2 for offset in range(sample.position, to))
            first_ms = WALL_MS + at_ms - 100 if records and how < 3 else -1
            sample = sample._replace(unread=Unread(records, to, first_ms))
        samples.append(sample)
    return samples


def _check(verdict: Verdict, samples: list[Sample]) -> None:
    sample = samples[-1]
    assert sample.end is not None
    unread = sum(offset % 3 != 2 for offset in range(sample.position, sample.end))
    is_known = (sample.committed or 0) <= sample.end
    assert (verdict.records is not None) == is_known
    if verdict.records is not None:
        assert sample.least <= unread <= verdict.records
        assert not verdict.is_exact or verdict.records == unread
    assert (verdict.state is State.CAUGHT_UP) == (verdict.records == 0)
    assert verdict.age is None or verdict.age.seconds >= 0
    if verdict.catch_up_s is not None:
        assert (verdict.catch_up_s > 0) == (verdict.state is State.CATCHING_UP)
    if verdict.state is State.STOPPED:
        assert sample.member is None
    if verdict.state is State.STUCK:
        since = [each for each in samples if sample.at_ms - each.at_ms <= PATIENCE_MS]
        assert {(each.committed, each.member) for each in since} == {
            (sample.committed, sample.member)
        }
        assert sample.member is not None and unread
    if verdict.state in (State.CATCHING_UP, State.FALLING_BEHIND, State.STEADY) and verdict.pace:
        assert sum(a.committed != b.committed for a, b in pairwise(samples)) >= 2
    assert verdict.reason or verdict.state in (State.CAUGHT_UP, State.CATCHING_UP)


@given(story=turns)
def test_in_5_no_story_is_told_falsely(
    story: list[tuple[int, int, int, int, str | None, int]],
) -> None:
    history = History()
    samples = _samples(story)
    verdicts = []
    for number, sample in enumerate(samples, start=1):
        history.add(sample)
        verdicts.append(judge(history, PATIENCE_MS))
        _check(verdicts[-1], samples[:number])
    together = add_up(verdicts)
    assert together.state.severity == max(each.state.severity for each in verdicts)
    assert together.records == sum(each.records or 0 for each in verdicts)
    named = {TopicPartition("t", number): each for number, each in enumerate(verdicts)}
    slow = slowest_member(named)
    assert slow is None or slow.lag.state.severity <= together.state.severity


@given(
    ends=st.lists(st.tuples(st.integers(1, 5_000), st.integers(0, 20)), min_size=2, max_size=40),
    data=st.data(),
)
def test_in_5_an_interpolated_time_lies_between_the_looks(
    ends: list[tuple[int, int]], data: st.DataObject
) -> None:
    history = History()
    at_ms = end = 0
    looks: list[tuple[int, int]] = []
    for passed_ms, written in ends:
        at_ms, end = at_ms + passed_ms, end + written
        looks.append((end, at_ms))
        history.add(Sample(at_ms, WALL_MS + at_ms, 0, 0, end))
    offset = data.draw(st.integers(0, end + 2))
    arrived_ms = history.arrived_ms(offset)
    after = bisect_left(looks, (offset + 1, 0))  # the first look that saw the record
    if after in (0, len(looks)):
        assert arrived_ms is None
    else:
        assert arrived_ms is not None
        assert looks[after - 1][1] <= arrived_ms <= looks[after][1]


@given(
    read=st.integers(1, 1_000),
    growth=st.integers(0, 1_000),
    behind=st.integers(0, 10_000_000),
    step_ms=st.integers(100, 10_000),
    looks=st.integers(4, 100),
)
def test_in_5_constant_rates_are_measured_and_extrapolated(
    read: int, growth: int, behind: int, step_ms: int, looks: int
) -> None:
    history = History()
    for number in range(looks):
        end, committed = behind + number * (growth + read), number * read
        history.add(Sample(number * step_ms, WALL_MS, committed, 0, end, None, "m"))
    verdict = judge(history)
    pace = verdict.pace
    assert pace is not None
    assert pace.read_rate == pytest.approx(read * 1000 / step_ms)
    assert pace.write_rate == pytest.approx((growth + read) * 1000 / step_ms)
    assert pace.trend == pytest.approx(growth * 1000 / step_ms, rel=1e-6, abs=1e-6)
    if growth > read:
        assert verdict.state is State.FALLING_BEHIND
    else:
        assert verdict.state in (State.FALLING_BEHIND, State.STEADY, State.CAUGHT_UP)


@given(
    read=st.integers(2, 1_000),
    rest=st.integers(1, 1_000_000),
    step_ms=st.integers(100, 5_000),
    looks=st.integers(6, 100),
)
def test_in_5_a_group_is_caught_up_when_it_was_said_to_be(
    read: int, rest: int, step_ms: int, looks: int
) -> None:
    """Nobody writes, so the time to catch up is what is left, divided by the rate."""
    history = History()
    end = rest + (looks - 1) * read
    for number in range(looks):
        history.add(Sample(number * step_ms, WALL_MS, number * read, 0, end, None, "m"))
    verdict = judge(history)
    assert verdict.state is State.CATCHING_UP
    assert verdict.catch_up_s == pytest.approx(rest / (read * 1000 / step_ms), rel=1e-6)
    assert verdict.age is not None and verdict.age.basis is Basis.BOUND
