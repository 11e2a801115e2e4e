"""IN-5: what the samples of a group in a partition say about its lag."""

from __future__ import annotations

import pytest

from barnabas.client.lag.history import PRESENT_MS, WINDOW_MS, History
from barnabas.client.lag.sample import Sample, Unread
from barnabas.client.lag.verdict import PATIENCE_MS, Age, Basis, State, Verdict, judge

NOW_MS = 1_795_281_471_000  # by the wall clock, when the monotonic one is at 0


def sample(
    at_s: float,
    committed: int | None,
    end: int | None,
    unread: Unread | None = None,
    *,
    start: int = 0,
    member: str | None = "m",
) -> Sample:
    at_ms = round(at_s * 1000)
    return Sample(at_ms, NOW_MS + at_ms, committed, start, end, unread, member)


def all_read(committed: int, end: int, first_s: float = 0.0) -> Unread:
    """Everything between was read, and each offset holds a record."""
    return Unread(end - committed, end, NOW_MS + round(first_s * 1000))


def verdict(*samples: Sample) -> Verdict:
    history = History()
    for each in samples:
        history.add(each)
    return judge(history)


def paced(read: int, write: int, behind: int, seconds: int = 30, step_s: int = 1) -> list[Sample]:
    """A look per second at a group that commits every `step_s` seconds; rates are per second."""
    samples = []
    for at_s in range(seconds + 1):
        committed = at_s // step_s * step_s * read
        end = behind + at_s * write
        samples.append(sample(at_s, committed, end, all_read(committed, end, at_s)))
    return samples


def test_in_5_nothing_unread_is_caught_up() -> None:
    found = verdict(sample(0, 10, 10))
    assert (found.state, found.records, found.is_exact) == (State.CAUGHT_UP, 0, True)
    assert found.age == Age(0.0, Basis.RECORD)
    assert (found.catch_up_s, found.reason) == (0.0, "")


def test_in_5_offsets_without_records_are_no_lag() -> None:
    found = verdict(sample(0, 9, 10, Unread(0, 10)))
    assert (found.state, found.records, found.is_exact) == (State.CAUGHT_UP, 0, True)
    assert found.reason.startswith("1 offset without records to read: transaction markers")


def test_in_5_a_number_that_was_not_counted_is_a_bound() -> None:
    found = verdict(sample(0, 0, 10))
    assert (found.records, found.is_exact) == (10, False)
    # Four records were found in the first six offsets; the other four may hold one each.
    found = verdict(sample(0, 0, 10, Unread(4, 6, NOW_MS)))
    assert (found.records, found.is_exact) == (8, False)


def test_in_5_never_committed_counts_from_the_start_of_the_log() -> None:
    found = verdict(sample(0, None, 10, Unread(8, 10, NOW_MS - 5000), start=2))
    assert (found.records, found.is_exact) == (8, True)
    assert found.age == Age(5.0, Basis.RECORD)
    assert found.state is State.UNKNOWN and "committed nothing" in found.reason


@pytest.mark.parametrize("unread", [None, Unread(5, 5), Unread(5, 5, NOW_MS + 60_000)])
def test_in_5_without_a_usable_time_the_age_comes_from_the_looks(unread: Unread | None) -> None:
    """The record was not read, has no time, or has one of the future."""
    first = sample(0, 0, 0)
    found = verdict(first, sample(2, 0, 4, unread), sample(5, 0, 10, unread))
    assert found.age == Age(5.0, Basis.WATCH)  # it came right after the first look
    # Offset 2 came in the middle between the looks at 0 s and 2 s.
    found = verdict(first, sample(2, 2, 4, unread), sample(5, 2, 10, unread))
    assert found.age == Age(4.0, Basis.WATCH)
    # Offset 7 came in the middle between 2 s and 5 s.
    found = verdict(first, sample(2, 4, 4), sample(5, 7, 10, unread), sample(6, 7, 10, unread))
    assert found.age == Age(2.5, Basis.WATCH)
    # It was there before the first look.
    found = verdict(sample(0, 0, 5), sample(4, 2, 5, unread))
    assert found.age == Age(4.0, Basis.BOUND)


def test_in_5_a_slow_consumer_falls_behind_and_never_catches_up() -> None:
    found = verdict(*paced(read=10, write=30, behind=100))
    assert found.state is State.FALLING_BEHIND
    assert found.pace is not None
    assert (found.pace.read_rate, found.pace.write_rate) == (10.0, 30.0)
    assert found.pace.trend == pytest.approx(20.0)
    assert found.catch_up_s is None


def test_in_5_the_time_to_catch_up_is_that_of_the_present_rate() -> None:
    found = verdict(*paced(read=30, write=10, behind=1000, seconds=10))
    assert found.state is State.CATCHING_UP
    assert found.sample.offsets == 800
    assert found.catch_up_s == pytest.approx(40.0)


def test_in_5_as_fast_as_the_producers_is_steady() -> None:
    found = verdict(*paced(read=10, write=10, behind=500))
    assert found.state is State.STEADY
    assert found.catch_up_s is None


@pytest.mark.parametrize("seconds", range(31, 42))
@pytest.mark.parametrize(
    ("read", "state"),
    [(100, State.STEADY), (50, State.FALLING_BEHIND), (150, State.CATCHING_UP)],
)
def test_in_5_commits_in_steps_do_not_sway_the_trend(read: int, state: State, seconds: int) -> None:
    """A commit every five seconds: the answer is the same wherever in the step the looks end."""
    found = verdict(*paced(read, write=100, behind=9000, seconds=seconds, step_s=5))
    assert found.state is state
    assert found.pace is not None
    assert found.pace.trend == pytest.approx(100 - read)


def test_in_5_one_commit_is_no_trend() -> None:
    looks = [sample(at, 10 if at > 3 else 0, 100, all_read(0, 100)) for at in range(8)]
    found = verdict(*looks)
    assert (found.state, found.pace) == (State.UNKNOWN, None)
    assert found.reason == "too few commits were seen in 7 s"
    assert verdict(looks[0]).reason == "a trend needs more than one poll"
    assert verdict(*looks[:3]).reason == "no commit was seen in 2 s"


def test_in_5_an_overdue_commit_counts_as_slowness() -> None:
    """A consumer that was as fast as the producers has not committed for a while."""
    looks = paced(read=10, write=10, behind=100, seconds=10)
    looks += [sample(at, 100, 100 + at * 10, all_read(100, 100 + at * 10)) for at in range(11, 25)]
    found = verdict(*looks)
    assert found.state is State.FALLING_BEHIND


def test_in_5_a_stuck_partition_is_not_a_slow_one() -> None:
    looks = [sample(at, 42, 60, all_read(42, 60)) for at in range(PATIENCE_MS // 1000 + 1)]
    assert verdict(*looks[:-1]).state is State.UNKNOWN
    found = verdict(*looks)
    assert found.state is State.STUCK
    assert found.reason == "the committed offset has stayed at 42 for 30 s"
    # One commit, however small, and it is slow and not stuck.
    moved = [each._replace(committed=43) for each in looks[20:]]
    assert verdict(*looks[:20], *moved).state is State.UNKNOWN


def test_in_5_who_has_nothing_to_read_is_not_stuck() -> None:
    """The last offset is a marker; then a record arrives, and from then on time counts."""
    idle = [sample(at, 9, 10, Unread(0, 10)) for at in range(100)]
    assert verdict(*idle).state is State.CAUGHT_UP
    late = [sample(at, 9, 11, Unread(1, 11, NOW_MS)) for at in range(100, 131)]
    found = verdict(*idle, *late[:5])
    assert found.state is State.STEADY and "a moment ago" in found.reason
    assert verdict(*idle, *late[:-1]).state is not State.STUCK
    assert verdict(*idle, *late).state is State.STUCK


def test_in_5_what_may_be_markers_is_not_called_stuck() -> None:
    """Its records could not be read."""
    found = verdict(*(sample(at, 9, 10) for at in range(100)))
    assert (found.state, found.records, found.is_exact) == (State.UNKNOWN, 1, False)
    assert found.reason.endswith("whether the remaining offsets hold records is unknown")


def test_in_5_a_first_commit_is_only_missed_if_records_have_come() -> None:
    """With `auto.offset.reset=latest` a member may wait at the end of an old log."""
    old = [sample(at, None, 10, Unread(10, 10, NOW_MS)) for at in range(100)]
    assert verdict(*old).state is State.UNKNOWN
    new = [sample(at, None, 11, Unread(11, 11, NOW_MS)) for at in range(100, 131)]
    found = verdict(*old, *new)
    assert found.state is State.STUCK
    assert found.reason == "a member has had records to read for 30 s, and committed nothing"


def test_in_5_a_new_member_has_its_own_time() -> None:
    looks = [sample(at, 42, 60, all_read(42, 60)) for at in range(29)]
    looks += [sample(at, 42, 60, all_read(42, 60), member="n") for at in range(29, 58)]
    assert verdict(*looks).state is State.UNKNOWN


def test_in_5_an_open_transaction_is_named() -> None:
    looks = [sample(at, 42, 60, Unread(18, 60, NOW_MS, 42)) for at in range(31)]
    assert "last stable offset at 42" in verdict(*looks).reason


def test_in_5_without_a_member_it_has_stopped() -> None:
    looks = paced(read=10, write=10, behind=100, seconds=10)
    gone = sample(11, 110, 210, all_read(110, 210), member=None)
    found = verdict(*looks, gone)  # it committed when it left
    assert found.state is State.STOPPED
    found = verdict(gone._replace(unassigned_because="the group is rebalancing"))
    assert (found.state, found.reason) == (State.UNKNOWN, "the group is rebalancing")


def test_in_5_a_consumer_outside_of_the_group_has_not_stopped() -> None:
    """It was assigned its partitions by hand, so the group has no members; but it commits."""
    looks = [each._replace(member=None) for each in paced(read=10, write=30, behind=100)]
    assert verdict(*looks).state is State.FALLING_BEHIND
    last = looks[-1]
    later = [last._replace(at_ms=last.at_ms + at_s * 1000) for at_s in range(1, 31)]
    assert verdict(*looks, *later).state is State.STOPPED


def test_in_5_no_leader_or_an_offset_beyond_the_end_is_unknown() -> None:
    found = verdict(sample(0, 5, None))
    assert (found.state, found.records, found.age) == (State.UNKNOWN, None, None)
    assert "no leader" in found.reason
    found = verdict(sample(0, 50, 10))
    assert (found.state, found.records, found.age) == (State.UNKNOWN, None, None)
    assert "deleted and created again" in found.reason


def test_in_5_deleted_records_are_told() -> None:
    found = verdict(sample(0, 5, 30, all_read(20, 30), start=20, member=None))
    assert (found.state, found.records, found.is_exact) == (State.STOPPED, 10, True)
    assert found.reason.endswith("; deleted before the group read them: 15 offsets")
    found = verdict(sample(0, 5, 20, start=20))
    assert (found.state, found.records) == (State.CAUGHT_UP, 0)
    assert found.reason == "deleted before the group read them: 15 offsets"


def test_in_5_a_reset_begins_a_new_history() -> None:
    looks = paced(read=10, write=10, behind=100)
    again = sample(31, 0, 400, all_read(0, 400))
    assert verdict(*looks, again).pace is None
    # The topic was deleted and created again.
    shorter = sample(31, 0, 5, all_read(0, 5))
    found = verdict(*looks, shorter, sample(32, 0, 6))
    assert found.pace is None and found.age == Age(1.0, Basis.BOUND)


def test_in_5_commits_of_more_than_a_minute_ago_are_forgotten() -> None:
    looks = paced(read=10, write=30, behind=100, seconds=10)
    last = looks[-1]
    looks += [last._replace(at_ms=last.at_ms + WINDOW_MS * part // 4) for part in range(1, 5)]
    assert verdict(*looks[:-1]).pace is not None
    assert verdict(*looks).pace is None


def test_in_5_the_present_rate_is_that_of_the_last_commits() -> None:
    """It was slow, and has become fast."""
    slow = paced(read=10, write=30, behind=5000, seconds=300)
    at_s, end = 300, 5000 + 300 * 30
    fast = []
    for step in range(1, PRESENT_MS // 1000 + 2):
        committed = 3000 + step * 90
        fast.append(sample(at_s + step, committed, end, all_read(committed, end)))
    found = verdict(*slow, *fast)
    assert found.state is State.CATCHING_UP
    assert found.pace is not None and found.pace.trend == pytest.approx(-90)
