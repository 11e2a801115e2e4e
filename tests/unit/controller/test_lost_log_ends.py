"""KIP-966, "last replica standing": a replica without a sure log end does not lead by the ISR."""

from __future__ import annotations

import pytest

from barnabas.cluster.image import NO_LEADER
from barnabas.controller.controller import LogEnd, Settings
from barnabas.controller.lost_log_ends import largest
from barnabas.errors import PreferredLeaderNotAvailable
from tests.unit.controller.stage import T0, Stage, broker, brokers, led, topic

TWO = Settings(min_insync_replicas=2)


def _last_standing(*, lossy: bool = True, settings: Settings = TWO, **config: str) -> Stage:
    """Broker 1 was the last of three in sync, died, and is back."""
    stage = Stage(topic("t", led(1, replicas=(1, 2, 3)), **config), settings=settings)
    stage.go(1)
    assert (stage[T0].leader, stage[T0].isr) == (NO_LEADER, (1,))
    stage.come(broker(1, 201, lossy=lossy))
    return stage


def _say(stage: Stage, **ends: tuple[int, int]) -> None:
    said = {int(name[1:]): LogEnd(*end) for name, end in ends.items()}
    stage.carry_out(stage.controller.ends_known({T0: said}))


def test_a_member_that_has_others_beside_it_leaves() -> None:
    """KIP-966: (a) the others have everything that was acknowledged."""
    stage = Stage(topic("t", led(1, 2)))
    stage.come(broker(1, 201, lossy=True))
    assert (stage[T0].leader, stage[T0].isr) == (2, (2,))
    assert not stage.controller.ends_wanted


def test_if_the_others_are_dead_one_of_them_is_waited_for() -> None:
    """KIP-966: (a) a new controller finds the one that may have lost, and no other."""
    live = {1: broker(1, lossy=True), 3: broker(3)}
    stage = Stage(topic("t", led(1, 2, replicas=(1, 2, 3))), live=live, settings=TWO)
    stage.carry_out(stage.controller.on_elected([]))
    assert (stage[T0].leader, stage[T0].isr) == (NO_LEADER, (2,))
    assert not stage.controller.ends_wanted
    stage.come(broker(2))
    assert (stage[T0].leader, stage[T0].isr) == (2, (2,))


def test_the_last_member_does_not_lead_before_all_have_said_where_they_end() -> None:
    """KIP-966: (b) the largest leads, and is the ISR."""
    stage = _last_standing()
    assert stage[T0].leader == NO_LEADER
    assert stage.controller.ends_wanted == {T0}
    _say(stage, b1=(2, 100), b2=(3, 90))
    assert stage[T0].leader == NO_LEADER, "broker 3 may have more"
    assert stage.decision.operations == ()
    _say(stage, b3=(3, 95))
    assert (stage[T0].leader, stage[T0].isr, stage[T0].leader_epoch) == (3, (3,), 5)
    assert stage.notified(1) == stage.notified(2) == stage.notified(3) == {T0: stage[T0]}
    assert not stage.controller.ends_wanted
    (note,) = stage.decision.notes
    assert "highest log end offset" in note


def test_the_last_member_leads_if_it_has_lost_nothing_after_all() -> None:
    stage = _last_standing()
    _say(stage, b1=(3, 100), b2=(3, 100), b3=(3, 99))
    assert (stage[T0].leader, stage[T0].isr) == (1, (1,))
    assert stage.decision.notes == ()


def test_who_has_ended_well_leads_at_once() -> None:
    stage = _last_standing(lossy=False)
    assert (stage[T0].leader, stage.decision.notes) == (1, ())


@pytest.mark.parametrize(
    ("config", "settings"),
    [
        ({}, Settings(min_insync_replicas=1)),
        ({"min_insync_replicas": "1"}, TWO),
        ({"unclean_leader_election_enable": "true"}, TWO),
        ({"min_insync_replicas": "by hand"}, Settings(min_insync_replicas=1)),
    ],
)
def test_where_one_replica_is_enough_it_leads_as_in_kafka(
    config: dict[str, str], settings: Settings
) -> None:
    """KIP-966: (c) no other need have what it had; logged as a warning."""
    stage = Stage(topic("t", led(1, replicas=(1, 2)), **config), settings=settings)
    stage.come(broker(1, 201, lossy=True))
    assert (stage[T0].leader, stage[T0].isr, stage[T0].leader_epoch) == (1, (1,), 5)
    (note,) = stage.decision.notes
    assert "may have lost records" in note


def test_a_topics_own_minimum_goes_before_the_clusters() -> None:
    stage = _last_standing(settings=Settings(), min_insync_replicas="2")
    assert stage.controller.ends_wanted == {T0}
    stage.carry_out(stage.controller.configs_changed({"t": {"min.insync.replicas": "1"}}))
    assert stage[T0].leader == 1


def test_a_broker_that_warns_no_more_leads_by_the_isr() -> None:
    """RE-10, KIP-966: it withdraws its warning once all leaders were elected knowing of that; a
    controller may have read its registration shortly before, and asks for log ends in vain."""
    stage = _last_standing()
    assert stage.controller.ends_wanted == {T0}
    stage.come(broker(1, 201))
    assert stage.controller.ends_wanted == frozenset()
    assert (stage[T0].leader, stage[T0].isr) == (1, (1,))


def test_of_one_replica_nothing_better_is_known() -> None:
    stage = Stage(topic("t", led(1)), settings=TWO)
    stage.come(broker(1, 201, lossy=True))
    assert stage[T0].leader == 1


def test_the_largest_is_waited_for_if_it_cannot_lead_now() -> None:
    stage = _last_standing()
    stage.carry_out(stage.controller.shutdown_requested(2)[0])
    stage.carry_out(stage.controller.replicas_offline(3, [T0]))
    _say(stage, b1=(2, 10), b2=(3, 90), b3=(3, 80))
    assert stage[T0].leader == NO_LEADER, "broker 2 is about to go"
    _say(stage, b2=(3, 70))
    assert stage[T0].leader == NO_LEADER, "broker 3 has lost its directory"
    _say(stage, b3=(2, 5), b2=(2, 6))
    assert stage[T0].leader == 1, "who has less need not be there to stay"


def test_a_new_controller_waits_as_the_old_one_did() -> None:
    stage = _last_standing()
    _say(stage, b1=(2, 10), b2=(3, 90))
    assert stage.carry_out(stage.controller.on_elected([])).operations == ()
    assert stage.controller.ends_wanted == {T0}


def test_a_new_controller_leaves_one_replica_alone_where_it_leads() -> None:
    stage = Stage(topic("t", led(1)), live={1: broker(1, lossy=True)}, settings=TWO)
    assert stage.carry_out(stage.controller.on_elected([])).operations == ()


def test_who_is_waited_for_may_go_again_and_shut_down() -> None:
    """Its place in the ISR is not changed by that, nor is anything written."""
    stage = _last_standing()
    decision, remaining = stage.controller.shutdown_requested(1, 201)
    stage.carry_out(decision)
    assert (decision.operations, remaining) == ((), [])
    assert stage.go(1).operations == ()
    assert (stage[T0].leader, stage[T0].isr) == (NO_LEADER, (1,))
    assert not stage.controller.ends_wanted
    stage.come(broker(1, 301))
    assert stage[T0].leader == 1, "it ended well this time"


def test_what_was_said_in_another_registration_does_not_count() -> None:
    """ABA: it may have lost since then what it said."""
    stage = _last_standing()
    _say(stage, b1=(2, 10), b2=(3, 90))
    stage.come(broker(2, 202))
    _say(stage, b3=(3, 80))
    assert stage[T0].leader == NO_LEADER
    stage.carry_out(stage.controller.ends_known({T0: {2: LogEnd(3, 90, broker_epoch=102)}}))
    assert stage[T0].leader == NO_LEADER, "an answer that was under way"
    stage.carry_out(stage.controller.ends_known({T0: {2: LogEnd(3, 70, broker_epoch=202)}}))
    assert stage[T0].leader == 3


def test_a_dead_replica_is_waited_for_and_an_unclean_election_ends_that() -> None:
    """KIP-460"""
    stage = _last_standing()
    stage.go(3)
    _say(stage, b1=(2, 10), b2=(3, 90))
    assert stage[T0].leader == NO_LEADER
    decision, outcomes = stage.controller.elect_leaders([T0], unclean=True)
    stage.carry_out(decision)
    assert outcomes == {T0: None}
    assert stage[T0].leader == 1


def test_ends_of_an_earlier_wait_do_not_count_in_a_later_one() -> None:
    """In between there was a leader, and logs have grown."""
    stage = _last_standing()
    _say(stage, b2=(3, 90), b3=(3, 80))
    decision, _ = stage.controller.elect_leaders([T0], unclean=True)
    stage.carry_out(decision)
    stage.come(broker(1, 301, lossy=True))
    assert stage.controller.ends_wanted == {T0}
    _say(stage, b1=(3, 10))
    assert stage[T0].leader == NO_LEADER
    _say(stage, b2=(5, 95), b3=(5, 99))
    assert stage[T0].leader == 3


def test_a_replica_that_caught_up_is_trusted_in_this_epoch_and_distrusted_in_the_next() -> None:
    stage = Stage(topic("t", led(1, 2)), live={**brokers(2), 1: broker(1, lossy=True)})
    stage.carry_out(stage.controller.on_elected([]))
    assert (stage[T0].leader, stage[T0].isr, stage[T0].leader_epoch) == (2, (2,), 5)
    assert stage.propose(2, 1).error_code == 0
    stage.go(2)
    assert (stage[T0].leader, stage[T0].isr) == (1, (1,))
    stage.carry_out(stage.controller.on_elected([]))
    assert stage[T0].leader == 1
    assert stage[T0].leader_epoch == 8, "in a new epoch: what it lost is not written again in it"


def test_all_of_the_isr_may_have_lost_something() -> None:
    live = {each: broker(each, lossy=True) for each in (1, 2)}
    stage = Stage(topic("t", led(2, 1, replicas=(1, 2))), live=live, settings=TWO)
    stage.carry_out(stage.controller.on_elected([]))
    assert (stage[T0].leader, stage[T0].isr) == (NO_LEADER, (2,))
    _say(stage, b1=(3, 7), b2=(3, 7))
    assert (stage[T0].leader, stage[T0].isr) == (1, (1,)), "of two equal ones the first assigned"


def test_preferred_elections_pass_such_a_partition_over() -> None:
    stage = _last_standing()
    decision, outcomes = stage.controller.elect_leaders([T0], unclean=False)
    assert isinstance(outcomes[T0], PreferredLeaderNotAvailable)
    assert decision.operations == ()
    assert stage.controller.rebalance_leaders(0).operations == ()


def test_the_epoch_counts_before_the_length() -> None:
    partition = led(1, 2, 3)
    ends = {1: LogEnd(3, 900), 2: LogEnd(4, 10), 3: LogEnd(-1, 0)}
    assert largest(partition, ends) == 2
    del ends[3]
    assert largest(partition, ends) is None
