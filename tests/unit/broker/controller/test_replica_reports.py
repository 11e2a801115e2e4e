"""What brokers have last said of their replicas (ST-8, ST-10)."""

from __future__ import annotations

from barnabas.broker.controller.replica_reports import ANY_EPOCH, ReplicaReports
from barnabas.types import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_the_last_report_of_a_replica_counts() -> None:
    reports = ReplicaReports()
    assert reports.last(3, 61, T0) is None
    reports.add(3, ANY_EPOCH, [T0, T1], is_lost=True)
    assert reports.last(3, 61, T0) is True
    reports.add(3, 61, [T0], is_lost=False)
    assert reports.last(3, 61, T0) is False
    assert reports.last(3, 61, T1) is True
    assert reports.last(2, 61, T1) is None
    assert len(reports) == 2
    assert reports.take() == {(3, ANY_EPOCH): {T1: True}, (3, 61): {T0: False}}


def test_one_of_an_ended_registration_says_nothing_of_the_next_one() -> None:
    reports = ReplicaReports()
    reports.add(3, 48, [T0], is_lost=True)
    assert reports.last(3, 61, T0) is None
    reports.add(3, 61, [T0], is_lost=True)
    assert reports.take() == {(3, 48): {}, (3, 61): {T0: True}}


def test_what_a_round_processes_counts_until_it_is_in_the_image() -> None:
    reports = ReplicaReports()
    reports.add(3, 61, [T0], is_lost=True)
    taken = reports.take()
    assert (len(reports), reports.last(3, 61, T0)) == (0, True)
    reports.add(3, 61, [T0], is_lost=False)
    assert reports.last(3, 61, T0) is False, "it came later"
    assert taken == {(3, 61): {T0: True}}
    reports.on_processed()
    assert reports.take() == {(3, 61): {T0: False}}
