"""The rate of quotas against a plain reading of what Kafka measures, and known cases of it."""

from __future__ import annotations

from math import floor
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.quotas.rate import MAX_THROTTLE_MS, Rate, Windows


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
