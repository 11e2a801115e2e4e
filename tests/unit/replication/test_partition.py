"""The partition machine in its leader's role, as dialogues."""

from __future__ import annotations

import pytest

from barnabas.cluster.image import PartitionImage
from barnabas.errors import (
    FencedLeaderEpoch,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
)
from barnabas.replication.partition import Advance, Partition
from barnabas.types import TopicPartition

LEADER, FOLLOWER, THIRD = 0, 1, 2


def _state(
    *isr: int, replicas: tuple[int, ...] = (), leader: int = LEADER, epoch: int = 0
) -> PartitionImage:
    return PartitionImage(leader, epoch, isr, replicas or isr, 0, 1)


def _leader(*isr: int, replicas: tuple[int, ...] = (), min_insync: int = 1) -> Partition:
    partition = Partition(TopicPartition("t", 0), LEADER, min_insync_replicas=min_insync)
    partition.become_leader(_state(*isr, replicas=replicas), 0)
    return partition


def test_alone_everything_written_is_visible() -> None:
    """RE-4: with an ISR of one the high watermark is the log's end."""
    partition = _leader(LEADER)
    assert partition.appended(3) == [Advance(3)]
    assert partition.appended(3) == []
    assert partition.high_watermark == partition.log_end_offset == 3


def test_a_leader_that_is_alone_takes_up_its_whole_log() -> None:
    """The watermark on disk is some seconds old; whoever is alone in sync decides (RE-5)."""
    partition = Partition(TopicPartition("t", 0), LEADER, high_watermark=4)
    assert partition.high_watermark == 4
    assert partition.become_leader(_state(LEADER, epoch=3), 9) == [Advance(9)]
    assert partition.leader_epoch == 3


def test_the_high_watermark_follows_the_follower() -> None:
    """RE-6, the leader's half of the exact dialogue; RE-5."""
    partition = _leader(LEADER, FOLLOWER)
    partition.fetched(FOLLOWER, 0, 0, now_ms=0)
    assert partition.appended(1) == []
    assert (partition.log_end_offset, partition.follower_end_offset(FOLLOWER)) == (1, 0)
    assert partition.high_watermark == 0

    assert partition.fetched(FOLLOWER, 0, 0, now_ms=1) == []
    assert partition.follower_end_offset(FOLLOWER) == 0
    assert partition.high_watermark == 0

    assert partition.fetched(FOLLOWER, 1, 0, now_ms=2) == [Advance(1)]
    assert partition.follower_end_offset(FOLLOWER) == 1
    assert partition.high_watermark == 1


def test_the_slowest_in_sync_counts_and_nobody_else() -> None:
    """RE-4: out of the ISR one may be as slow, or as fast, as one likes."""
    partition = _leader(LEADER, FOLLOWER, replicas=(LEADER, FOLLOWER, THIRD))
    partition.appended(10)
    assert partition.fetched(THIRD, 10, 0, now_ms=0) == []
    assert partition.fetched(FOLLOWER, 4, 0, now_ms=0) == [Advance(4)]
    assert partition.fetched(FOLLOWER, 3, 0, now_ms=0) == []
    assert partition.high_watermark == 4, "it never falls"


def test_below_min_isr_nothing_becomes_visible() -> None:
    """RE-4, KIP-966"""
    partition = _leader(LEADER, replicas=(LEADER, FOLLOWER), min_insync=2)
    assert partition.appended(5) == []
    assert partition.high_watermark == 0


def test_acks_all_is_refused_below_min_isr() -> None:
    """PR-4"""
    partition = _leader(LEADER, replicas=(LEADER, FOLLOWER, THIRD), min_insync=2)
    assert not partition.has_enough_in_sync()
    with pytest.raises(NotEnoughReplicas, match=r"t-0 has 1 replicas in sync.* is 2"):
        partition.check_acks_all()
    _leader(LEADER, FOLLOWER, min_insync=2).check_acks_all()


def test_min_isr_asks_for_no_more_than_there_are() -> None:
    """PR-4: min(min.insync.replicas, replication factor)."""
    partition = _leader(LEADER, min_insync=3)
    partition.check_acks_all()
    assert partition.appended(1) == [Advance(1)]


def test_who_does_not_lead_refuses() -> None:
    """RE-2"""
    partition = Partition(TopicPartition("t", 0), LEADER)
    for _ in range(2):
        with pytest.raises(NotLeaderOrFollower):
            partition.appended(1)
        with pytest.raises(NotLeaderOrFollower):
            partition.fetched(FOLLOWER, 0, -1, now_ms=0)
        partition.become_follower(_state(LEADER, FOLLOWER, leader=FOLLOWER, epoch=1))
    assert not partition.is_leader
    assert partition.leader_epoch == 1


def test_a_stranger_is_no_follower() -> None:
    partition = _leader(LEADER, FOLLOWER)
    with pytest.raises(NotLeaderOrFollower, match="broker 2 has no replica"):
        partition.fetched(THIRD, 0, 0, now_ms=0)


def test_another_epoch_is_refused() -> None:
    """KIP-320"""
    partition = _leader(LEADER)
    partition.become_leader(_state(LEADER, epoch=5), 0)
    partition.check_leader_epoch(-1)
    partition.check_leader_epoch(5)
    with pytest.raises(FencedLeaderEpoch):
        partition.check_leader_epoch(4)
    with pytest.raises(UnknownLeaderEpoch):
        partition.check_leader_epoch(6)


def test_a_new_epoch_forgets_what_followers_had() -> None:
    """They may have to truncate: what they fetched in the old epoch proves nothing."""
    partition = _leader(LEADER, FOLLOWER)
    partition.appended(5)
    partition.fetched(FOLLOWER, 5, 0, now_ms=0)
    assert partition.become_leader(_state(LEADER, FOLLOWER, epoch=1), 5) == []
    partition.appended(6)
    assert partition.high_watermark == 5
    assert partition.follower_end_offset(FOLLOWER) == -1


def test_caught_up_is_measured_by_time_not_by_records() -> None:
    """RE-8: however far behind, who reaches the end of its fetch before is keeping up."""
    partition = _leader(LEADER, FOLLOWER)
    partition.appended(100)
    partition.fetched(FOLLOWER, 0, 0, now_ms=1000)
    assert partition.caught_up_at_ms(FOLLOWER) == 0
    partition.appended(5000)
    partition.fetched(FOLLOWER, 100, 0, now_ms=2000)
    assert partition.caught_up_at_ms(FOLLOWER) == 1000
    partition.fetched(FOLLOWER, 200, 0, now_ms=3000)
    assert partition.caught_up_at_ms(FOLLOWER) == 1000
    partition.fetched(FOLLOWER, 5000, 0, now_ms=4000)
    assert partition.caught_up_at_ms(FOLLOWER) == 4000
