"""What a leader remembers of a follower's fetches."""

from __future__ import annotations

from barnabas.replication.follower_state import NEVER_MS, FollowerFetch, FollowerState


def _fetch(offset: int) -> FollowerFetch:
    return FollowerFetch(1, offset)


def test_caught_up_is_who_reaches_the_end_of_the_fetch_before() -> None:
    """RE-8: by time, however far behind in records."""
    follower = FollowerState()
    follower.on_fetch(_fetch(0), 100, 1_000)
    assert follower.caught_up_at_ms == NEVER_MS
    follower.on_fetch(_fetch(100), 5_100, 2_000)
    assert follower.caught_up_at_ms == 1_000
    follower.on_fetch(_fetch(200), 5_100, 3_000)
    assert follower.caught_up_at_ms == 1_000
    follower.on_fetch(_fetch(5_100), 5_100, 4_000)
    assert follower.caught_up_at_ms == 4_000


def test_the_end_counts_at_any_time_and_time_at_any_end() -> None:
    follower = FollowerState(caught_up_at_ms=500)
    assert follower.is_caught_up(0, 510, 10)
    assert not follower.is_caught_up(0, 511, 10)
    follower.on_fetch(_fetch(7), 9, 600)
    assert follower.caught_up_at_ms == 500, "the first fetch has none before it"
    assert follower.is_caught_up(7, 10_000, 10)
    assert not follower.is_caught_up(8, 10_000, 10)


def test_a_clock_that_stands_still_takes_nothing_back() -> None:
    follower = FollowerState(caught_up_at_ms=500)
    follower.on_fetch(_fetch(1), 1, 400)
    assert follower.caught_up_at_ms == 500
