"""Rates from the ends of logs, and series of limited length."""

from __future__ import annotations

from barnabas.console.rates import KEPT, Growth, SeriesBook, total
from barnabas.types import TopicPartition

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def test_records_per_second_of_partitions_topics_and_all() -> None:
    growth = Growth()
    growth.add(1_000, {T0: 10, T1: 0, U0: 5})
    assert (growth.of_topic("t"), growth.of_partition(T0)) == (None, None)
    growth.add(3_000, {T0: 30, T1: 4, U0: 5})
    assert (growth.of_topic("t"), growth.of_topic("u"), growth.of_partition(T0)) == (12, 0, 10)
    assert growth.series() == {"times": [3_000], "values": [12.0]}


def test_a_log_that_became_shorter_or_is_not_known_has_no_rate() -> None:
    growth = Growth()
    growth.add(1_000, {T0: 10, U0: 5})
    growth.add(2_000, {T0: 3})
    assert (growth.of_partition(T0), growth.of_partition(U0)) == (None, None)
    assert growth.series("t")["values"] == [] or growth.of_topic("t") is None


def test_a_clock_that_was_set_back_spoils_nothing() -> None:
    growth = Growth()
    growth.add(5_000, {T0: 10})
    growth.add(4_000, {T0: 11})
    growth.add(6_000, {T0: 12})
    assert growth.series()["values"] == [2.0]


def test_a_series_has_gaps_and_a_limited_length() -> None:
    book = SeriesBook()
    book.add(1, {"a": 1.0})
    book.add(2, {"b": 2.0})
    assert book.series("a") == {"times": [1, 2], "values": [1.0, None]}
    assert book.series("b") == {"times": [1, 2], "values": [None, 2.0]}
    for at_ms in range(3, 3 + KEPT):
        book.add(at_ms, {"b": 3.0})
    found = book.series("b")
    assert (len(found["times"]), len(found["values"]), found["values"][0]) == (KEPT, KEPT, 3.0)
    assert book.last("a") is None  # nothing of it is left


def test_a_sum_of_nothing_is_not_zero() -> None:
    assert (total([]), total([None]), total([None, 0, 2])) == (None, None, 2)
