"""Timeouts of transactions: one live entry for each id."""

from __future__ import annotations

from barnabas.coordinator.transaction_timeouts import TransactionTimeouts


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
