"""What a leader remembers of a follower's fetches."""

from __future__ import annotations

from barnabas.replication.follower_state import NEVER_MS, FollowerFetch, Remote


def _fetch(offset: int) -> FollowerFetch:
    return FollowerFetch(1, offset)


def test_caught_up_is_who_reaches_the_end_of_the_fetch_before() -> None:
    """RE-8: by time, however far behind in records."""
    remote = Remote()
    remote.fetched(_fetch(0), 100, 1_000)
    assert remote.caught_up_at_ms == NEVER_MS
    remote.fetched(_fetch(100), 5_100, 2_000)
    assert remote.caught_up_at_ms == 1_000
    remote.fetched(_fetch(200), 5_100, 3_000)
    assert remote.caught_up_at_ms == 1_000
    remote.fetched(_fetch(5_100), 5_100, 4_000)
    assert remote.caught_up_at_ms == 4_000


def test_the_end_counts_at_any_time_and_time_at_any_end() -> None:
    remote = Remote(caught_up_at_ms=500)
    assert remote.is_caught_up(0, 510, 10)
    assert not remote.is_caught_up(0, 511, 10)
    remote.fetched(_fetch(7), 9, 600)
    assert remote.caught_up_at_ms == 500, "the first fetch has none before it"
    assert remote.is_caught_up(7, 10_000, 10)
    assert not remote.is_caught_up(8, 10_000, 10)


def test_a_clock_that_stands_still_takes_nothing_back() -> None:
    remote = Remote(caught_up_at_ms=500)
    remote.fetched(_fetch(1), 1, 400)
    assert remote.caught_up_at_ms == 500
