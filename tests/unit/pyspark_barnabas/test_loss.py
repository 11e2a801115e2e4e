"""Where a query goes on when its offsets are not in the log any more: one rule, as a table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.types import TopicPartition
from pyspark_barnabas.loss import Log, remainder, resume
from pyspark_barnabas.offsets import OffsetRange

WEB = TopicPartition("web", 3)

DELETED, CUT, LIKELY_NEW, NEW = (
    "were deleted from its log",
    "it is the same topic",
    "deleted and created again, or",
    "web: deleted and created again, with",
)


@pytest.mark.parametrize(
    ("position", "log", "begins", "loss"),
    [
        # Within the log, its ends included, nothing is lost.
        (10, Log(10, 20, True), 10, ""),
        (15, Log(10, 20, None), 15, ""),
        (20, Log(10, 20, True), 20, ""),
        (0, Log(0, 0, None), 0, ""),
        # Below it: retention.
        (9, Log(10, 20, True), 10, DELETED),
        (9, Log(10, 20, None), 10, DELETED),
        (0, Log(20, 20, True), 20, DELETED),
        # Above it: the same topic is not read again, one that may be new from its start.
        (21, Log(10, 20, True), 20, CUT),
        (21, Log(10, 20, None), 10, LIKELY_NEW),
        (5, Log(0, 0, True), 0, CUT),
        (5, Log(0, 0, None), 0, LIKELY_NEW),
        # Another topic, however long it is.
        (9, Log(10, 20, False), 10, NEW),
        (15, Log(0, 20, False), 0, NEW),
        (21, Log(0, 20, False), 0, NEW),
        (0, Log(0, 0, False), 0, NEW),
    ],
)
def test_where_the_driver_goes_on(position: int, log: Log, begins: int, loss: str) -> None:
    found = resume(WEB, position, log)
    assert found.position == begins
    assert loss in found.loss
    assert bool(loss) == bool(found.loss)


@pytest.mark.parametrize(
    ("start", "end", "log", "left", "loss"),
    [
        (10, 20, Log(10, 20, True), (10, 20), ""),
        (12, 15, Log(0, 99, None), (12, 15), ""),
        (5, 15, Log(10, 20, True), (10, 15), DELETED),
        (5, 8, Log(10, 20, True), (8, 8), DELETED),
        (15, 25, Log(10, 20, True), (15, 20), CUT),
        (15, 25, Log(10, 20, None), (15, 20), LIKELY_NEW),
        (21, 25, Log(10, 20, True), (25, 25), CUT),
        (21, 25, Log(10, 20, None), (25, 25), LIKELY_NEW),
        (5, 25, Log(10, 20, True), (10, 20), DELETED),
        (12, 15, Log(10, 20, False), (15, 15), NEW),
        (0, 15, Log(10, 20, False), (15, 15), NEW),
    ],
)
def test_what_a_task_can_still_read(
    start: int, end: int, log: Log, left: tuple[int, int], loss: str
) -> None:
    wanted = OffsetRange(WEB, start, end, "id")
    assert remainder(wanted, log)[0] == OffsetRange(WEB, *left, "id")
    assert loss in remainder(wanted, log)[1]
    assert bool(loss) == bool(remainder(wanted, log)[1])


OFFSETS = st.integers(0, 12)


@given(OFFSETS, OFFSETS, OFFSETS, OFFSETS, st.sampled_from([True, False, None]))
def test_driver_and_tasks_agree(a: int, b: int, c: int, d: int, is_same: bool | None) -> None:
    """A task reads what is in its range and in the log, if that is of its topic; the driver goes on
    within the log, and never again over what a task has read of the same topic."""
    start, end = sorted((a, b))
    log = Log(*sorted((c, d)), is_same)
    left, loss = remainder(OffsetRange(WEB, start, end), log)
    there = set() if is_same is False else set(range(start, end)) & set(range(log.start, log.end))
    assert set(range(left.start, left.end)) == there
    assert bool(loss) == (is_same is False or not log.start <= start <= end <= log.end)
    following = resume(WEB, end, log)
    assert log.start <= following.position <= log.end
    if is_same:
        assert following.position >= left.end or left.start >= left.end
