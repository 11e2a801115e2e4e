"""AlterPartition: accepted proposals, and the error codes of others; as Kafka 3.9 does."""

from __future__ import annotations

import pytest

from barnabas.cluster.controller_requests import IsrAnswer, IsrMember, IsrProposal
from barnabas.cluster.image import NO_LEADER, PartitionImage
from barnabas.cluster.layout import StateNode
from barnabas.controller.isr import Written
from barnabas.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    KafkaError,
    NotController,
    StaleBrokerEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.types import TopicPartition
from tests.unit.controller.stage import EPOCH, T0, Stage, broker, led, topic

ONE, TWO, THREE = IsrMember(1, 101), IsrMember(2, 102), IsrMember(3, 103)


def _stage(*isr: int) -> Stage:
    return Stage(topic("t", led(*(isr or (1, 2)), replicas=(1, 2, 3))))


def _answer(stage: Stage, proposal: IsrProposal, broker_id: int = 1) -> IsrAnswer:
    epoch = stage.live[broker_id].epoch
    decision, answers = stage.controller.isr_proposed(broker_id, epoch, [proposal])
    assert (decision.operations == ()) == (stage.controller.image is decision.image)
    stage.carry_out(decision)
    assert answers.keys() == {proposal.topic_partition}
    return answers[proposal.topic_partition]


def test_a_replica_that_has_caught_up_joins() -> None:
    """RE-7, RE-9: the partition epoch grows, the leader epoch stays; only metadata is sent."""
    stage = _stage()
    assert _answer(stage, stage.proposal(ONE, TWO, THREE)) == IsrAnswer(0, 1, 3, (1, 2, 3), 6)
    assert stage[T0] == PartitionImage(1, 3, (1, 2, 3), (1, 2, 3), 6, EPOCH)
    assert stage.sent() == [(each, "UpdateMetadata") for each in (1, 2, 3)]


def test_a_replica_that_lags_leaves() -> None:
    """RE-8, RE-9"""
    stage = _stage()
    assert _answer(stage, stage.proposal(ONE)) == IsrAnswer(0, 1, 3, (1,), 6)


def test_a_proposal_that_is_repeated_is_answered_again() -> None:
    """Its answer was lost: it is fulfilled, whatever version it was made on."""
    stage = _stage()
    proposal = stage.proposal(ONE, TWO, THREE)
    first = _answer(stage, proposal)
    assert _answer(stage, proposal) == first
    assert len(stage.written) == 1


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"leader_epoch": 4}, NotController),
        ({"partition_epoch": 6}, NotController),
        ({"leader_epoch": 2}, FencedLeaderEpoch),
        ({"partition_epoch": 4}, InvalidUpdateVersion),
        ({"topic_id": b"another".ljust(16)}, UnknownTopicId),
        ({"topic_id": b"u".ljust(16, b"\0")}, UnknownTopicId),
        ({"topic_partition": TopicPartition("t", 1)}, UnknownTopicOrPartition),
        ({"topic_partition": TopicPartition("t", 2)}, UnknownTopicOrPartition),
        ({"isr": ()}, InvalidRequest),
        ({"isr": (TWO, THREE)}, InvalidRequest),
        ({"isr": (ONE, TWO, TWO)}, InvalidRequest),
        ({"isr": (ONE, IsrMember(4, 104))}, InvalidRequest),
        ({"isr": (ONE, TWO, IsrMember(3, 99))}, IneligibleReplica),
    ],
)
def test_what_is_refused(change: dict[str, object], error: type[KafkaError]) -> None:
    """RE-9"""
    never = PartitionImage.never_led((9,))
    stage = Stage(topic("t", led(1, 2, replicas=(1, 2, 3)), never), topic("u", led(1)))
    proposal = stage.proposal(ONE, TWO, THREE)._replace(**change)  # type: ignore[arg-type]
    assert _answer(stage, proposal) == IsrAnswer(error.code)
    assert stage.written == []


def test_only_the_leader_may_propose() -> None:
    stage = _stage()
    assert _answer(stage, stage.proposal(TWO), broker_id=2).error_code == InvalidRequest.code


def test_without_topic_ids_and_epochs_of_members_an_older_leader_is_understood() -> None:
    stage = _stage()
    members = [IsrMember(each, -1) for each in (1, 2, 3)]
    proposal = stage.proposal(*members)._replace(topic_id=bytes(16))
    assert _answer(stage, proposal).error_code == 0


def test_a_broker_of_another_registration_proposes_nothing() -> None:
    """RE-9: a leader that lost its session may not know yet that others lead."""
    stage = _stage()
    proposals = [stage.proposal(ONE, TWO, THREE)]
    for broker_id, epoch in ((1, 100), (1, 102), (1, -1), (7, 107)):
        decision, answers = stage.controller.isr_proposed(broker_id, epoch, proposals)
        assert answers == {T0: IsrAnswer(StaleBrokerEpoch.code)}
        assert decision.operations == ()
        assert decision.requests == ()


def test_who_is_dead_offline_or_about_to_go_does_not_join() -> None:
    """KIP-841"""
    stage = _stage()
    proposal = stage.proposal(ONE, TWO, THREE)
    stage.go(3)
    assert _answer(stage, proposal).error_code == IneligibleReplica.code
    stage.come(broker(3))
    stage.carry_out(stage.controller.shutdown_requested(3, 103)[0])
    assert _answer(stage, stage.proposal(ONE, TWO, THREE)).error_code == IneligibleReplica.code
    stage.carry_out(stage.controller.replicas_offline(2, [T0]))
    assert _answer(stage, stage.proposal(ONE, TWO)).error_code == IneligibleReplica.code


def test_a_leader_that_shuts_down_may_take_in_who_shall_lead_after_it() -> None:
    stage = _stage(1)
    decision, remaining = stage.controller.shutdown_requested(1, 101)
    stage.carry_out(decision)
    assert remaining == [T0]
    assert _answer(stage, stage.proposal(ONE, TWO)).error_code == 0
    decision, remaining = stage.controller.shutdown_requested(1, 101)
    stage.carry_out(decision)
    assert (remaining, stage[T0].leader, stage[T0].isr) == ([], 2, (2,))


def test_a_proposal_made_before_an_election_is_refused() -> None:
    """RE-9: the former leader gets it by LeaderAndIsr."""
    stage = _stage(1, 2, 3)
    proposal = stage.proposal(ONE, TWO)
    stage.go(3)
    assert _answer(stage, proposal) == IsrAnswer(FencedLeaderEpoch.code)


def test_a_topic_that_is_to_go_has_no_isr_any_more() -> None:
    stage = _stage()
    proposal = stage.proposal(ONE)
    stage.carry_out(stage.controller.deletions_requested(["t"]))
    assert stage[T0].leader == NO_LEADER
    assert _answer(stage, proposal).error_code == UnknownTopicOrPartition.code


def test_several_partitions_are_decided_in_one_commit() -> None:
    stage = Stage(topic("t", led(1, 2), led(1, 2), led(2, 1)))
    names = [TopicPartition("t", number) for number in range(3)]
    proposals = [stage.proposal(ONE, name=name) for name in names]
    decision, answers = stage.controller.isr_proposed(1, 101, proposals)
    stage.carry_out(decision)
    assert [answers[name].error_code for name in names] == [0, 0, InvalidRequest.code]
    assert len(decision.operations) == 3, "the fence and two writes"


# --- what leaders have written themselves --------------------------------------------------------


def _written(*isr: int, version: int = 6, leader: int = 1, leader_epoch: int = 3) -> Written:
    return Written(StateNode(leader, leader_epoch, isr, 4), version)


def test_an_isr_that_its_leader_has_written_is_taken_over_and_then_sent() -> None:
    """RE-9: below 2.7; only metadata is sent, and nothing is written."""
    stage = _stage()
    assert stage.controller.states_read({T0: _written(1, 2, 3)})
    assert stage[T0] == PartitionImage(1, 3, (1, 2, 3), (1, 2, 3), 6, 4)
    assert not stage.controller.states_read({T0: _written(1, 2, 3)})
    decision = stage.carry_out(stage.controller.isrs_announced([T0]))
    assert decision.operations == ()
    assert stage.sent() == [(each, "UpdateMetadata") for each in (1, 2, 3)]
    assert stage.known_to(2) == [["t"]]
    stage.go(1)
    assert (stage[T0].leader, stage[T0].isr) == (2, (2, 3))


@pytest.mark.parametrize(
    "written",
    [
        _written(1, version=5),
        _written(1, version=4),
        _written(2, leader=2),
        _written(1, leader_epoch=4),
        _written(1, leader_epoch=2),
    ],
)
def test_what_is_older_or_says_more_than_another_isr_is_left_alone(written: Written) -> None:
    stage = _stage()
    before = stage.controller.image
    assert not stage.controller.states_read({T0: written})
    assert stage.controller.image is before


def test_announcements_of_unknown_or_deleted_topics_are_ignored() -> None:
    stage = Stage(topic("t", led(1, 2)), topic("going", led(1, 2)))
    stage.carry_out(stage.controller.deletions_requested(["going"]))
    gone, missing = TopicPartition("going", 0), TopicPartition("t", 7)
    stage.controller.states_read({gone: _written(1, version=99), missing: _written(1)})
    decision = stage.controller.isrs_announced([gone, missing, TopicPartition("none", 0)])
    assert (decision.operations, decision.requests) == ((), ())


def test_who_goes_is_written_on_what_the_leader_wrote() -> None:
    """RE-9, TP-4: a topic that is being deleted is read, too, and is not sent."""
    stage = _stage()
    doomed = stage.controller.deletions_requested(["t"])
    assert stage.controller.states_read({T0: _written(1)})
    assert stage.controller.deletions_requested(["t"]).operations != doomed.operations
    stage.carry_out(stage.controller.deletions_requested(["t"]))
    assert all("t" not in names for names in stage.known_to(1))


def test_a_move_is_completed_when_its_leader_has_announced_the_isr() -> None:
    """RE-13, KIP-455: a leader below 2.7, under a controller of whatever version."""
    partition = led(1, 2)._replace(replicas=(2, 3, 1), adding=(3,), removing=(1,))
    stage = Stage(topic("t", partition))
    stage.controller.states_read({T0: _written(1, 2, 3)})
    stage.carry_out(stage.controller.isrs_announced([T0]))
    assert (stage[T0].replicas, stage[T0].isr, stage[T0].adding) == ((2, 3), (2, 3), ())
    assert stage[T0].leader == 2
    assert stage.stopped(1) == [(T0, True)]
