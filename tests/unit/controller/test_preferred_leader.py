"""KIP-460: elections on request, and automatic ones."""

from __future__ import annotations

from barnabas.cluster.image import NO_LEADER
from barnabas.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    KafkaError,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from barnabas.types import TopicPartition
from tests.unit.controller.stage import T0, Stage, brokers, led, topic


def _elect(stage: Stage, *numbers: int, unclean: bool = False) -> list[type[KafkaError] | None]:
    names = [TopicPartition("t", number) for number in numbers]
    decision, outcomes = stage.controller.elect_leaders(names, unclean=unclean)
    stage.carry_out(decision)
    errors = [outcomes[name] for name in names]
    return [None if error is None else type(error) for error in errors]


def test_the_first_replica_leads_again() -> None:
    """RE-13: the ISR stays as it is."""
    stage = Stage(topic("t", led(2, 1, 3, replicas=(1, 2, 3))))
    assert _elect(stage, 0) == [None]
    assert (stage[T0].leader, stage[T0].isr, stage[T0].leader_epoch) == (1, (2, 1, 3), 4)
    assert stage.notified(1) == stage.notified(2) == stage.notified(3) == {T0: stage[T0]}


def test_each_partition_has_its_own_outcome() -> None:
    stage = Stage(
        topic(
            "t",
            led(1, 2),
            led(2, replicas=(1, 2)),
            led(2, 9, replicas=(9, 2)),
            led(2, 1, replicas=(1, 2)),
        )
    )
    assert _elect(stage, 0, 1, 2, 3, 7) == [
        ElectionNotNeeded,
        PreferredLeaderNotAvailable,
        PreferredLeaderNotAvailable,
        None,
        UnknownTopicOrPartition,
    ]


def test_a_replica_that_is_offline_or_leaving_is_not_preferred() -> None:
    stage = Stage(topic("t", led(2, 1, replicas=(1, 2)), led(2, 3, replicas=(3, 2))))
    stage.carry_out(stage.controller.shutdown_requested(3)[0])
    stage.carry_out(stage.controller.replicas_offline(1, [T0]))
    assert _elect(stage, 0, 1) == [PreferredLeaderNotAvailable] * 2


def test_all_partitions_means_those_that_need_it() -> None:
    stage = Stage(topic("t", led(1, 2), led(2, 1, replicas=(1, 2))), topic("u", led(3)))
    decision, outcomes = stage.controller.elect_leaders(None, unclean=False)
    stage.carry_out(decision)
    assert outcomes == {TopicPartition("t", 1): None}


def test_an_unclean_election_is_for_partitions_without_a_leader() -> None:
    """RE-11: the ISR first, if one of it lives after all."""
    stage = Stage(
        topic(
            "t",
            led(1, 2),
            led(9, replicas=(9, 3, 2), leader=NO_LEADER),
            led(9, replicas=(9, 8), leader=NO_LEADER),
        )
    )
    assert _elect(stage, 0, 1, 2, unclean=True) == [
        ElectionNotNeeded,
        None,
        EligibleLeadersNotAvailable,
    ]
    elected = stage[TopicPartition("t", 1)]
    assert (elected.leader, elected.isr) == (3, (3,))
    assert stage.controller.unclean_elections == 1
    assert "t-1" in stage.decision.notes[0]


def test_leaders_come_home_where_too_many_are_away() -> None:
    """RE-13: broker 1 leads one of the three that prefer it, broker 2 three of four."""
    away = led(3, 1, replicas=(1, 3))
    also = led(3, 2, replicas=(2, 3))
    stage = Stage(topic("t", led(1), away, away), topic("u", led(2), led(2), led(2), also))
    stage.carry_out(stage.controller.rebalance_leaders(25))
    assert [stage[TopicPartition("t", number)].leader for number in range(3)] == [1, 1, 1]
    assert stage[TopicPartition("u", 3)].leader == 3, "a quarter is not more than a quarter"
    assert stage.controller.rebalance_leaders(25).operations == ()
    stage.carry_out(stage.controller.rebalance_leaders(24))
    assert stage[TopicPartition("u", 3)].leader == 2


def test_what_is_being_moved_or_deleted_is_left_alone() -> None:
    moving = led(2, 1, replicas=(1, 2, 3))._replace(adding=(3,), removing=(2,))
    stage = Stage(topic("t", moving), topic("u", led(2, 1, replicas=(1, 2))))
    stage.carry_out(stage.controller.deletions_requested(["u"]))
    assert stage.controller.rebalance_leaders(0).operations == ()
    _, outcomes = stage.controller.elect_leaders([TopicPartition("u", 0)], unclean=False)
    assert isinstance(outcomes[TopicPartition("u", 0)], UnknownTopicOrPartition)


def test_the_dead_are_not_brought_home() -> None:
    stage = Stage(topic("t", led(2, replicas=(1, 2))), live=brokers(2))
    assert stage.controller.rebalance_leaders(0).operations == ()
