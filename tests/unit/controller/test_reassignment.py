"""KIP-455: moving partitions, in Kafka's steps."""

from __future__ import annotations

import re

import pytest

from barnabas.cluster import layout
from barnabas.cluster.controller_requests import IsrMember
from barnabas.cluster.image import NO_LEADER, PartitionImage
from barnabas.cluster.store import ANY_VERSION, Set
from barnabas.controller.controller import Decision, LogEnd
from barnabas.errors import (
    InvalidReplicaAssignment,
    KafkaError,
    NewLeaderElected,
    NoReassignmentInProgress,
    UnknownTopicOrPartition,
)
from barnabas.types import TopicPartition
from tests.unit.controller.stage import T0, Stage, broker, brokers, led, topic

FIVE = brokers(1, 2, 3, 4, 5)


def _reassign(
    stage: Stage, replicas: tuple[int, ...] | None, name: TopicPartition = T0
) -> KafkaError | None:
    decision, outcomes = stage.controller.reassign({name: replicas})
    stage.carry_out(decision)
    return outcomes[name]


def _topic_nodes(decision: Decision) -> list[layout.TopicNode]:
    return [
        layout.decode_topic("t", operation.data)
        for operation in decision.operations
        if isinstance(operation, Set) and operation.path == "/brokers/topics/t"
    ]


def _stage(*isr: int) -> Stage:
    return Stage(topic("t", led(*isr), led(1, 2)), live=FIVE)


def _moving(stage: Stage) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    return stage[T0].replicas, stage[T0].adding, stage[T0].removing


def test_a_move_begins_with_all_replicas_and_a_new_epoch() -> None:
    """RE-13: the new ones are marked as new; the old ones stay."""
    stage = _stage(1, 2)
    assert _reassign(stage, (2, 3)) is None
    assert _moving(stage) == ((2, 3, 1), (3,), (1,))
    assert (stage[T0].leader, stage[T0].isr, stage[T0].leader_epoch) == (1, (1, 2), 4)
    (node,) = _topic_nodes(stage.decision)
    assert (node.replicas[0], node.adding, node.removing) == ((2, 3, 1), {0: (3,)}, {0: (1,)})
    assert node.replicas[1] == (1, 2)
    first = stage.decision.operations[1]
    assert isinstance(first, Set) and first.path == "/brokers/topics/t", "before the epoch"
    new = {
        to: [state.is_new for state in request.partitions]  # type: ignore[union-attr]
        for to, request in stage.decision.requests
        if type(request).__name__ == "LeaderAndIsr"
    }
    assert new == {1: [False], 2: [False], 3: [True]}


def test_it_ends_when_all_targets_are_in_sync() -> None:
    """RE-13: a target leads, who goes leaves the ISR, the topic's node has the targets alone."""
    stage = _stage(1, 2)
    _reassign(stage, (2, 3))
    answer = stage.propose(1, 2, 3)
    assert answer.error_code == NewLeaderElected.code, "LeaderAndIsr says the rest"
    assert _moving(stage) == ((2, 3), (), ())
    assert (stage[T0].leader, stage[T0].isr, stage[T0].leader_epoch) == (2, (2, 3), 6)
    steps = [(state.leader, state.isr) for state in stage.written_of(T0)[1:]]
    assert steps == [(1, (1, 2, 3)), (2, (1, 2, 3)), (2, (2, 3))]
    assert stage.stopped(1) == [(T0, True)]
    assert stage.stop_epochs(1) == {T0: 6}, "a replica that comes back is in a newer one (KIP-570)"
    assert stage.notified(1) == {}
    assert stage.notified(2) == stage.notified(3) == {T0: stage[T0]}
    assert not _topic_nodes(stage.decision), "who takes over now has to stop the replica again"
    assert stage.controller.awaits(1, T0)
    stage.carry_out(stage.controller.logs_deleted(1, [T0]))
    (node,) = _topic_nodes(stage.decision)
    assert node == layout.TopicNode(node.topic_id, {0: (2, 3), 1: (1, 2)})
    assert stage.decision.requests == ()
    assert not stage.controller.awaits(1, T0)


def test_two_that_end_at_once_write_their_topic_once() -> None:
    """A second write in the same commit would not find the version that it names."""
    stage = Stage(topic("t", led(1, 2), led(1, 2)), live=FIVE)
    other = TopicPartition("t", 1)
    decision, _ = stage.controller.reassign({T0: (1, 3), other: (1, 4)})
    stage.carry_out(decision)
    proposals = [
        stage.proposal(*(IsrMember(each, stage.live[each].epoch) for each in isr), name=name)
        for name, isr in ((T0, (1, 2, 3)), (other, (1, 2, 4)))
    ]
    decision, _ = stage.controller.isr_proposed(1, stage.live[1].epoch, proposals)
    stage.carry_out(decision)
    stage.carry_out(stage.controller.logs_deleted(2, [T0, other]))
    (node,) = _topic_nodes(stage.decision)
    assert node == layout.TopicNode(node.topic_id, {0: (1, 3), 1: (1, 4)})


def test_a_leader_that_stays_keeps_leading() -> None:
    stage = _stage(1, 2)
    _reassign(stage, (1, 3))
    assert stage.propose(1, 2).error_code == 0
    answer = stage.propose(1, 2, 3)
    assert (answer.error_code, answer.leader, answer.isr) == (0, 1, (1, 2, 3))
    assert (stage[T0].leader, stage[T0].isr, stage[T0].replicas) == (1, (1, 3), (1, 3))


def test_another_order_is_done_at_once() -> None:
    """And its new first replica leads after a preferred election."""
    stage = _stage(1, 2)
    assert _reassign(stage, (2, 1)) is None
    assert _moving(stage) == ((2, 1), (), ())
    assert stage[T0].leader == 1
    decision, _ = stage.controller.elect_leaders([T0], unclean=False)
    stage.carry_out(decision)
    assert stage[T0].leader == 2


def test_fewer_replicas_are_done_at_once() -> None:
    stage = _stage(1, 2, 3)
    assert _reassign(stage, (3,)) is None
    assert (stage[T0].leader, stage[T0].isr, stage[T0].replicas) == (3, (3,), (3,))
    assert stage.stopped(1) == stage.stopped(2) == [(T0, True)]


def test_it_can_be_taken_back() -> None:
    stage = _stage(1, 2)
    _reassign(stage, (3, 4))
    stage.propose(1, 2, 3)
    assert _reassign(stage, None) is None
    assert _moving(stage) == ((1, 2), (), ())
    assert (stage[T0].leader, stage[T0].isr) == (1, (1, 2))
    assert stage.stopped(3) == stage.stopped(4) == [(T0, True)]
    assert isinstance(_reassign(stage, None), NoReassignmentInProgress)


def test_the_next_controller_stops_what_a_cancelled_move_left_behind() -> None:
    """RE-13: a StopReplica that was lost with its controller leaves no log for good."""
    stage = _stage(1, 2)
    _reassign(stage, (3, 4))
    stage.propose(1, 2, 3)
    _reassign(stage, None)
    (node,) = _topic_nodes(stage.decision)
    kept = layout.TopicNode(node.topic_id, {0: (1, 2, 3, 4), 1: (1, 2)}, {0: (3, 4)}, {0: (3, 4)})
    assert node == kept
    stage.carry_out(stage.controller.logs_deleted(4, [T0]))
    (node,) = _topic_nodes(stage.decision)
    assert (node.replicas[0], node.adding[0], node.removing[0]) == ((1, 2, 3), (3,), (3,))
    read = stage[T0]._replace(replicas=node.replicas[0], adding=(3,), removing=(3,))
    after = Stage(topic("t", read, led(1, 2)), live=FIVE)
    after.carry_out(after.controller.on_elected([]))
    assert _moving(after) == ((1, 2), (), ())
    assert after.stopped(3) == [(T0, True)]
    after.carry_out(after.controller.logs_deleted(3, [T0]))
    (node,) = _topic_nodes(after.decision)
    assert node == layout.TopicNode(node.topic_id, {0: (1, 2), 1: (1, 2)})


def test_a_broker_that_is_gone_deletes_nothing_and_is_not_waited_for() -> None:
    """RE-13: its log is a stray when it comes back."""
    stage = _stage(1, 2)
    _reassign(stage, (2,))
    assert stage.controller.awaits(1, T0)
    stage.go(1)
    (node,) = _topic_nodes(stage.decision)
    assert node == layout.TopicNode(node.topic_id, {0: (2,), 1: (1, 2)})
    _reassign(stage, (2, 3))
    _reassign(stage, None)
    stage.carry_out(stage.controller.deletions_requested(["t"]))
    assert (T0, True) in stage.stopped(3), "its log goes with the topic"
    stage.carry_out(stage.controller.replicas_deleted(["t"], []))
    assert not stage.controller.awaits(3, T0), "a namesake has nothing to do with it"


def test_a_move_that_ends_while_one_of_those_that_leave_is_gone_does_not_list_it() -> None:
    """RE-13: its log is a stray, so a deletion of the topic does not wait for it either."""
    stage = _stage(1, 2, 3)
    _reassign(stage, (3, 4))
    stage.go(1)
    answer = stage.propose(2, 3, 4)
    assert answer.error_code == 0
    assert _moving(stage) == ((3, 4), (), ())
    (node,) = _topic_nodes(stage.decision)
    assert (node.replicas[0], node.removing[0]) == ((3, 4, 2), (2,))


def test_a_new_request_replaces_the_old_one() -> None:
    stage = _stage(1, 2)
    _reassign(stage, (3, 4))
    stage.propose(1, 2, 3)
    assert _reassign(stage, (5, 4)) is None
    assert _moving(stage) == ((5, 4, 1, 2), (5, 4), (1, 2))
    assert stage[T0].isr == (1, 2)
    assert stage.stopped(3) == [(T0, True)]
    assert stage.notified(5).keys() == stage.notified(4).keys() == {T0}


@pytest.mark.parametrize("leader", [3, NO_LEADER])
def test_it_is_not_taken_back_from_the_only_ones_in_sync(leader: int) -> None:
    """That would elect a replica without all records."""
    stage = _stage(1, 2)
    _reassign(stage, (3,))
    stage.go(1, 2)
    stage.carry_out(stage.controller.on_elected([]))
    moving = stage[T0]._replace(leader=leader, isr=(3,))
    image = stage.controller.image
    partitions = {**image.topics["t"].partitions, 0: moving}
    topics = {"t": image.topics["t"]._replace(partitions=partitions)}
    stage.controller.image = image._replace(topics=topics)
    assert isinstance(_reassign(stage, None), InvalidReplicaAssignment)
    assert stage[T0] == moving
    assert stage.decision.operations == ()


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        ((), "at least one"),
        ((1, 1), "listed twice"),
        ((1, -1), "not a broker id"),
        ((1, 9), r"\[9\] are not live"),
    ],
)
def test_what_is_no_assignment(replicas: tuple[int, ...], message: str) -> None:
    stage = _stage(1, 2)
    error = _reassign(stage, replicas)
    assert isinstance(error, InvalidReplicaAssignment)
    assert re.search(message, str(error))
    assert stage.decision.operations == ()
    assert stage.decision.requests == ()


def test_what_is_not_there_cannot_be_moved() -> None:
    stage = _stage(1, 2)
    for name in (TopicPartition("t", 9), TopicPartition("x", 0)):
        assert isinstance(_reassign(stage, (1, 3), name), UnknownTopicOrPartition)
    stage.carry_out(stage.controller.deletions_requested(["t"]))
    assert isinstance(_reassign(stage, (1, 3)), UnknownTopicOrPartition)


def test_some_requests_fail_and_the_others_are_granted_in_one_write_of_the_topic() -> None:
    stage = _stage(1, 2)
    other, gone = TopicPartition("t", 1), TopicPartition("t", 7)
    decision, outcomes = stage.controller.reassign({T0: (3,), other: (4,), gone: None})
    stage.carry_out(decision)
    assert outcomes[T0] is None and outcomes[other] is None
    (node,) = _topic_nodes(decision)
    assert node.adding == {0: (3,), 1: (4,)}


def test_a_dead_old_replica_may_be_moved_away() -> None:
    """RE-13: the way to be rid of a broker that never comes back."""
    stage = _stage(1, 2)
    stage.go(2)
    assert _reassign(stage, (1, 3)) is None
    stage.propose(1, 3)
    assert (stage[T0].replicas, stage[T0].isr) == ((1, 3), (1, 3))
    assert stage.stopped(2) == [], "there is no broker to notify"


def test_a_target_that_dies_and_comes_back_is_waited_for() -> None:
    stage = _stage(1, 2)
    _reassign(stage, (2, 3))
    stage.go(3)
    assert _moving(stage) == ((2, 3, 1), (3,), (1,))
    stage.come(broker(3, 203))
    assert stage.notified(3) == {T0: stage[T0]}
    stage.propose(1, 2, 3)
    assert _moving(stage) == ((2, 3), (), ())


def test_the_next_controller_goes_on_with_it() -> None:
    """RE-13: one that finds all targets in sync ends it."""
    begun = led(1, 2, replicas=(2, 3, 1))._replace(adding=(3,), removing=(1,))
    done = begun._replace(isr=(1, 2, 3))
    stage = Stage(topic("t", begun, done))
    stage.carry_out(stage.controller.on_elected([]))
    assert stage[T0] == begun
    assert stage[TopicPartition("t", 1)].replicas == (2, 3)
    assert stage.stopped(1) == [(TopicPartition("t", 1), True)]
    stage.propose(1, 2, 3)
    assert _moving(stage) == ((2, 3), (), ())


def test_a_move_that_no_target_can_lead_waits() -> None:
    stage = _stage(1, 2)
    _reassign(stage, (3,))
    stage.carry_out(stage.controller.shutdown_requested(3)[0])
    assert _moving(stage) == ((3, 1, 2), (3,), (1, 2))
    assert stage.propose(1, 2, 3).error_code != 0
    stage.come(broker(3, 203))
    stage.propose(1, 2, 3)
    assert (stage[T0].leader, _moving(stage)) == (3, ((3,), (), ()))


def test_a_dead_replica_that_stays_is_no_hindrance() -> None:
    stage = _stage(1, 2)
    stage.go(2)
    assert _reassign(stage, (2, 3)) is None
    assert _moving(stage) == ((2, 3, 1), (3,), (1,))


def test_a_new_controller_waits_for_the_only_target_that_is_in_sync() -> None:
    moving = led(3, replicas=(3, 1))._replace(adding=(3,), removing=(1,))
    stage = Stage(topic("t", moving), live=brokers(1, 2))
    stage.carry_out(stage.controller.on_elected([]))
    assert (stage[T0].leader, stage[T0].isr) == (NO_LEADER, (3,))
    assert _moving(stage) == ((3, 1), (3,), (1,))
    stage.come(broker(3))
    assert (stage[T0].leader, _moving(stage)) == (3, ((3,), (), ()))


def test_it_elects_no_leader_that_may_have_lost_records() -> None:
    """KIP-966: a smaller assignment is no way around the question where logs end."""
    safe = topic("t", led(1, replicas=(1, 2, 3)), min_insync_replicas="2")
    stage = Stage(safe)
    stage.come(broker(1, 201, lossy=True))
    assert _reassign(stage, (1,)) is None
    assert stage[T0].leader == NO_LEADER
    assert stage.controller.ends_wanted == {T0}
    ends = {1: LogEnd(2, 5), 2: LogEnd(3, 7), 3: LogEnd(3, 6)}
    stage.carry_out(stage.controller.ends_known({T0: ends}))
    assert (stage[T0].leader, stage[T0].isr) == (2, (2,))
    stage.propose(2, 1)
    assert (stage[T0].leader, _moving(stage)) == (1, ((1,), (), ()))


def test_a_leader_that_is_no_longer_wanted_hands_over_first() -> None:
    """And if all of the new targets are in sync the move is over at once."""
    begun = led(3, 1, 2, replicas=(3, 1, 2))._replace(adding=(3,), removing=(1, 2))
    stage = Stage(topic("t", begun), live=FIVE)
    assert _reassign(stage, (2,)) is None
    assert (stage[T0].leader, stage[T0].isr, _moving(stage)) == (2, (2,), ((2,), (), ()))
    assert stage.stopped(3) == stage.stopped(1) == [(T0, True)]
    states = [(state.leader, state.isr) for state in stage.written_of(T0)]
    assert states == [(2, (3, 1, 2)), (2, (1, 2)), (2, (1, 2)), (2, (2,))]


def test_a_partition_that_never_began_begins_elsewhere() -> None:
    stage = Stage(topic("t", PartitionImage.never_led((9,))))
    stage.carry_out(stage.controller.on_elected([]))
    assert stage[T0].leader == NO_LEADER
    assert _reassign(stage, (2, 3)) is None
    assert (stage[T0].leader, stage[T0].isr, stage[T0].replicas) == (2, (2, 3), (2, 3))


def test_a_topics_node_is_written_on_the_version_that_was_read() -> None:
    """Else a partition added meanwhile would be lost."""
    stage = _stage(1, 2)
    _reassign(stage, (2, 3))
    (written,) = [op for op in stage.decision.operations if op.path == "/brokers/topics/t"]
    assert isinstance(written, Set) and written.version == ANY_VERSION
    stage.controller.topic_nodes_read({"t": 4})
    versions = []
    for replicas in ((2, 4), (2, 5), None):
        _reassign(stage, replicas)
        for operation in stage.decision.operations:
            if isinstance(operation, Set) and operation.path == "/brokers/topics/t":
                versions.append(operation.version)
    assert versions == [4, 5, 6]
