"""Timers: due ones are returned once, in order, and moving one costs nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordinator.timers import NEVER, Timer, Timers, TransactionTimeouts


def all_due(timers: Timers, now_ms: int) -> list[str]:
    due = []
    while timers.is_due(now_ms):
        timer = timers.next(now_ms)
        if timer is not None:
            due.append(timer.member_id)
    return due


def test_in_order_and_once() -> None:
    timers, (a, b, c) = Timers(), (Timer("g", name) for name in "abc")
    timers.set(a, 30)
    timers.set(b, 10)
    timers.set(c, 10)
    assert timers.next_ms() == 10
    assert all_due(timers, 9) == []
    assert all_due(timers, 30) == ["b", "c", "a"]
    assert all_due(timers, 1000) == [] and timers.next_ms() is None
    assert a.deadline_ms == a.queued_ms == NEVER


def test_a_later_deadline_does_not_touch_the_heap() -> None:
    timers, timer = Timers(), Timer("g", "a")
    timers.set(timer, 10)
    for deadline_ms in range(11, 100):
        timers.set(timer, deadline_ms)
    assert len(timers) == 1 and timers.next_ms() == 10
    assert all_due(timers, 98) == []
    assert timers.next_ms() == 99 and all_due(timers, 99) == ["a"]


def test_an_earlier_deadline_counts() -> None:
    timers, timer = Timers(), Timer("g", "a")
    timers.set(timer, 100)
    timers.set(timer, 10)
    assert all_due(timers, 10) == ["a"] and all_due(timers, 100) == []
    timers.set(timer, 100)
    timers.cancel(timer)
    assert all_due(timers, 100) == []


def test_members_that_come_and_go_do_not_fill_the_memory() -> None:
    timers = Timers()
    kept = [Timer("g", f"kept-{n}") for n in range(10)]
    for timer in kept:
        timers.set(timer, 1_000)
    for n in range(10_000):
        timer = Timer("g", str(n))
        timers.set(timer, 2_000 + n)
        timers.cancel(timer)
    assert len(timers) < 200
    assert len(all_due(timers, 10**6)) == 10


CHANGES = st.lists(
    st.tuples(st.sampled_from(["set", "cancel", "wait"]), st.integers(0, 4), st.integers(0, 30)),
    max_size=60,
)


@given(CHANGES)
def test_against_a_dictionary(changes: list[tuple[str, int, int]]) -> None:
    timers, now_ms = Timers(), 0
    all_timers = [Timer("g", str(n)) for n in range(5)]
    deadlines: dict[str, int] = {}
    for change, n, number in changes:
        if change == "set":
            deadlines[str(n)] = now_ms + number
            timers.set(all_timers[n], now_ms + number)
        elif change == "cancel":
            deadlines.pop(str(n), None)
            timers.cancel(all_timers[n])
        else:
            now_ms += number
            due = {name for name, at_ms in deadlines.items() if at_ms <= now_ms}
            assert set(all_due(timers, now_ms)) == due
            deadlines = {name: at for name, at in deadlines.items() if name not in due}
        if deadlines:
            next_ms = timers.next_ms()
            assert next_ms is not None and next_ms <= min(deadlines.values())


# --- timeouts of transactions --------------------------------------------------------------------


def test_what_is_over_is_taken_once_in_order() -> None:
    timeouts = TransactionTimeouts()
    for name, due_ms in (("b", 20), ("a", 10), ("c", 30)):
        timeouts.set(name, due_ms)
    assert timeouts.take(10) == []
    assert timeouts.next_ms == 11
    assert timeouts.take(21) == ["a", "b"]
    assert timeouts.take(21) == []
    assert timeouts.take(31) == ["c"]
    assert timeouts.next_ms is None


def test_the_earliest_time_of_an_id_counts() -> None:
    timeouts = TransactionTimeouts()
    timeouts.set("a", 20)
    timeouts.set("a", 30)
    timeouts.set("a", 10)
    assert timeouts.take(11) == ["a"]
    assert timeouts.take(100) == [], "one entry for each id"
    timeouts.set("a", 5)
    assert timeouts.take(100) == ["a"]
