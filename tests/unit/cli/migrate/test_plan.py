"""MX-3: which broker is next, and what is done about it."""

from __future__ import annotations

import pytest

from barnabas.cli.migrate.facts import BARNABAS, KAFKA, UNKNOWN, ClusterFacts
from barnabas.cli.migrate.plan import (
    BATCH,
    Kind,
    Progress,
    is_running,
    losses,
    next_action,
    obstacles,
    order,
)
from barnabas.types import TopicPartition
from tests.unit.cli.migrate.migrate_facts import KKK, T0, broker, facts

STOPPED = Progress(1, {T0: 5}, has_stopped=True)
STARTED = STOPPED._replace(has_started=True)
VERIFIED = STARTED._replace(is_verified=True)
LED = facts(BARNABAS, KAFKA, KAFKA, leader=1)
HANDED_OVER = facts(BARNABAS, KAFKA, KAFKA, leader=2)
OTHERS_PREFERRED = facts(BARNABAS, KAFKA, KAFKA, leader=2, replicas=(2, 3, 1))


def test_the_controller_is_last() -> None:
    """MX-3"""
    assert order(KKK, BARNABAS) == [2, 3, 1]
    assert order(KKK._replace(controller_id=2), BARNABAS) == [1, 3, 2]
    assert order(KKK, KAFKA) == []
    assert order(facts(BARNABAS, KAFKA, BARNABAS), BARNABAS) == [2]
    assert order(facts(BARNABAS, KAFKA, BARNABAS), KAFKA) == [3, 1]


def test_a_broker_that_is_down_is_first() -> None:
    assert order(facts(KAFKA, KAFKA, None), BARNABAS) == [3, 2, 1]


def test_a_broker_waits_for_the_others() -> None:
    """MX-3: nothing is stopped while any replica is missing elsewhere."""
    assert obstacles(KKK, 2) == []
    assert obstacles(facts(KAFKA, KAFKA, None, isr=(1, 2)), 2) == [
        "broker 3 is not alive",
        "1 partition (t-0) is not fully in sync",
    ]
    moving = KKK._replace(moving=(T0,))
    assert obstacles(moving, 2) == ["1 partition (t-0) is being reassigned"]


def test_what_is_lost_meanwhile_is_said() -> None:
    """MX-3"""
    assert losses(KKK, 1) == []
    assert losses(facts(KAFKA, KAFKA, replicas=(1, 2)), 1) == [
        "1 partition (t-0) is below min.insync.replicas, so acks=all is rejected"
    ]
    assert losses(facts(KAFKA, KAFKA, replicas=(1,)), 1) == [
        "1 partition (t-0) is without a leader, because no other replica is in sync"
    ]
    assert losses(facts(KAFKA, KAFKA, replicas=(1,)), 2) == []


@pytest.mark.parametrize(
    ("seen", "progress", "kind"),
    [
        (facts(KAFKA, KAFKA, None), Progress(1), Kind.WAIT),
        (KKK, Progress(1), Kind.STOP),
        (facts(KAFKA, KAFKA, KAFKA, leader=2), Progress(1), Kind.STOP),
        (facts(KAFKA, KAFKA, replicas=(1,)), Progress(1), Kind.STOP),
        (facts(None, KAFKA, KAFKA, leader=2), Progress(1), Kind.WAIT),
        (facts(None, KAFKA, KAFKA, leader=2), STOPPED, Kind.START),
        (facts(None, KAFKA, KAFKA, leader=2), STARTED, Kind.WAIT),
        (facts(KAFKA, KAFKA, KAFKA, leader=2), STARTED, Kind.WAIT),
        (facts(BARNABAS, KAFKA, KAFKA, leader=2, isr=(2, 3)), STARTED, Kind.WAIT),
        (HANDED_OVER, STARTED, Kind.VERIFY),
        (HANDED_OVER, VERIFIED, Kind.RESTORE),
        (OTHERS_PREFERRED, VERIFIED, Kind.FINISH),
        (LED, VERIFIED, Kind.FINISH),
        (facts(BARNABAS, BARNABAS, BARNABAS), VERIFIED, Kind.FINISH),
    ],
)
def test_one_thing_follows_the_other(seen: ClusterFacts, progress: Progress, kind: Kind) -> None:
    """MX-3: what is next depends only on the cluster and the file, so a step can be resumed."""
    assert next_action(seen, progress, BARNABAS).kind is kind


def test_a_broker_of_the_wrong_kind_is_named() -> None:
    found = next_action(facts(KAFKA, KAFKA, KAFKA, leader=2), STARTED, BARNABAS)
    assert found.reasons == (
        "broker 1 was started as kafka again; stop it and start it as barnabas",
    )


def test_a_broker_that_does_not_start_is_named() -> None:
    down = facts(None, KAFKA, KAFKA, leader=2)
    [reason] = next_action(down, STARTED, BARNABAS).reasons
    assert "broker 1 is not registered as barnabas yet" in reason
    assert next_action(down, Progress(1), BARNABAS).reasons == (
        "broker 1 is not registered; start it",
    )


def test_a_step_that_is_resumed_knows_whether_the_broker_was_started() -> None:
    """MX-3: if not, it is started again, as the start command may never have run."""
    assert is_running(HANDED_OVER, 1, BARNABAS)
    assert not is_running(facts(KAFKA, KAFKA, KAFKA), 1, BARNABAS)
    down = facts(None, KAFKA, KAFKA, leader=2)
    assert not is_running(down, 1, BARNABAS)
    slow = down._replace(brokers={**down.brokers, 1: broker(1, UNKNOWN)})
    assert is_running(slow, 1, BARNABAS)


def test_a_slow_broker_is_not_started_twice() -> None:
    """One that is registered, but does not respond, runs."""
    slow = facts(None, KAFKA, KAFKA, leader=2)
    slow = slow._replace(brokers={**slow.brokers, 1: broker(1, UNKNOWN)})
    assert next_action(slow, STOPPED, BARNABAS).reasons == ("broker 1 does not respond",)


def test_a_deleted_topic_is_not_restored() -> None:
    gone = HANDED_OVER._replace(topics=())
    assert next_action(gone, VERIFIED, BARNABAS).kind is Kind.FINISH


def of_many(seen: ClusterFacts, count: int) -> ClusterFacts:
    """Return the same cluster with that many partitions."""
    (topic,) = seen.topics
    views = tuple(topic.partitions[0]._replace(partition=number) for number in range(count))
    return seen._replace(topics=(topic._replace(partitions=views),))


def test_the_leaders_of_a_large_broker_are_restored_in_batches() -> None:
    """MX-3"""
    restored = next_action(of_many(HANDED_OVER, 2 * BATCH), VERIFIED, BARNABAS)
    assert restored.kind is Kind.RESTORE
    assert restored.partitions == tuple(TopicPartition("t", number) for number in range(BATCH))
