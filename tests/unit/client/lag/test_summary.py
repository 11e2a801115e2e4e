"""IN-5: a group's lag over all of its partitions, and its slowest member."""

from __future__ import annotations

from barnabas.client.lag.history import Pace
from barnabas.client.lag.sample import Sample
from barnabas.client.lag.summary import add_up, slowest_member, with_neighbours
from barnabas.client.lag.verdict import Age, Basis, State, Verdict
from barnabas.types import TopicPartition

T0, T1, T2, T3 = (TopicPartition("t", number) for number in range(4))
READING = Pace(1.0, 2.0, -1.0, 0.1)


def verdict(
    state: State,
    records: int | None = 0,
    age: Age | None = Age(0.0, Basis.RECORD),  # noqa: B008
    member: str | None = "m",
    **more: object,
) -> Verdict:
    sample = Sample(0, 0, 0, 0, records or 0, None, member)
    found = Verdict(state, "because", records, records is not None, age, None, None, sample)
    return found._replace(**more)


def seconds(number: float, basis: Basis = Basis.RECORD) -> Age:
    return Age(number, basis)


def test_in_5_nothing_has_no_lag() -> None:
    found = add_up([])
    assert (found.state, found.records, found.is_exact) == (State.CAUGHT_UP, 0, True)
    assert (found.age, found.catch_up_s) == (seconds(0), 0.0)
    assert slowest_member({}) is None


def test_in_5_the_worst_counts() -> None:
    found = add_up(
        [
            verdict(State.CAUGHT_UP, catch_up_s=0.0),
            verdict(State.CATCHING_UP, 5, seconds(9), catch_up_s=7.0),
            verdict(State.CATCHING_UP, 6, seconds(3), catch_up_s=8.0),
        ]
    )
    assert found == (State.CATCHING_UP, 11, True, seconds(9), 8.0)
    found = add_up([verdict(State.STUCK, 1, seconds(60)), verdict(State.FALLING_BEHIND, 100)])
    assert (found.state, found.records, found.catch_up_s) == (State.STUCK, 101, None)


def test_in_5_what_is_unknown_makes_a_sum_a_bound() -> None:
    found = add_up([verdict(State.UNKNOWN, None, None), verdict(State.STEADY, 3, seconds(2))])
    assert (found.records, found.is_exact, found.age) == (3, False, seconds(2, Basis.BOUND))
    found = add_up([verdict(State.STEADY, 3, seconds(2, Basis.BOUND)), verdict(State.CAUGHT_UP)])
    assert (found.is_exact, found.age) == (True, seconds(2, Basis.BOUND))
    assert add_up([verdict(State.UNKNOWN, None, None)]).age is None


def test_in_5_the_slowest_member_is_found() -> None:
    """By state, then by the age of a record, then by the number of records."""
    verdicts = {
        T0: verdict(State.STEADY, 1_000, seconds(50), "a"),
        T1: verdict(State.STEADY, 10, seconds(60), "b"),
        T2: verdict(State.CAUGHT_UP, 0, seconds(0), "b"),
        T3: verdict(State.STOPPED, 9_999, seconds(999), None),
    }
    slow = slowest_member(verdicts)
    assert slow is not None and (slow.member, slow.partitions, slow.lag.records) == ("b", 1, 10)
    verdicts[T2] = verdict(State.FALLING_BEHIND, 1, seconds(1), "a")
    slow = slowest_member(verdicts)
    assert slow is not None and (slow.member, slow.partitions) == ("a", 2)
    verdicts = {T0: verdict(State.STEADY, 1, member="a"), T1: verdict(State.STEADY, 2, member="b")}
    slow = slowest_member(verdicts)
    assert slow is not None and slow.member == "b"
    assert slowest_member({T2: verdict(State.CAUGHT_UP, member="b")}) is None


def test_in_5_a_stuck_partition_beside_its_neighbours() -> None:
    """One record, or the whole member?"""
    stuck = verdict(State.STUCK, 5)
    moving = verdict(State.CATCHING_UP, 5, pace=READING)
    others = verdict(State.CATCHING_UP, 5, member="n", pace=READING)
    assert with_neighbours({T0: stuck, T1: others})[T0].reason == "because"
    found = with_neighbours({T0: stuck, T1: moving})
    assert "look at the record" in found[T0].reason and found[T1] is moving
    found = with_neighbours({T0: stuck, T1: stuck, T2: others})
    assert "look at the member" in found[T0].reason and "look at the member" in found[T1].reason
    found = with_neighbours({T0: stuck, T1: stuck, T2: moving})
    assert "look at the record" in found[T0].reason
