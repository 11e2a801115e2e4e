"""A decision says why each partition changes, as data from the machine that decides (IN-1)."""

from __future__ import annotations

from barnabas.cluster.controller_requests import LeaderAndIsr
from barnabas.controller.decision import Decision
from barnabas.types import TopicPartition
from tests.unit.controller.stage import T0, Stage, broker, brokers, led, topic


def _causes(decision: Decision) -> dict[TopicPartition, str]:
    return {each.name: each.cause for each in decision.changes}


def _sent(decision: Decision, broker_id: int) -> dict[TopicPartition, str]:
    """The causes that a broker is sent."""
    return {
        state.topic_partition: state.cause
        for receiver, request in decision.requests
        if receiver == broker_id and isinstance(request, LeaderAndIsr)
        for state in request.partitions
    }


def test_a_failed_broker_is_the_cause_of_an_election() -> None:
    """IN-1: only for the partitions that it concerns."""
    stage = Stage(topic("t", led(1, 2), led(2, 3)))
    decision = stage.go(1)
    assert _causes(decision) == {T0: "broker 1 failed: its session ended"}
    assert decision.losses == {1: "broker 1 failed: its session ended"}
    (change,) = decision.changes
    assert (change.was.leader, change.became.leader, change.is_unclean) == (1, 2, False)


def test_a_broker_that_re_registers_has_failed() -> None:
    """IN-1, KIP-903: even if nothing noticed its absence."""
    stage = Stage(topic("t", led(1, 2)))
    assert _causes(stage.come(broker(1, 201))) == {T0: "broker 1 failed and re-registered"}


def test_a_controlled_shutdown_is_no_failure() -> None:
    """IN-1: neither when the broker hands over nor when it is gone."""
    stage = Stage(topic("t", led(1, 2, 3)))
    decision, remaining = stage.controller.shutdown_requested(1)
    stage.carry_out(decision)
    assert remaining == []
    assert _causes(decision) == {T0: "controlled shutdown of broker 1"}
    assert stage.go(1).losses == {1: "broker 1 has stopped after its controlled shutdown"}


def test_an_unclean_election_says_so() -> None:
    """IN-1, RE-11: that no in-sync replica was live."""
    stage = Stage(topic("t", led(1, replicas=(1, 2)), unclean_leader_election_enable="true"))
    (change,) = stage.go(1).changes
    assert change.is_unclean
    assert change.cause == (
        "broker 1 failed: its session ended, no in-sync replica is live (unclean election)"
    )


def test_a_partition_gets_a_leader_when_its_broker_registers() -> None:
    """IN-1: the broker is named."""
    stage = Stage(topic("t", led(1, replicas=(1, 2))))
    stage.go(1)
    assert _causes(stage.come(broker(1, 201))) == {T0: "broker 1 registered"}


def test_an_administrator_elects_the_preferred_leader() -> None:
    """IN-1: as opposed to the automatic rebalance."""
    stage = Stage(topic("t", led(2, 1, replicas=(1, 2))))
    decision, _ = stage.controller.elect_leaders([T0], unclean=False)
    assert _causes(decision) == {T0: "an administrator requested an election of preferred leaders"}
    assert _causes(stage.controller.rebalance_leaders(10)) == {
        T0: "its preferred leader led too few of its partitions (automatic rebalance)"
    }


def test_a_reassignment_has_a_cause_for_each_step() -> None:
    """IN-1: its request, and that all targets are in sync; its leader reports the ISRs."""
    stage = Stage(topic("t", led(1, 2)))
    decision, _ = stage.controller.reassign({T0: [2, 3]})
    assert _causes(stage.carry_out(decision)) == {T0: "an administrator requested a reassignment"}
    stage.propose(1, 2, 3)
    assert _causes(stage.decision) == {T0: "all target replicas of the reassignment are in sync"}
    assert stage[T0].leader == 2


def test_a_lost_directory_is_the_cause() -> None:
    """IN-1: the broker itself is live."""
    stage = Stage(topic("t", led(1, 2)))
    decision = stage.controller.replicas_offline(1, [T0])
    assert _causes(stage.carry_out(decision)) == {
        T0: "broker 1 lost its replica with a log directory or a damaged log"
    }


def test_a_leader_explains_the_isr_that_it_proposes() -> None:
    """IN-1: the controller does not repeat what the leader reports."""
    stage = Stage(topic("t", led(1, 2)))
    stage.propose(1)
    assert stage[T0].isr == (1,)
    assert stage.decision.changes == ()


def test_a_new_controller_says_what_it_found() -> None:
    """IN-1: it cannot know when or why the broker went."""
    stage = Stage(topic("t", led(3, 2)), live={1: broker(1), 2: broker(2)})
    assert _causes(stage.controller.on_elected([])) == {
        T0: "controller 1 took over and found broker 3 not registered"
    }


def test_a_new_controller_names_who_may_have_lost_records() -> None:
    """IN-1: that broker is registered, and leaves the ISR nevertheless."""
    lossy = broker(2)._replace(may_have_lost=True)
    stage = Stage(topic("t", led(2, 1), led(3, 1)), live={1: broker(1), 2: lossy})
    assert _causes(stage.controller.on_elected([])) == {
        T0: "controller 1 took over; broker 2 may have lost records",
        TopicPartition("t", 1): "controller 1 took over and found broker 3 not registered",
    }


def test_the_replicas_are_sent_the_cause() -> None:
    """IN-1: the same as in the controller's own event."""
    stage = Stage(topic("t", led(1, 2, 3), led(2, 3)))
    decision = stage.go(1)
    assert _sent(decision, 2) == _sent(decision, 3) == _causes(decision) != {}


def test_what_is_only_resent_has_no_cause() -> None:
    """IN-1: a broker that registers is sent everything, and a cause for what changes with it."""
    stage = Stage(topic("t", led(1, replicas=(1, 2)), led(2, 3)))
    stage.go(1)
    decision = stage.come(broker(1, 201))
    assert _sent(decision, 1) == _sent(decision, 2) == {T0: "broker 1 registered"}
    stage = Stage(topic("t", led(1, 2), led(1, 2)))
    assert set(_sent(stage.come(broker(1, 201)), 2).values()) == {
        "broker 1 failed and re-registered"
    }
    stage = Stage(topic("t", led(1, replicas=(1, 3))), live=brokers(1, 2))
    assert _sent(stage.come(broker(3)), 3) == {T0: ""}


def test_old_and_new_replicas_are_sent_the_cause_of_a_reassignment() -> None:
    """IN-1: both take part in the leader epoch in which it begins."""
    stage = Stage(topic("t", led(1, 2)))
    begun, _ = stage.controller.reassign({T0: (2, 3)})
    stage.carry_out(begun)
    asked = {T0: "an administrator requested a reassignment"}
    assert _sent(begun, 1) == _sent(begun, 3) == asked
