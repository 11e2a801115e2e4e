"""Controlled shutdown: leaders move first."""

from __future__ import annotations

import pytest

from barnabas.errors import BrokerIdNotRegistered, StaleBrokerEpoch
from barnabas.types import TopicPartition
from tests.unit.controller.stage import T0, Stage, broker, led, topic

T1, T2, T3 = (TopicPartition("t", number) for number in (1, 2, 3))


def _shut_down(stage: Stage, broker_id: int) -> list[TopicPartition]:
    epoch = stage.live[broker_id].epoch
    decision, remaining = stage.controller.shutdown_requested(broker_id, epoch)
    stage.carry_out(decision)
    return remaining


def test_leaders_move_and_followers_leave_the_isr() -> None:
    """RE-13: no ISR waits for it, and every partition has a leader throughout."""
    stage = Stage(topic("t", led(2, 1, 3, replicas=(2, 3, 1)), led(1, 2), led(1, 3, 2), led(2)))
    assert _shut_down(stage, 2) == []
    assert (stage[T0].leader, stage[T0].isr, stage[T0].leader_epoch) == (3, (1, 3), 4)
    assert (stage[T1].leader, stage[T1].isr, stage[T1].leader_epoch) == (1, (1,), 4)
    assert (stage[T2].leader, stage[T2].isr) == (1, (1, 3))
    assert stage[T3] == led(2), "no other broker has it"
    assert stage.notified(2).keys() == {T0, T1, T2}, "it gets the new leaders"
    assert stage.stopped(2) == [(T1, False), (T2, False)]
    assert stage.stop_epochs(2) == {each: stage[each].leader_epoch for each in (T1, T2)}


def test_what_it_alone_has_in_sync_remains() -> None:
    """It may retry when another replica has caught up."""
    stage = Stage(topic("t", led(2, replicas=(2, 1)), led(2, replicas=(2,))))
    assert _shut_down(stage, 2) == [T0]
    assert stage[T0] == led(2, replicas=(2, 1))
    assert stage.decision.operations == ()


def test_a_leaving_broker_is_elected_nowhere_until_it_registers_again() -> None:
    """RE-13"""
    stage = Stage(topic("t", led(1, 2, replicas=(1, 2, 3))))
    _shut_down(stage, 2)
    assert stage.carry_out(stage.controller.topics_added([topic("u", led(3, 2))])).requests
    stage.go(3)
    assert stage[TopicPartition("u", 0)].leader == -1
    assert stage[TopicPartition("u", 0)].isr == (2,)
    stage.come(broker(2, 202))
    assert stage[TopicPartition("u", 0)].leader == 2
    assert stage.propose(1, 2).error_code == 0


def test_two_that_leave_do_not_hand_over_to_each_other() -> None:
    stage = Stage(topic("t", led(1, 2, 3)))
    assert _shut_down(stage, 2) == []
    assert _shut_down(stage, 1) == []
    assert (stage[T0].leader, stage[T0].isr) == (3, (3,))
    assert _shut_down(stage, 3) == [T0]


def test_asking_again_moves_nothing_twice() -> None:
    stage = Stage(topic("t", led(2, 1), led(1, 2)))
    _shut_down(stage, 2)
    assert _shut_down(stage, 2) == []
    assert stage.decision.operations == ()


def test_only_who_is_registered_so_may_leave() -> None:
    stage = Stage(topic("t", led(2, 1)))
    with pytest.raises(StaleBrokerEpoch, match="epoch 102"):
        stage.controller.shutdown_requested(2, 101)
    with pytest.raises(BrokerIdNotRegistered):
        stage.controller.shutdown_requested(7, 107)
    decision, _ = stage.controller.shutdown_requested(2)
    assert len(decision.operations) == 2, "an old broker does not say its epoch"


def test_a_topic_that_is_to_go_is_left_alone() -> None:
    stage = Stage(topic("t", led(2, 1)))
    stage.carry_out(stage.controller.deletions_requested(["t"]))
    assert _shut_down(stage, 2) == []
    assert stage.decision.operations == ()
