"""What a watcher sees: how far replicas are, for how long, and what has changed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from barnabas.cli.partitions.watch import Change, Look, ReplicaRow, Watch, reasons
from barnabas.client.admin.admin import TopicDescription
from barnabas.client.admin.replica_admin import ReplicaEnd
from barnabas.client.view import PartitionView
from barnabas.events import Event
from barnabas.types import TopicPartition

T0 = TopicPartition("t", 0)
ALL = frozenset({1, 2, 3})


def partition(
    leader: int = 1,
    isr: tuple[int, ...] = (1, 2, 3),
    epoch: int = 0,
    replicas: tuple[int, ...] = (1, 2, 3),
) -> PartitionView:
    return PartitionView(0, leader, epoch, replicas, isr, ())


def look(
    watch: Watch,
    at_ms: int,
    view: PartitionView | None = None,
    ends: Mapping[int, int] | None = None,
    live: frozenset[int] = ALL,
) -> Look:
    """A look at one partition; `ends`: where the replicas end, by broker."""
    wanted = {1: 100, 2: 100, 3: 100} if ends is None else ends
    said = {broker: ReplicaEnd(end, 0, min(wanted.values())) for broker, end in wanted.items()}
    topic = TopicDescription("t", bytes(16), False, (view or partition(),))
    return watch.look(at_ms, [topic], live, {T0: said})


def replica(seen: Look, broker_id: int) -> ReplicaRow:
    ((row,),) = ([row for row in seen.rows if row.name == T0],)
    return next(each for each in row.replicas if each.broker_id == broker_id)


def lag(seen: Look, broker_id: int) -> tuple[int | None, int | None]:
    found = replica(seen, broker_id)
    return found.lag_records, found.lag_ms


def test_who_has_everything_is_not_behind() -> None:
    seen = look(Watch(), 1000)
    assert lag(seen, 1) == lag(seen, 2) == (0, 0)
    assert replica(seen, 1).is_leader and not replica(seen, 2).is_leader
    assert seen.rows[0].high_watermark == 100
    assert seen.rows[0].is_well
    assert seen.changes == []


def test_the_lag_is_as_old_as_the_last_look_at_which_the_leader_had_no_more() -> None:
    watch = Watch()
    look(watch, 1000)
    look(watch, 2000, ends={1: 150, 2: 150, 3: 100})
    seen = look(watch, 3000, ends={1: 200, 2: 150, 3: 100})
    assert lag(seen, 2) == (50, 1000), "at 2000 the leader had 150"
    assert lag(seen, 3) == (100, 2000), "at 1000 it had 100"
    seen = look(watch, 4000, ends={1: 300, 2: 200, 3: 199})
    assert lag(seen, 2) == (100, 1000), "a replica that keeps its distance is as late as that"
    assert lag(seen, 3) == (101, 2000)
    seen = look(watch, 5000, ends={1: 300, 2: 300, 3: 300})
    assert lag(seen, 2) == lag(seen, 3) == (0, 0)


def test_an_idle_leader_does_not_make_its_followers_late() -> None:
    watch = Watch()
    look(watch, 1000)
    look(watch, 60_000)
    assert lag(look(watch, 60_500, ends={1: 101, 2: 100, 3: 101}), 2) == (1, 500)


def test_who_was_never_seen_complete_is_late_since_the_first_look() -> None:
    watch = Watch()
    look(watch, 1000, ends={1: 100, 2: 10, 3: 100})
    assert lag(look(watch, 4000, ends={1: 100, 2: 50, 3: 100}), 2) == (50, 3000)


def test_what_no_broker_reports_is_unknown_and_time_goes_on() -> None:
    watch = Watch()
    look(watch, 1000)
    seen = look(watch, 5000, ends={1: 100, 2: 100})
    assert lag(seen, 3) == (None, 4000)
    assert replica(seen, 3).end is None
    seen = look(Watch(), 1000, ends={2: 5})
    assert seen.rows[0].high_watermark is None
    assert lag(seen, 2) == (None, None), "no broker knows where the leader ends"


def test_a_log_that_was_cut_does_not_count_as_far_ahead() -> None:
    watch = Watch()
    look(watch, 1000, ends={1: 200, 2: 100, 3: 100})
    seen = look(watch, 2000, partition(leader=2, epoch=1), ends={1: 100, 2: 100, 3: 100})
    assert lag(seen, 1) == lag(seen, 3) == (0, 0)


@pytest.mark.parametrize(
    ("before", "after", "live", "expected"),
    [
        (
            partition(),
            partition(2, (2, 3), 1),
            {2, 3},
            [
                "leader broker 1 -> broker 2, epoch 1 (broker 1 is not registered)",
                "ISR 1,2,3 -> 2,3 (broker 1 is not registered)",
            ],
        ),
        (
            partition(),
            partition(2, (2, 3), 1),
            {1, 2, 3},
            ["leader broker 1 -> broker 2, epoch 1", "ISR 1,2,3 -> 2,3"],
        ),
        (
            partition(1, (1,)),
            partition(-1, (1,), 1),
            {2, 3},
            ["leader broker 1 -> none, epoch 1 (broker 1 is not registered)"],
        ),
        (
            partition(-1, (1,), 1),
            partition(3, (3,), 2),
            {2, 3},
            ["leader none -> broker 3, epoch 2", "ISR 1 -> 3 (broker 1 is not registered)"],
        ),
        (
            partition(),
            partition(1, (1, 2), 1),
            {1, 2},
            ["epoch 0 -> 1", "ISR 1,2,3 -> 1,2 (broker 3 is not registered)"],
        ),
        (partition(), partition(1, (1, 2, 3), 1), {1, 2, 3}, ["epoch 0 -> 1"]),
        (partition(1, (1, 2)), partition(1, (1, 2, 3)), {1, 2, 3}, ["ISR 1,2 -> 1,2,3"]),
        (
            partition(1, (1, 2), 0, (1, 2)),
            partition(1, (1, 2), 0, (3, 2, 1)),
            {1, 2, 3},
            ["replicas 1,2 -> 3,2,1"],
        ),
        # A move from 1,2 to 3 that is over before the next look: no replica lost anything.
        (
            partition(1, (1, 2), 0, (1, 2)),
            partition(3, (3,), 3, (3,)),
            {1, 2, 3},
            ["replicas 1,2 -> 3", "leader broker 1 -> broker 3, epoch 3", "ISR 1,2 -> 3"],
        ),
        (partition(1, (1, 2, 3)), partition(1, (3, 2, 1)), {1, 2, 3}, []),
        (partition(), partition(), {1}, []),
    ],
)
def test_changes_are_facts(
    before: PartitionView, after: PartitionView, live: set[int], expected: list[str]
) -> None:
    """RE-10, RE-11: two looks show what is different, and not why."""
    watch = Watch()
    look(watch, 1000, before)
    seen = look(watch, 2000, after, live=frozenset(live))
    assert seen.changes == [Change(2000, T0, text) for text in expected]
    assert look(watch, 3000, after, live=frozenset(live)).changes == [], "it is reported once"


def test_a_replica_that_leaves_the_isr_is_reported_with_its_lag() -> None:
    """RE-8"""
    watch = Watch()
    look(watch, 1000, ends={1: 150, 2: 150, 3: 100})
    seen = look(watch, 2000, partition(isr=(1, 2)), ends={1: 200, 2: 200, 3: 130})
    assert [change.text for change in seen.changes] == [
        "ISR 1,2,3 -> 1,2 (broker 3 is 70 records behind)"
    ]
    seen = look(watch, 3000, partition(isr=(1,)), ends={1: 200, 3: 130})
    assert [change.text for change in seen.changes] == [
        "ISR 1,2 -> 1 (broker 2 does not report where its log ends)"
    ]


def test_topics_come_and_go() -> None:
    watch = Watch()
    assert watch.look(1000, [], ALL, {}) == Look([], [])
    seen = look(watch, 2000)
    assert [change.text for change in seen.changes] == ["is new, leader broker 1"]
    assert watch.look(3000, [], ALL, {}) == Look([], [Change(3000, T0, "is deleted")])


def test_reasons_are_those_that_brokers_report_about_watched_partitions() -> None:
    """IN-2: a role follows from an election, which has the reason."""
    election = Event("election", "line", "broker 2 failed", topic="t", partition=0, at_ms=7)
    others = [
        election._replace(topic="u"),
        election._replace(cause=""),
        election._replace(kind="leader"),
    ]
    assert reasons([*others, election], {T0}) == [Change(7, T0, "election because broker 2 failed")]
