"""The rate of quotas against a plain reading of what Kafka measures, the bucket of topic changes
(KIP-599), the average of throttle times, and known cases of each."""

from __future__ import annotations

from math import floor
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.quotas.measures import MAX_THROTTLE_MS, Average, Rate, TokenBucket, Windows


class Recorded(NamedTuple):
    """One sample: when it began and was last written, and the values in it."""

    start_ms: int
    last_ms: int
    values: tuple[float, ...]


class NaiveRate:
    """All samples there ever were, and the obsolete ones left out when looking."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.samples: list[Recorded] = []

    def record(self, value: float, now_ms: int) -> None:
        if self.samples and now_ms - self.samples[-1].start_ms < self.windows.length_ms:
            start_ms, _, values = self.samples.pop()
            self.samples.append(Recorded(start_ms, now_ms, (*values, value)))
        else:
            self.samples.append(Recorded(now_ms, now_ms, (value,)))

    def live(self, now_ms: int) -> list[Recorded]:
        kept, length_ms = self.windows
        ring = self.samples[-(kept + 1) :]
        return [each for each in ring if now_ms - each.last_ms < kept * length_ms]

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        kept, length_ms = self.windows
        live = self.live(now_ms)
        passed_ms = now_ms - min([each.start_ms for each in live], default=now_ms)
        while passed_ms // length_ms < kept - 1:
            passed_ms += length_ms
        covered_ms = max(1, passed_ms)
        observed = sum(sum(each.values) for each in live) / (covered_ms / 1_000)
        if observed <= limit:
            return 0
        return min(MAX_THROTTLE_MS, floor((observed - limit) / limit * covered_ms + 0.5))


@given(
    windows=st.builds(Windows, st.integers(1, 12), st.sampled_from([100, 1_000, 2_000])),
    steps=st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 100_000)), max_size=60),
    limit=st.integers(1, 50_000),
)
def test_se_5_the_throttle_time_is_that_of_a_plain_reading(
    windows: Windows, steps: list[tuple[int, int]], limit: int
) -> None:
    rate, naive, now_ms = Rate(windows), NaiveRate(windows), 5_000
    for passed_ms, value in steps:
        now_ms += passed_ms
        rate.record(value, now_ms)
        naive.record(value, now_ms)
        assert rate.throttle_ms(limit, now_ms) == pytest.approx(
            naive.throttle_ms(limit, now_ms), abs=1
        )


def test_se_5_a_burst_of_ten_seconds_worth_is_not_throttled() -> None:
    rate = Rate(Windows())
    rate.record(10_000, 77)
    assert rate.throttle_ms(1_000, 77) == 0
    rate.record(500, 77)
    assert rate.throttle_ms(1_000, 77) == 500


def test_se_5_after_the_throttle_time_the_rate_is_at_the_limit() -> None:
    rate = Rate(Windows())
    rate.record(15_000, 0)
    wait_ms = rate.throttle_ms(1_000, 0)
    assert wait_ms == 5_000
    assert rate.throttle_ms(1_000, 10_900) < rate.throttle_ms(1_000, 5_000)


def test_se_5_what_is_older_than_all_windows_is_forgotten() -> None:
    rate = Rate(Windows())
    rate.record(1_000_000, 0)
    assert rate.throttle_ms(1, 10_999) > 0
    assert rate.throttle_ms(1, 11_000) == 0


def test_se_5_what_is_taken_back_does_not_count() -> None:
    rate = Rate(Windows())
    rate.record(20_000, 0)
    rate.record(-20_000, 0)
    assert (rate.per_second(0), rate.throttle_ms(1, 0)) == (0, 0)


def test_se_5_a_limit_of_zero_lets_nothing_more_pass() -> None:
    rate = Rate(Windows())
    assert rate.throttle_ms(0, 0) == 0
    rate.record(1, 0)
    assert rate.throttle_ms(0, 0) == MAX_THROTTLE_MS


def test_se_5_a_new_bucket_holds_a_burst() -> None:
    bucket = TokenBucket(Windows())
    assert bucket.tokens(2.0, 123) == 22.0


def test_se_5_one_request_may_overdraw_it_and_then_it_fills_at_the_limit() -> None:
    bucket = TokenBucket(Windows())
    bucket.take(32, 2.0, 0)
    assert bucket.throttle_ms(2.0, 0) == 5_000
    assert bucket.throttle_ms(2.0, 4_000) == 1_000
    assert bucket.throttle_ms(2.0, 5_000) == 0
    assert bucket.tokens(2.0, 3_600_000) == 22.0


def test_se_5_without_a_limit_above_zero_it_never_fills() -> None:
    bucket = TokenBucket(Windows())
    assert bucket.throttle_ms(0.0, 0) == 0
    bucket.take(1, 0.0, 0)
    assert bucket.throttle_ms(0.0, 10_000) == MAX_THROTTLE_MS


@given(
    takes=st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 50)), max_size=30),
    limit=st.integers(1, 20),
)
def test_se_5_its_tokens_are_what_came_less_what_was_taken(
    takes: list[tuple[int, int]], limit: int
) -> None:
    bucket, now_ms = TokenBucket(Windows()), 1_000
    milli_tokens, burst = 11_000 * limit, 11_000 * limit
    for passed_ms, count in takes:
        now_ms += passed_ms
        milli_tokens = min(burst, milli_tokens + limit * passed_ms) - 1_000 * count
        bucket.take(count, float(limit), now_ms)
        assert abs(bucket.tokens(float(limit), now_ms) * 1_000 - milli_tokens) < 1e-3
        assert (bucket.throttle_ms(float(limit), now_ms) == 0) == (milli_tokens > -limit / 2)


def test_se_5_an_average_is_of_the_last_windows() -> None:
    average = Average(Windows(kept=2, length_ms=1_000))
    assert average.value(0) == 0
    average.record(10, 0)
    average.record(20, 999)
    assert average.value(1_000) == 15
    average.record(60, 1_500)
    assert average.value(1_999) == 30
    assert average.value(2_000) == 60
    assert average.value(3_500) == 0
