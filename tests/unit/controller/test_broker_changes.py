"""Brokers that fail, start, re-register and shut down; and a controller failover."""

from __future__ import annotations

import pytest

from barnabas.cluster.image import NO_LEADER, PartitionImage
from barnabas.cluster.store import Create
from barnabas.controller.controller import Settings
from barnabas.errors import BrokerIdNotRegistered, IneligibleReplica, StaleBrokerEpoch
from barnabas.types import TopicPartition
from tests.unit.controller.stage import T0, Stage, broker, brokers, led, topic

T1, T2, T3 = (TopicPartition("t", number) for number in (1, 2, 3))


def test_another_member_leads_when_the_leader_goes() -> None:
    """RE-10: the first live replica of the assignment that is in sync; one epoch, one write."""
    stage = Stage(topic("t", led(1, 3, 2, replicas=(1, 2, 3))))
    stage.go(1)
    assert (stage[T0].leader, stage[T0].isr, stage[T0].leader_epoch) == (2, (3, 2), 4)
    assert len(stage.written) == 1
    assert stage.notified(2) == stage.notified(3) == {T0: stage[T0]}
    assert stage.sent() == [(2, "LeaderAndIsr"), (3, "LeaderAndIsr"),
                            (2, "UpdateMetadata"), (3, "UpdateMetadata")]  # fmt: skip


def test_a_live_replica_that_is_not_in_sync_does_not_lead() -> None:
    """RE-11: by default a member of the ISR is waited for."""
    stage = Stage(topic("t", led(1, replicas=(2, 1))))
    stage.go(1)
    assert (stage[T0].leader, stage[T0].isr, stage[T0].leader_epoch) == (NO_LEADER, (1,), 4)
    assert stage.controller.offline_partitions == {T0}
    stage.come(broker(1, 201))
    assert (stage[T0].leader, stage[T0].isr, stage[T0].leader_epoch) == (1, (1,), 5)
    assert not stage.controller.offline_partitions


def test_a_follower_that_goes_leaves_the_isr_in_a_new_epoch() -> None:
    stage = Stage(topic("t", led(1, 2, 3)))
    stage.go(2)
    assert (stage[T0].leader, stage[T0].isr, stage[T0].leader_epoch) == (1, (1, 3), 4)


def test_what_does_not_concern_a_partition_moves_nothing_of_it() -> None:
    stage = Stage(topic("t", led(1, 2), led(1, replicas=(1, 3))), topic("u", led(1, 2)))
    decision = stage.go(3)
    assert decision.operations == ()
    assert stage.sent() == [(1, "UpdateMetadata"), (2, "UpdateMetadata")]
    assert stage.known_to(1) == [[]], "that it has gone, and nothing else"
    assert stage.carry_out(stage.controller.brokers_changed(dict(stage.live))).requests == ()


def test_of_several_that_go_at_once_the_leader_is_the_last_in_the_isr() -> None:
    """It has at least what the others have."""
    stage = Stage(topic("t", led(3, 2, 1)))
    stage.go(3, 2, 1)
    assert (stage[T0].leader, stage[T0].isr) == (NO_LEADER, (3,))
    stage.come(broker(2, 202), broker(1, 201))
    assert stage[T0].leader == NO_LEADER
    stage.come(broker(3, 203))
    assert (stage[T0].leader, stage[T0].isr) == (3, (3,))


def test_without_the_isr_any_live_replica_leads_where_that_is_allowed() -> None:
    """RE-11: said, and counted."""
    unclean = topic("t", led(1, replicas=(1, 2, 3)), unclean_leader_election_enable="true")
    stage = Stage(unclean, topic("u", led(1, replicas=(1, 2))))
    stage.go(1)
    assert (stage[T0].leader, stage[T0].isr) == (2, (2,))
    assert stage[TopicPartition("u", 0)].leader == NO_LEADER
    assert stage.controller.unclean_elections == 1
    (note,) = stage.decision.notes
    assert "t-0" in note and "unclean election" in note and "records may be lost" in note
    marked = [op for op in stage.decision.operations if b"recovery" in (getattr(op, "data", b""))]
    assert len(marked) == 1, "as Kafka marks it"


def test_the_clusters_default_allows_it_where_the_topic_says_nothing() -> None:
    settings = Settings(is_unclean_allowed=True)
    forbids = topic("u", led(1, replicas=(1, 2)), unclean_leader_election_enable="false")
    stage = Stage(topic("t", led(1, replicas=(1, 2))), forbids, settings=settings)
    stage.go(1)
    assert stage[T0].leader == 2
    assert stage[TopicPartition("u", 0)].leader == NO_LEADER


def test_new_settings_allow_a_leader() -> None:
    stage = Stage(topic("t", led(1, replicas=(1, 2))))
    stage.go(1)
    config = {"unclean.leader.election.enable": "true"}
    stage.carry_out(stage.controller.configs_changed({"t": config}))
    assert stage[T0].leader == 2
    assert stage.notified(2) == {T0: stage[T0]}


def test_a_new_broker_is_sent_everything_and_the_others_its_address() -> None:
    """ZK-3: they can reach it before they have to follow it."""
    stage = Stage(
        topic("t", led(1, replicas=(1, 3)), led(3, leader=NO_LEADER)),
        topic("u", led(1, 2)),
        live=brokers(1, 2),
    )
    stage.come(broker(3))
    assert stage.sent() == [
        (1, "UpdateMetadata"),
        (2, "UpdateMetadata"),
        (3, "UpdateMetadata"),
        (3, "LeaderAndIsr"),
        (1, "UpdateMetadata"),
        (2, "UpdateMetadata"),
    ]
    assert sorted(stage.known_to(3)[0]) == ["t", "u"]
    assert stage.notified(3) == {T0: stage[T0], T1: stage[T1]}
    assert stage[T1].leader == 3
    assert stage.known_to(1) == [[], ["t"]], "first addresses, then what has changed"


def test_a_broker_that_changes_nothing_makes_no_noise() -> None:
    """The others learn its address, once; it learns everything, though it hosts nothing."""
    stage = Stage(topic("t", led(1, 2)), live=brokers(1, 2))
    decision = stage.come(broker(3))
    assert stage.sent() == [(each, "UpdateMetadata") for each in (1, 2, 3)]
    assert stage.known_to(3) == [["t"]]
    assert decision.operations == ()


def test_a_registration_that_is_another_one_is_a_failure_and_a_start() -> None:
    """KIP-903: its failure went unseen, and it leaves the ISR nevertheless."""
    stage = Stage(topic("t", led(1, 2, 3), led(2, 1), led(1)))
    stage.come(broker(1, 999))
    assert (stage[T0].leader, stage[T0].isr, stage[T0].leader_epoch) == (2, (2, 3), 4)
    assert (stage[T1].leader, stage[T1].isr, stage[T1].leader_epoch) == (2, (2,), 4)
    alone = stage[TopicPartition("t", 2)]
    assert (alone.leader, alone.isr, alone.leader_epoch) == (1, (1,), 5)
    assert len(stage.notified(1)) == 3
    assert stage.notified(2) == {T0: stage[T0], T1: stage[T1]}


def test_a_broker_that_comes_back_has_its_directories_back() -> None:
    stage = Stage(topic("t", led(1)), live=brokers(1, 2))
    stage.carry_out(stage.controller.replicas_offline(1, [T0]))
    assert stage[T0].leader == NO_LEADER
    stage.come(broker(1, 999))
    assert (stage[T0].leader, stage[T0].offline_replicas) == (1, ())


def test_a_late_report_of_an_ended_registration_is_ignored() -> None:
    """ST-10: its directories may be back by now, and then nothing would revoke the report."""
    stage = Stage(topic("t", led(1, 3)))
    reported_in = stage.live[3].epoch
    stage.go(3)
    assert stage.controller.replicas_offline(3, [T0], reported_in).requests == ()
    stage.come(broker(3, 999))
    assert stage[T0].offline_replicas == ()
    assert stage.controller.replicas_offline(3, [T0], reported_in).requests == ()
    assert stage.propose(1, 3).error_code == 0
    assert stage[T0].isr == (1, 3)
    stage.carry_out(stage.controller.replicas_offline(3, [T0], 999))
    assert (stage[T0].isr, stage[T0].offline_replicas) == ((1,), (3,))


def test_a_replica_that_is_hosted_again_is_in_reach_again() -> None:
    """ST-8: a damaged log begins again, without a start of its broker."""
    stage = Stage(topic("t", led(1, 3)))
    stage.carry_out(stage.controller.replicas_offline(3, [T0]))
    assert stage.propose(1, 3).error_code == IneligibleReplica.code
    assert stage.controller.replicas_online(3, [T0], 999).requests == (), "in another life"
    decision = stage.carry_out(stage.controller.replicas_online(3, [T0], stage.live[3].epoch))
    assert decision.operations == ()
    assert stage.sent() == [(each, "UpdateMetadata") for each in (1, 2, 3)]
    assert stage[T0].offline_replicas == ()
    assert stage.propose(1, 3).error_code == 0
    again = stage.controller.replicas_online(3, [T0, T1], stage.live[3].epoch)
    assert again.requests == (), "once is enough"


def test_what_waited_for_a_replica_that_is_hosted_again_is_led() -> None:
    stage = Stage(topic("t", led(1)), live=brokers(1, 2))
    stage.carry_out(stage.controller.replicas_offline(1, [T0]))
    assert stage[T0].leader == NO_LEADER
    stage.carry_out(stage.controller.replicas_online(1, [T0], stage.live[1].epoch))
    assert (stage[T0].leader, stage[T0].offline_replicas) == (1, ())


def test_a_replica_that_has_moved_elsewhere_may_come_back_after_a_start() -> None:
    stage = Stage(topic("t", led(1, replicas=(1, 3))))
    stage.carry_out(stage.controller.replicas_offline(3, [T0]))
    stage.carry_out(stage.controller.reassign({T0: [1, 2]})[0])
    assert stage.propose(1, 2).error_code == 0
    assert (stage[T0].replicas, stage[T0].offline_replicas) == ((1, 2), (3,))
    stage.come(broker(3, 999))
    stage.carry_out(stage.controller.reassign({T0: [1, 2, 3]})[0])
    assert stage.propose(1, 2, 3).error_code == 0
    assert (stage[T0].isr, stage[T0].offline_replicas) == ((1, 2, 3), ())


def test_a_topic_that_is_to_go_has_them_back_too() -> None:
    """ZK-4, ST-10: else its deletion would wait for them for ever; no broker is notified of it."""
    stage = Stage(topic("t", led(1, 3)), topic("u", led(3, 1)))
    stage.carry_out(stage.controller.replicas_offline(3, [T0, TopicPartition("u", 0)]))
    stage.carry_out(stage.controller.deletions_requested(["t"]))
    assert stage[T0].offline_replicas == (3,)
    stage.come(broker(3, 999))
    assert stage[T0].offline_replicas == stage[TopicPartition("u", 0)].offline_replicas == ()
    assert stage.stopped(3) == [(T0, True)]
    assert stage.notified(3).keys() == {TopicPartition("u", 0)}
    for each in (1, 2, 3):
        assert {name for names in stage.known_to(each) for name in names} == {"u"}


def test_a_topic_that_is_to_go_has_them_back_when_the_broker_goes() -> None:
    stage = Stage(topic("t", led(1, 3)))
    stage.carry_out(stage.controller.replicas_offline(3, [T0]))
    stage.carry_out(stage.controller.deletions_requested(["t"]))
    stage.go(3)
    assert stage[T0].offline_replicas == ()
    assert stage.sent() == [(1, "UpdateMetadata"), (2, "UpdateMetadata")]
    assert stage.known_to(1) == [[]]


def test_what_was_created_without_a_live_replica_begins_when_one_comes() -> None:
    stage = Stage(live=brokers(1))
    stage.carry_out(stage.controller.topics_added([topic("t", PartitionImage.never_led((2,)))]))
    assert stage.decision.operations == ()
    stage.carry_out(stage.controller.on_elected([]))
    assert stage.decision.operations == (), "nothing is made twice"
    decision = stage.come(broker(2))
    created = [op.path for op in decision.operations if isinstance(op, Create)]
    assert created == [
        "/brokers/topics/t/partitions",
        "/brokers/topics/t/partitions/0",
        "/brokers/topics/t/partitions/0/state",
    ]
    assert stage[T0].leader == 2


def test_who_was_away_deletes_what_is_to_go_when_it_comes() -> None:
    """ZK-4: a topic waits for a dead replica, and does not come to life with it."""
    stage = Stage(topic("t", led(1, 2, 3)), topic("u", led(2, 3)))
    stage.go(3)
    stage.carry_out(stage.controller.deletions_requested(["t"]))
    assert stage.stopped(1) == stage.stopped(2) == [(T0, True)]
    stage.come(broker(3))
    assert stage.stopped(3) == [(T0, True)]
    assert stage.stop_epochs(3) == {T0: -2}, "whatever its epoch is: the topic goes (KIP-570)"
    assert stage.notified(3).keys() == {TopicPartition("u", 0)}
    assert stage.known_to(3) == [["u"]]
    assert "t" in stage.controller.image.topics
    stage.carry_out(stage.controller.replicas_deleted(["t"], ["/brokers/topics/t"]))
    stage.go(2)
    assert "t" not in stage.controller.image.topics


def test_a_topic_whose_deletion_is_requested_as_it_appears_is_not_begun() -> None:
    stage = Stage()
    stage.carry_out(stage.controller.on_elected(["t"]))
    stage.carry_out(stage.controller.topics_added([topic("t", PartitionImage.never_led((1,)))]))
    assert stage.decision.operations == ()
    assert not stage.controller.image.topics


def test_a_topic_may_come_back_under_its_name() -> None:
    stage = Stage(topic("t", led(1)))
    stage.carry_out(stage.controller.deletions_requested(["t"]))
    stage.carry_out(stage.controller.replicas_deleted(["t"], ["/brokers/topics/t"]))
    again = topic("t", PartitionImage.never_led((2,)))
    stage.carry_out(stage.controller.topics_added([again]))
    assert stage[T0].leader == 2


def test_a_new_controller_takes_the_dead_from_every_isr() -> None:
    """In as many writes as Kafka's: first there is no leader, then another one."""
    stage = Stage(topic("t", led(3, 1, 2), led(3, replicas=(3, 1))), live=brokers(1, 2))
    stage.carry_out(stage.controller.on_elected([]))
    states = [(state.leader, state.isr, state.leader_epoch) for state in stage.written_of(T0)]
    assert states == [(NO_LEADER, (1, 2), 4), (1, (1, 2), 5)]
    assert (stage[T1].leader, stage[T1].isr, stage[T1].leader_epoch) == (NO_LEADER, (3,), 4)
    assert stage.sent()[:2] == [(1, "UpdateMetadata"), (2, "UpdateMetadata")]
    assert stage.known_to(1) == [[], ["t"]]


def test_a_directory_that_is_lost_may_cost_records_where_that_is_allowed() -> None:
    """RE-11; the broker that lost it begins again if only its log was damaged (ST-8)."""
    unclean = topic("t", led(1, replicas=(1, 2)), unclean_leader_election_enable="true")
    stage = Stage(unclean)
    stage.carry_out(stage.controller.replicas_offline(1, [T0]))
    assert (stage[T0].leader, stage[T0].isr) == (2, (2,))
    assert stage.notified(1) == {T0: stage[T0]}


# --- controlled shutdown -------------------------------------------------------------------------


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
