"""The token bucket of topic changes (KIP-599)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.quotas.rate import MAX_THROTTLE_MS, Windows
from barnabas.broker.quotas.token_bucket import TokenBucket


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
