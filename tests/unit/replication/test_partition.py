"""The partition machine, as dialogues."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from barnabas.cluster.controller_requests import IsrAnswer, IsrMember, IsrProposal
from barnabas.cluster.image import PartitionImage
from barnabas.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    KafkaError,
    NewLeaderElected,
    NotController,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    OperationNotAttempted,
    RequestTimedOut,
    StaleBrokerEpoch,
    UnknownLeaderEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.replication.follower_state import FollowerFetch, Lag
from barnabas.replication.partition import Advance, Partition, ProposeIsr
from barnabas.types import TopicPartition

LEADER, FOLLOWER, THIRD = 0, 1, 2
ALL = (LEADER, FOLLOWER, THIRD)
LAG_MS = 30_000
TOPIC_ID = bytes(range(16))


def _state(
    *isr: int,
    replicas: tuple[int, ...] = (),
    leader: int = LEADER,
    epoch: int = 0,
    partition_epoch: int = 0,
) -> PartitionImage:
    return PartitionImage(leader, epoch, isr, replicas or isr, partition_epoch, 1)


def _leader(
    *isr: int, replicas: tuple[int, ...] = (), min_insync: int = 1, end: int = 0, now_ms: int = 0
) -> Partition:
    """It leads in epoch 0; every broker lives, with its id + 100 as its epoch."""
    partition = Partition(
        TopicPartition("t", 0), LEADER, min_insync_replicas=min_insync, topic_id=TOPIC_ID
    )
    partition.on_registered(100)
    partition.brokers_changed({broker: broker + 100 for broker in range(5)})
    partition.become_leader(_state(*isr, replicas=replicas), end, now_ms)
    return partition


def _fetch(replica: int, offset: int, epoch: int = 0) -> FollowerFetch:
    return FollowerFetch(replica, offset, epoch, 0, replica + 100)


def _proposal(*isr: int, unknown: tuple[int, ...] = (), partition_epoch: int = 0) -> IsrProposal:
    """`unknown`: members whose broker epoch the leader does not know."""
    members = (IsrMember(one, -1 if one in unknown else one + 100) for one in isr)
    return IsrProposal(TopicPartition("t", 0), TOPIC_ID, 0, tuple(members), partition_epoch)


def _accepted(*isr: int, partition_epoch: int = 1) -> IsrAnswer:
    return IsrAnswer(0, LEADER, 0, isr, partition_epoch)


def _refused(error: type[KafkaError]) -> IsrAnswer:
    return IsrAnswer(error.code)


# --- the high watermark --------------------------------------------------------------------------


def test_alone_everything_written_is_visible() -> None:
    """RE-4: with an ISR of one the high watermark is the log's end."""
    partition = _leader(LEADER)
    assert partition.on_appended(3) == [Advance(3)]
    assert partition.on_appended(3) == []
    assert partition.high_watermark == partition.log_end_offset == 3


def test_a_leader_that_is_alone_takes_up_its_whole_log() -> None:
    """The watermark on disk is some seconds old; the only one in sync decides (RE-5)."""
    partition = Partition(TopicPartition("t", 0), LEADER, high_watermark=4)
    assert partition.high_watermark == 4
    assert partition.become_leader(_state(LEADER, epoch=3), 9) == [Advance(9)]
    assert (partition.leader, partition.leader_epoch, partition.epoch_start_offset) == (0, 3, 9)


class Moment(NamedTuple):
    """What RE-6's table has in a line."""

    leader_end: int
    remote_end: int
    leader_watermark: int
    follower_end: int
    follower_watermark: int


@pytest.mark.parametrize("is_parked", [False, True])
def test_the_exact_dialogue_of_a_leader_and_a_follower(is_parked: bool) -> None:
    """RE-6: one record, two fetches; RE-5. A fetch that was parked before ends the same."""
    leader = _leader(LEADER, FOLLOWER)
    follower = Partition(TopicPartition("t", 0), FOLLOWER)
    follower.become_follower(_state(LEADER, FOLLOWER))

    def moment() -> Moment:
        remote = max(0, leader.follower_end_offset(FOLLOWER))
        leaders = (leader.log_end_offset, remote, leader.high_watermark)
        return Moment(*leaders, follower.log_end_offset, follower.high_watermark)

    assert moment() == Moment(0, 0, 0, 0, 0)
    if is_parked:  # it is counted when it comes
        assert leader.on_fetch(_fetch(FOLLOWER, 0), 0) == []
    assert leader.on_appended(1) == []
    assert moment() == Moment(1, 0, 0, 0, 0)

    if not is_parked:
        assert leader.on_fetch(_fetch(FOLLOWER, 0), 1) == []
    assert moment() == Moment(1, 0, 0, 0, 0)
    assert follower.on_copied(1, leader.high_watermark) == []
    assert moment() == Moment(1, 0, 0, 1, 0)

    assert leader.on_fetch(_fetch(FOLLOWER, 1), 2) == [Advance(1)]
    assert moment() == Moment(1, 1, 1, 1, 0)
    assert follower.on_copied(1, leader.high_watermark) == [Advance(1)]
    assert moment() == Moment(1, 1, 1, 1, 1)


def test_the_slowest_in_sync_counts() -> None:
    """RE-4: the smallest LEO of the ISR; RE-5."""
    partition = _leader(*ALL)
    partition.on_appended(10)
    assert partition.on_fetch(_fetch(THIRD, 10), 0) == []
    assert partition.on_fetch(_fetch(FOLLOWER, 4), 0) == [Advance(4)]
    assert partition.on_fetch(_fetch(FOLLOWER, 3), 0) == []
    assert partition.high_watermark == 4, "it never falls"


def test_out_of_sync_one_may_be_as_slow_as_one_likes() -> None:
    """RE-4"""
    partition = _leader(LEADER, FOLLOWER, replicas=ALL)
    partition.on_appended(10)
    partition.on_fetch(_fetch(FOLLOWER, 2), LAG_MS)
    assert partition.on_fetch(_fetch(THIRD, 1), LAG_MS) == []
    assert partition.on_fetch(_fetch(FOLLOWER, 4), LAG_MS) == [Advance(4)]


def test_one_that_is_about_to_join_holds_the_watermark() -> None:
    """RE-4: else it would run away from who has caught up, and who then never gets in."""
    partition = _leader(LEADER, replicas=(LEADER, FOLLOWER), end=10)
    partition.brokers_changed({})
    assert partition.on_fetch(_fetch(FOLLOWER, 10), 1_000) == []
    assert partition.on_appended(12, 1_000) == [Advance(12)], "it cannot join: its broker is gone"
    partition.brokers_changed({FOLLOWER: 101})
    assert partition.on_fetch(_fetch(FOLLOWER, 11), 2_000) == []
    assert partition.on_appended(15, 2_000) == [], "it had everything a second ago"
    assert partition.expire(1_000 + LAG_MS) == []
    assert partition.expire(1_001 + LAG_MS) == [Advance(15)], "it had its time"
    assert partition.on_appended(16) == [Advance(16)], "the last known time counts"


def test_below_min_isr_nothing_becomes_visible() -> None:
    """RE-4, KIP-966"""
    partition = _leader(LEADER, replicas=(LEADER, FOLLOWER), min_insync=2)
    assert partition.on_appended(5) == []
    assert partition.high_watermark == 0


def test_the_proposed_isr_is_not_yet_enough_in_sync() -> None:
    """RE-4, KIP-966: the committed ISR counts."""
    partition = _leader(LEADER, replicas=ALL, min_insync=2)
    partition.on_appended(5)
    (propose,) = partition.on_fetch(_fetch(FOLLOWER, 5), 1)
    assert propose == ProposeIsr(_proposal(LEADER, FOLLOWER))
    assert partition.high_watermark == 0
    done = partition.on_isr_answer(_proposal(LEADER, FOLLOWER), _accepted(LEADER, FOLLOWER), 2)
    assert done == [Advance(5)]


def test_acks_all_is_refused_below_min_isr() -> None:
    """PR-4"""
    partition = _leader(LEADER, replicas=ALL, min_insync=2)
    assert not partition.has_enough_in_sync()
    with pytest.raises(NotEnoughReplicas, match=r"t-0 has 1 replica in sync.* is 2"):
        partition.check_acks_all()
    _leader(LEADER, FOLLOWER, min_insync=2).check_acks_all()


def test_min_isr_asks_for_no_more_than_there_are() -> None:
    """PR-4: min(min.insync.replicas, replication factor)."""
    partition = _leader(LEADER, min_insync=3)
    partition.check_acks_all()
    assert partition.on_appended(1) == [Advance(1)]


# --- who may speak -------------------------------------------------------------------------------


def test_who_does_not_lead_refuses() -> None:
    """RE-2"""
    partition = Partition(TopicPartition("t", 0), LEADER)
    for _ in range(2):
        with pytest.raises(NotLeaderOrFollower):
            partition.on_appended(1)
        with pytest.raises(NotLeaderOrFollower):
            partition.on_fetch(FollowerFetch(FOLLOWER, 0), 0)
        assert partition.expire(LAG_MS) == []
        partition.become_follower(_state(LEADER, FOLLOWER, leader=FOLLOWER, epoch=1))
    assert not partition.is_leader
    assert (partition.leader, partition.leader_epoch) == (FOLLOWER, 1)


def test_a_stranger_is_no_follower() -> None:
    partition = _leader(LEADER, FOLLOWER)
    with pytest.raises(NotLeaderOrFollower, match="broker 2 has no replica"):
        partition.on_fetch(_fetch(THIRD, 0), 0)


def test_another_epoch_is_refused() -> None:
    """KIP-320: a fetch from another epoch proves nothing, and counts for nothing."""
    partition = _leader(LEADER, FOLLOWER)
    partition.become_leader(_state(LEADER, FOLLOWER, epoch=5), 3)
    partition.check_leader_epoch(-1)
    partition.check_leader_epoch(5)
    with pytest.raises(FencedLeaderEpoch):
        partition.on_fetch(_fetch(FOLLOWER, 3, epoch=4), 0)
    with pytest.raises(UnknownLeaderEpoch):
        partition.on_fetch(_fetch(FOLLOWER, 3, epoch=6), 0)
    assert partition.high_watermark == 0


@pytest.mark.parametrize("is_known_from", ["the registrations", "an earlier fetch"])
def test_a_fetch_from_before_a_bounce_is_refused(is_known_from: str) -> None:
    """KIP-903: the broker has registered again since, and may have fewer records by now."""
    partition = _leader(LEADER, FOLLOWER, end=9)
    if is_known_from == "the registrations":
        partition.brokers_changed({FOLLOWER: 102})
    else:
        partition.brokers_changed({})
        partition.on_fetch(FollowerFetch(FOLLOWER, 2, 0, 0, 102), 0)
    with pytest.raises(NotLeaderOrFollower, match="registered in epoch 102, not 101"):
        partition.on_fetch(FollowerFetch(FOLLOWER, 9, 0, 0, 101), 0)
    assert partition.high_watermark < 9
    assert partition.on_fetch(FollowerFetch(FOLLOWER, 9), 0) == [Advance(9)], "it does not say"


# --- epochs --------------------------------------------------------------------------------------


def test_a_new_epoch_forgets_what_followers_had() -> None:
    """KIP-320: they may have to truncate, so what they fetched in the old epoch proves nothing."""
    partition = _leader(LEADER, FOLLOWER)
    partition.on_appended(5)
    partition.on_fetch(_fetch(FOLLOWER, 5), 0)
    assert partition.become_leader(_state(LEADER, FOLLOWER, epoch=1), 5) == []
    partition.on_appended(6)
    assert partition.high_watermark == 5
    assert partition.follower_end_offset(FOLLOWER) == -1


def test_a_newer_state_of_the_same_epoch_leaves_what_is_known() -> None:
    """RE-5: a failure that takes a replica out of the ISR lets the watermark rise."""
    partition = _leader(*ALL, end=4)
    partition.on_fetch(_fetch(FOLLOWER, 3), 0)
    state = _state(LEADER, FOLLOWER, replicas=(LEADER, FOLLOWER, 3), partition_epoch=1)
    assert partition.become_leader(state, 99) == [Advance(3)]
    assert (partition.log_end_offset, partition.epoch_start_offset) == (4, 4)
    assert partition.follower_end_offset(FOLLOWER) == 3
    assert partition.follower_end_offset(3) == -1, "a new replica"
    assert (partition.isr, partition.partition_epoch) == ((LEADER, FOLLOWER), 1)


@pytest.mark.parametrize("partition_epoch", [0, 1])
def test_a_state_that_is_known_already_changes_nothing(partition_epoch: int) -> None:
    """The answer to a proposal may be here before the LeaderAndIsr that says the same."""
    partition = _leader(LEADER, replicas=(LEADER, FOLLOWER))
    state = _state(LEADER, FOLLOWER, partition_epoch=1)
    partition.become_leader(state, 0)
    assert partition.become_leader(_state(LEADER, partition_epoch=partition_epoch), 0) == []
    assert (partition.isr, partition.partition_epoch) == ((LEADER, FOLLOWER), 1)


def test_who_followed_knows_no_epoch_start() -> None:
    partition = _leader(LEADER, FOLLOWER, end=7)
    assert partition.epoch_start_offset == 7
    partition.become_follower(_state(FOLLOWER, replicas=ALL, leader=FOLLOWER, epoch=1))
    assert partition.epoch_start_offset == -1
    assert partition.leader == FOLLOWER
    assert (partition.isr, partition.maximal_isr) == ((FOLLOWER,), (FOLLOWER,))
    assert partition.become_leader(_state(LEADER, FOLLOWER, epoch=2), 9) == []
    assert partition.epoch_start_offset == 9


# --- growing the ISR -----------------------------------------------------------------------------


def test_who_reached_the_watermark_is_proposed() -> None:
    """RE-8, RE-9: and counts for the high watermark from the proposal on."""
    partition = _leader(LEADER, FOLLOWER, replicas=ALL)
    partition.on_appended(10)
    partition.on_fetch(_fetch(FOLLOWER, 6), LAG_MS)
    assert partition.on_fetch(_fetch(THIRD, 5), LAG_MS) == []
    effects = partition.on_fetch(_fetch(THIRD, 6), LAG_MS)
    assert effects == [ProposeIsr(_proposal(*ALL))]
    assert partition.isr == (LEADER, FOLLOWER)
    assert partition.maximal_isr == ALL
    assert partition.is_changing_isr
    assert partition.on_fetch(_fetch(FOLLOWER, 8), LAG_MS) == []
    assert partition.high_watermark == 6
    assert partition.on_fetch(_fetch(THIRD, 7), LAG_MS) == [Advance(7)]


def test_no_replica_joins_below_the_start_of_the_epoch() -> None:
    """Faults 6, safety 6: what is below the start it may have yet to truncate."""
    partition = _leader(LEADER, replicas=ALL, min_insync=2, end=8)
    assert partition.high_watermark == 0
    assert partition.on_fetch(_fetch(FOLLOWER, 7), 1) == []
    (propose,) = partition.on_fetch(_fetch(FOLLOWER, 8), 2)
    assert isinstance(propose, ProposeIsr)


def test_only_a_live_broker_in_the_registration_that_fetched_may_join() -> None:
    """KIP-903: who came back since may have lost what it had."""
    partition = _leader(LEADER, replicas=(LEADER, FOLLOWER))
    partition.brokers_changed({})
    assert partition.on_fetch(_fetch(FOLLOWER, 0), 1) == []
    partition.brokers_changed({FOLLOWER: 99})
    assert partition.on_fetch(_fetch(FOLLOWER, 0), 2) == [], "the leader's view is behind"
    partition.brokers_changed({FOLLOWER: 101})
    assert partition.on_fetch(_fetch(FOLLOWER, 0), 3) == [
        ProposeIsr(_proposal(LEADER, FOLLOWER)),
    ]


def test_a_fetch_without_a_broker_epoch_may_join() -> None:
    """Fetch before v15 has none; it is sent to the controller as unknown."""
    partition = _leader(LEADER, replicas=(LEADER, FOLLOWER))
    live = partition.live
    partition.brokers_changed({})
    assert partition.on_fetch(FollowerFetch(FOLLOWER, 0, 0), 1) == [], "but for a dead broker"
    partition.brokers_changed(live)
    effects = partition.on_fetch(FollowerFetch(FOLLOWER, 0, 0), 1)
    assert effects == [ProposeIsr(_proposal(LEADER, FOLLOWER, unknown=(FOLLOWER,)))]


def test_one_proposal_at_a_time_and_the_next_one_at_once() -> None:
    """Two brokers come back together: the second does not wait for its next fetch."""
    partition = _leader(LEADER, replicas=ALL)
    partition.on_fetch(_fetch(FOLLOWER, 0), 1)
    assert partition.on_fetch(_fetch(THIRD, 0), 2) == []
    first = _proposal(LEADER, FOLLOWER)
    second = _proposal(*ALL, partition_epoch=1)
    assert partition.on_isr_answer(first, _accepted(LEADER, FOLLOWER), 3) == [ProposeIsr(second)]
    assert (partition.isr, partition.partition_epoch) == ((LEADER, FOLLOWER), 1)
    assert partition.on_isr_answer(second, _accepted(*ALL, partition_epoch=2), 4) == []
    assert partition.isr == partition.maximal_isr == ALL
    assert not partition.is_changing_isr


def test_who_has_gone_silent_meanwhile_is_not_proposed_next() -> None:
    partition = _leader(LEADER, replicas=ALL)
    partition.on_fetch(_fetch(FOLLOWER, 0), 1)
    partition.on_fetch(_fetch(THIRD, 0), 2)
    partition.on_appended(1)
    first = _proposal(LEADER, FOLLOWER)
    answer = _accepted(LEADER, FOLLOWER)
    assert partition.on_isr_answer(first, answer, 3 + LAG_MS) == []


def test_who_was_proposed_in_vain_is_not_proposed_at_once_again() -> None:
    """No loop between the leader and a controller that agrees to less."""
    partition = _leader(LEADER, replicas=(LEADER, FOLLOWER))
    partition.on_fetch(_fetch(FOLLOWER, 0), 1)
    assert partition.on_isr_answer(_proposal(LEADER, FOLLOWER), _accepted(LEADER), 2) == []
    assert partition.isr == partition.maximal_isr == (LEADER,)


# --- shrinking the ISR ---------------------------------------------------------------------------


def test_who_lags_too_long_is_left_out() -> None:
    """RE-8: and holds the watermark until the controller has agreed."""
    partition = _leader(*ALL, now_ms=1_000)
    partition.on_appended(5)
    partition.on_fetch(_fetch(FOLLOWER, 5), 2_000)
    assert partition.expire(1_000 + LAG_MS) == []
    effects = partition.expire(1_001 + LAG_MS)
    assert effects == [ProposeIsr(_proposal(LEADER, FOLLOWER))]
    assert partition.maximal_isr == ALL
    assert partition.high_watermark == 0
    assert partition.expire(2 * LAG_MS) == [], "one at a time"
    done = partition.on_isr_answer(_proposal(LEADER, FOLLOWER), _accepted(LEADER, FOLLOWER), 0)
    assert done == [Advance(5)]


def test_who_has_everything_stays_however_silent() -> None:
    """RE-8: there is nothing that it could be missing."""
    partition = _leader(LEADER, FOLLOWER, end=5)
    partition.on_fetch(_fetch(FOLLOWER, 5), 1)
    assert partition.expire(10 * LAG_MS) == []
    partition.on_appended(6)
    proposal = _proposal(LEADER)
    assert partition.expire(10 * LAG_MS) == [ProposeIsr(proposal)]
    assert partition.on_isr_answer(proposal, _accepted(LEADER), 10 * LAG_MS) == [Advance(6)]


def test_in_sync_is_measured_in_time_not_in_records() -> None:
    """RE-8: thousands behind at each fetch, and always where the end was at the one before."""
    partition = _leader(LEADER, FOLLOWER)
    end = 0
    for now_ms in range(0, 4 * LAG_MS, LAG_MS // 2):
        partition.on_fetch(_fetch(FOLLOWER, end), now_ms)
        end += 5_000
        partition.on_appended(end, now_ms)
        assert partition.expire(now_ms) == []
    assert partition.high_watermark == end - 5_000


def test_a_new_epoch_begins_with_the_whole_of_the_lag_s_time() -> None:
    """RE-8: for members of the ISR; who is not in sync has not been so in this epoch."""
    partition = _leader(LEADER, FOLLOWER, replicas=ALL, now_ms=500, end=1)
    assert partition.caught_up_at_ms(FOLLOWER) == 500
    assert partition.caught_up_at_ms(THIRD) < -LAG_MS
    assert partition.expire(500 + LAG_MS) == []
    assert partition.expire(501 + LAG_MS) == [
        ProposeIsr(_proposal(LEADER)),
    ]


def test_a_proposal_says_how_far_behind_the_replicas_are() -> None:
    """IN-1: those that leave and those that join, as they were at the decision."""
    partition = _leader(LEADER, FOLLOWER, THIRD, end=10)
    partition.on_fetch(_fetch(THIRD, 7), 1_000)
    partition.on_fetch(_fetch(FOLLOWER, 10), 40_000)
    assert partition.expire(40_000)
    assert partition.lags == (Lag(THIRD, 3, 40_000, LAG_MS),)
    partition = _leader(LEADER, FOLLOWER, end=10)
    assert partition.expire(LAG_MS + 1)
    assert partition.lags == (Lag(FOLLOWER, -1, LAG_MS + 1, LAG_MS),)
    partition = _leader(LEADER, replicas=(LEADER, FOLLOWER), end=10)
    assert partition.on_fetch(_fetch(FOLLOWER, 10), 5)
    assert partition.lags == (Lag(FOLLOWER, 0, 0, LAG_MS),)


# --- what the controller answers -----------------------------------------------------------------


@pytest.mark.parametrize("error", [IneligibleReplica, OperationNotAttempted])
def test_what_was_not_carried_out_is_forgotten(error: type[KafkaError]) -> None:
    """RE-9: a fetch later it is proposed again."""
    partition = _leader(LEADER, replicas=(LEADER, FOLLOWER))
    partition.on_fetch(_fetch(FOLLOWER, 0), 1)
    proposal = _proposal(LEADER, FOLLOWER)
    assert partition.on_isr_answer(proposal, _refused(error), 2) == []
    assert partition.isr == partition.maximal_isr == (LEADER,)
    assert not partition.is_changing_isr
    assert partition.on_fetch(_fetch(FOLLOWER, 0), 3) == [ProposeIsr(proposal)]


@pytest.mark.parametrize(
    "error",
    [
        UnknownTopicOrPartition,
        UnknownTopicId,
        FencedLeaderEpoch,
        InvalidUpdateVersion,
        InvalidRequest,
        NewLeaderElected,
    ],
)
def test_an_overtaken_proposal_stays_open(error: type[KafkaError]) -> None:
    """RE-9: it may have been carried out, so its members count for the watermark."""
    partition = _leader(LEADER, replicas=(LEADER, FOLLOWER))
    partition.on_fetch(_fetch(FOLLOWER, 0), 1)
    assert partition.on_isr_answer(_proposal(LEADER, FOLLOWER), _refused(error), 2) == []
    assert partition.is_changing_isr
    assert partition.maximal_isr == (LEADER, FOLLOWER)
    partition.on_appended(1)
    assert partition.expire(10 * LAG_MS) == []
    assert partition.high_watermark == 0
    state = _state(LEADER, replicas=(LEADER, FOLLOWER), partition_epoch=1)
    assert partition.become_leader(state, 1, 10 * LAG_MS) == [Advance(1)]
    assert not partition.is_changing_isr


@pytest.mark.parametrize("error", [NotController, StaleBrokerEpoch, RequestTimedOut])
def test_everything_else_is_sent_again(error: type[KafkaError]) -> None:
    """RE-9"""
    partition = _leader(LEADER, replicas=(LEADER, FOLLOWER))
    partition.on_fetch(_fetch(FOLLOWER, 0), 1)
    proposal = _proposal(LEADER, FOLLOWER)
    assert partition.on_isr_answer(proposal, _refused(error), 2) == [ProposeIsr(proposal)]
    assert partition.is_changing_isr


def test_an_answer_to_an_older_proposal_changes_nothing() -> None:
    partition = _leader(LEADER, replicas=ALL)
    partition.on_fetch(_fetch(FOLLOWER, 0), 1)
    older = _proposal(LEADER, FOLLOWER)
    state = _state(LEADER, replicas=ALL, partition_epoch=4)
    partition.become_leader(state, 0)
    assert partition.on_isr_answer(older, _accepted(LEADER, FOLLOWER, partition_epoch=5), 2) == []
    assert (partition.isr, partition.partition_epoch) == ((LEADER,), 4)
    newer = ProposeIsr(_proposal(LEADER, FOLLOWER, partition_epoch=4))
    assert partition.on_fetch(_fetch(FOLLOWER, 0), 2) == [newer]
    assert partition.on_isr_answer(older, _accepted(LEADER, FOLLOWER, partition_epoch=5), 2) == []
    assert partition.on_isr_answer(older, _refused(IneligibleReplica), 2) == []
    assert partition.is_changing_isr
    partition.become_follower(_state(FOLLOWER, replicas=ALL, leader=FOLLOWER, epoch=1))
    assert partition.on_isr_answer(older, _refused(NotController), 3) == []


@pytest.mark.parametrize(
    "answer",
    [IsrAnswer(0, FOLLOWER, 1, (FOLLOWER,), 7), IsrAnswer(0, LEADER, 0, (LEADER, FOLLOWER), 2)],
    ids=["another leader epoch", "an older state"],
)
def test_an_answer_from_another_time_leaves_the_proposal_open(answer: IsrAnswer) -> None:
    partition = _leader(LEADER, replicas=(LEADER, FOLLOWER))
    partition.become_leader(_state(LEADER, replicas=(LEADER, FOLLOWER), partition_epoch=3), 0)
    partition.on_fetch(_fetch(FOLLOWER, 0), 1)
    proposal = _proposal(LEADER, FOLLOWER, partition_epoch=3)
    assert partition.on_isr_answer(proposal, answer, 2) == []
    assert partition.is_changing_isr
    assert (partition.isr, partition.partition_epoch) == ((LEADER,), 3)


def test_an_unchanged_state_is_an_agreement_too() -> None:
    """The proposal was sent twice, and the first one was carried out or was the state already."""
    partition = _leader(LEADER, replicas=(LEADER, FOLLOWER))
    partition.on_fetch(_fetch(FOLLOWER, 0), 1)
    answer = _accepted(LEADER, FOLLOWER, partition_epoch=0)
    assert partition.on_isr_answer(_proposal(LEADER, FOLLOWER), answer, 2) == []
    assert partition.isr == (LEADER, FOLLOWER)
    assert not partition.is_changing_isr


# --- as a follower -------------------------------------------------------------------------------


def test_a_follower_s_watermark_is_the_leader_s_as_far_as_it_has_records() -> None:
    """RE-6: min(its LEO, the leader's HW); what is committed stays so under a new leader."""
    partition = Partition(TopicPartition("t", 0), FOLLOWER, high_watermark=2)
    partition.become_follower(_state(LEADER, FOLLOWER))
    assert partition.on_copied(5, 9) == [Advance(5)]
    assert partition.on_copied(8, 3) == []
    assert (partition.high_watermark, partition.log_end_offset) == (5, 8)


def test_truncation_alone_takes_the_watermark_down() -> None:
    partition = Partition(TopicPartition("t", 0), FOLLOWER, high_watermark=5)
    partition.on_copied(9, 5)
    partition.on_truncated(7)
    assert (partition.high_watermark, partition.log_end_offset) == (5, 7)
    partition.on_truncated(3)
    assert (partition.high_watermark, partition.log_end_offset) == (3, 3)
    partition.on_started_at(40)
    assert (partition.high_watermark, partition.log_end_offset) == (40, 40)
    assert partition.log_start_offset == 40


# --- the low watermark ---------------------------------------------------------------------------


def test_the_low_watermark_is_the_smallest_log_start_of_the_live() -> None:
    """RE-4: followers report theirs in Fetch; one that has not reported yet holds it."""
    partition = _leader(*ALL, end=9)
    partition.on_log_start_moved(6)
    partition.on_fetch(FollowerFetch(FOLLOWER, 9, 0, 5), 0)
    assert partition.low_watermark({LEADER, FOLLOWER}) == 5
    assert partition.low_watermark({LEADER}) == 6
    assert partition.low_watermark(set(ALL)) == -1
    partition.on_fetch(FollowerFetch(THIRD, 9, 0, 7), 0)
    assert partition.low_watermark(set(ALL)) == 5
