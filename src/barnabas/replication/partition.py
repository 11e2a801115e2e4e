"""One partition on one broker: its role, its in-sync replicas, its high watermark.

    log end offset (LEO)    the next offset to be written
    high watermark (HW)     the smallest LEO of the in-sync replicas: the first offset that
                            consumers cannot see

Invariants, for a leader: HW <= LEO; the HW never falls; it does not rise while fewer replicas are
in sync than min(min.insync.replicas, replication factor), so nothing becomes visible that acks=all
would have refused (KIP-966). A pure machine: it hears of appends and fetches, and answers with
what has changed.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.cluster.image import PartitionImage
from barnabas.errors import (
    FencedLeaderEpoch,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
)
from barnabas.types import TopicPartition

NO_EPOCH = -1
_UNKNOWN_OFFSET = -1


class Advance(NamedTuple):
    """The high watermark has risen to this offset: whoever waits below it can go on."""

    high_watermark: int


class _Follower:
    """What the leader knows of another replica, from its fetches alone."""

    __slots__ = ("caught_up_at_ms", "fetched_at_ms", "leader_end_at_fetch", "log_end_offset")

    def __init__(self) -> None:
        self.log_end_offset = _UNKNOWN_OFFSET
        self.caught_up_at_ms = 0
        self.fetched_at_ms = 0
        self.leader_end_at_fetch = 0

    def fetched(self, offset: int, leader_end: int, now_ms: int) -> None:
        # Caught up is who reaches the leader's end, or where that end was at the fetch before:
        # under a steady stream of appends no fetch ever finds itself at the very end.
        if offset >= leader_end:
            self.caught_up_at_ms = now_ms
        elif offset >= self.leader_end_at_fetch:
            self.caught_up_at_ms = max(self.caught_up_at_ms, self.fetched_at_ms)
        self.log_end_offset = offset
        self.leader_end_at_fetch = leader_end
        self.fetched_at_ms = now_ms


class Partition:
    """A replica's view of its partition. It follows until it is told to lead."""

    __slots__ = (
        "_followers",
        "broker_id",
        "high_watermark",
        "is_leader",
        "isr",
        "leader_epoch",
        "log_end_offset",
        "min_insync_replicas",
        "partition_epoch",
        "replicas",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        broker_id: int,
        *,
        min_insync_replicas: int = 1,
        high_watermark: int = 0,
    ) -> None:
        """`high_watermark` is the checkpointed one, within the log that was found."""
        self.topic_partition = topic_partition
        self.broker_id = broker_id
        self.min_insync_replicas = min_insync_replicas
        self.high_watermark = high_watermark
        self.is_leader = False
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.isr: tuple[int, ...] = ()
        self.replicas: tuple[int, ...] = ()
        self.log_end_offset = high_watermark
        self._followers: dict[int, _Follower] = {}

    def become_leader(self, state: PartitionImage, log_end_offset: int) -> list[Advance]:
        """Lead from `log_end_offset` on; what followers had in an older epoch is forgotten."""
        assert state.leader == self.broker_id, state
        assert state.leader_epoch > self.leader_epoch, "an old LeaderAndIsr must not get here"
        assert log_end_offset >= self.high_watermark, "a log may not end below its high watermark"
        self._take_over(state)
        self.is_leader = True
        self.log_end_offset = log_end_offset
        self._followers = {
            replica: _Follower() for replica in state.replicas if replica != self.broker_id
        }
        return self._advance()

    def become_follower(self, state: PartitionImage) -> None:
        """Lead no longer: from now on clients are refused."""
        self._take_over(state)
        self.is_leader = False
        self._followers = {}

    def appended(self, log_end_offset: int) -> list[Advance]:
        """The leader's log has grown to this end."""
        self._check_leader()
        assert log_end_offset >= self.log_end_offset, "a leader's log never shrinks"
        self.log_end_offset = log_end_offset
        return self._advance()

    def fetched(self, replica: int, offset: int, leader_epoch: int, now_ms: int) -> list[Advance]:
        """A follower asks for `offset`, so it has everything below (RE-5).

        Raises NotLeaderOrFollower for a broker that holds no replica, FencedLeaderEpoch and
        UnknownLeaderEpoch for one that lives in another epoch.
        """
        self._check_leader()
        self.check_leader_epoch(leader_epoch)
        follower = self._followers.get(replica)
        if follower is None:
            raise NotLeaderOrFollower(f"broker {replica} has no replica of {self.topic_partition}")
        follower.fetched(offset, self.log_end_offset, now_ms)
        return self._advance()

    def follower_end_offset(self, replica: int) -> int:
        """A follower's LEO as its last fetch told it; -1 before the first in this epoch."""
        return self._followers[replica].log_end_offset

    def caught_up_at_ms(self, replica: int) -> int:
        """When a follower last had all that the leader had; 0 before that ever was."""
        return self._followers[replica].caught_up_at_ms

    def check_leader_epoch(self, leader_epoch: int) -> None:
        """Refuse whoever has another epoch in mind (KIP-320); -1 is one that does not say."""
        if leader_epoch in (NO_EPOCH, self.leader_epoch):
            return
        if leader_epoch < self.leader_epoch:
            raise FencedLeaderEpoch(
                f"{self.topic_partition} is in leader epoch {self.leader_epoch}, "
                f"not {leader_epoch} any more: refresh the metadata"
            )
        raise UnknownLeaderEpoch(
            f"{self.topic_partition} is in leader epoch {self.leader_epoch} here, "
            f"not yet {leader_epoch}: try again"
        )

    def has_enough_in_sync(self) -> bool:
        """Whether acks=all may be promised: a floor for the ISR, not the number waited for."""
        return len(self.isr) >= min(self.min_insync_replicas, len(self.replicas))

    def check_acks_all(self) -> None:
        """Before an append with acks=all (PR-4); raises NotEnoughReplicas."""
        if len(self.isr) < self.min_insync_replicas and not self.has_enough_in_sync():
            raise NotEnoughReplicas(
                f"{self.topic_partition} has {len(self.isr)} replicas in sync, "
                f"min.insync.replicas is {self.min_insync_replicas}"
            )

    def _take_over(self, state: PartitionImage) -> None:
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.isr = state.isr
        self.replicas = state.replicas

    def _check_leader(self) -> None:
        if not self.is_leader:
            raise NotLeaderOrFollower(
                f"broker {self.broker_id} does not lead {self.topic_partition}"
            )

    def _advance(self) -> list[Advance]:
        """Raise the HW to the smallest LEO of the ISR, if it may and can be raised."""
        smallest = self.log_end_offset
        for replica in self.isr:
            if replica != self.broker_id:
                smallest = min(smallest, self._followers[replica].log_end_offset)
        if smallest <= self.high_watermark or not self.has_enough_in_sync():
            return []
        self.high_watermark = smallest
        return [Advance(smallest)]
