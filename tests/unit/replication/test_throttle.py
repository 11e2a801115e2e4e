"""The rate of throttled replication (RE-13, KIP-73): windows as Kafka's SimpleRate has them."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.replication.throttle import NO_LIMIT, Throttle


def throttle(bytes_per_s: int) -> Throttle:
    made = Throttle(1)
    made.bytes_per_s = bytes_per_s
    return made


@pytest.mark.parametrize(
    ("listed", "covered"),
    [
        ("*", [0, 1, 2, 3]),
        ("0:1,1:2,3:1", [0, 3]),
        ("0:2", []),
        ("0:11,2:1", [2]),
    ],
)
def test_re_13_which_replicas(listed: str, covered: list[int]) -> None:
    """Each broker looks for its own id."""
    made = throttle(1)
    for _ in range(2):
        assert [index for index in range(4) if made.covers(listed, index)] == covered


def test_no_limit_is_none() -> None:
    made = throttle(NO_LIMIT)
    made.record(1 << 60, 0)
    assert made.wait_ms(0, 1 << 60) == 0


def test_re_13_a_windows_bytes_may_come_at_once() -> None:
    made = throttle(100)
    assert made.wait_ms(0) == 0
    made.record(100, 0)
    assert made.wait_ms(0) == 0
    made.record(1, 0)
    assert made.wait_ms(0) > 0


def test_re_13_what_came_too_fast_is_waited_for() -> None:
    made = throttle(100)
    made.record(350, 0)
    assert made.wait_ms(0) == 3_500
    assert made.wait_ms(3_000) == 500
    assert made.wait_ms(3_500) == 0
    made.record(100, 3_500)
    assert made.wait_ms(3_500) == 1_000


def test_re_13_what_is_under_way_counts() -> None:
    made = throttle(100)
    assert made.wait_ms(0, 100) == 0
    assert made.wait_ms(0, 101) > 0
    made.record(60, 0)
    assert made.wait_ms(500, 40) == 0
    assert made.wait_ms(500, 50) == 600


def test_re_13_a_window_is_forgotten_after_its_time() -> None:
    made = throttle(1)
    made.window_count, made.window_ms = 3, 2_000
    made.record(1_000, 0)
    assert made.wait_ms(1_000) == 5_000
    assert made.wait_ms(5_999) == 1
    assert made.wait_ms(6_000) == 0


def test_re_13_a_rate_of_zero_lets_one_answer_through_in_eleven_seconds() -> None:
    """As in Kafka."""
    made = throttle(0)
    assert made.wait_ms(0) == 0
    made.record(10, 0)
    assert made.wait_ms(4_000) == 7_000
    assert made.wait_ms(11_000) == 0


@given(
    st.lists(st.tuples(st.integers(0, 3_000), st.integers(1, 400)), min_size=1, max_size=60),
    st.integers(100, 1_000),
)
def test_re_13_the_rate_is_kept(steps: list[tuple[int, int]], bytes_per_s: int) -> None:
    """Over any eleven seconds: the rate, one window's burst, and the last answer."""
    made = throttle(bytes_per_s)
    copied: list[tuple[int, int]] = []
    times = accumulate(pause_ms for pause_ms, _ in steps)
    for now_ms, (_, size_bytes) in zip(times, steps, strict=True):
        if not made.wait_ms(now_ms):
            made.record(size_bytes, now_ms)
            copied.append((now_ms, size_bytes))
    for began_ms, _ in copied:
        within = [size for at_ms, size in copied if began_ms <= at_ms < began_ms + 10_000]
        assert sum(within) <= bytes_per_s * (10 + 11) + 400
