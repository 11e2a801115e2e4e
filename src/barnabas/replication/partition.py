"""Implements a partition's state machine on a broker: role, in-sync replicas, high watermark.

    log end offset (LEO)    the next offset to be written
    high watermark (HW)     the smallest LEO of the in-sync replicas, which is the first offset that
                            consumers cannot see
    committed ISR           the ISR stored by the controller, which may elect any of its members
    maximal ISR             the members of the committed and of the proposed ISR; the HW does not
                            advance beyond the LEO of any of them

Invariants: The HW is never above the LEO. On a follower, the HW decreases only when the log is
truncated. On a leader, the HW never decreases. Every record below it is on every replica that the
controller may elect, whether or not the controller accepts a pending proposal (so the maximal ISR
counts, and so do replicas that are about to join it). The HW does not advance while the committed
ISR has fewer replicas than min(min.insync.replicas, replication factor), so no record becomes
visible that acks=all would have rejected (KIP-966). There is at most one pending proposal.

The machine is pure. It handles appends, fetches and responses, and returns effects.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from types import MappingProxyType
from typing import NamedTuple

from barnabas.cluster.controller_requests import IsrAnswer, IsrMember, IsrProposal
from barnabas.cluster.image import NO_LEADER, PartitionImage
from barnabas.counted import counted
from barnabas.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    NewLeaderElected,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    OperationNotAttempted,
    UnknownLeaderEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.replication.follower_state import (
    NEVER_MS,
    UNKNOWN_EPOCH,
    UNKNOWN_OFFSET,
    FollowerFetch,
    FollowerState,
    Lag,
)
from barnabas.replication.replica_selector import InSync
from barnabas.types import NO_TOPIC_ID, TopicPartition

NO_EPOCH = -1

# The controller has rejected the proposal for good, so the ISR stays the same. A later fetch or
# check can lead to a new proposal.
_DROPPED = frozenset({IneligibleReplica.code, OperationNotAttempted.code})

# The state of the partition is unknown until the next LeaderAndIsr. Because the proposal may have
# been accepted, it stays pending until then, and the maximal ISR limits the HW.
_OVERTAKEN = frozenset(
    {
        UnknownTopicOrPartition.code,
        UnknownTopicId.code,
        FencedLeaderEpoch.code,
        InvalidUpdateVersion.code,
        InvalidRequest.code,
        NewLeaderElected.code,
    }
)

# The precision with which the time of the last catch-up is known. An append does not check the same
# session again within this time.
_LEVEL_FOR_MS = 1000
_NOBODY: Mapping[int, int] = MappingProxyType({})


class Advance(NamedTuple):
    """The high watermark has advanced to this offset, so requests waiting for it can continue."""

    high_watermark: int


class ProposeIsr(NamedTuple):
    """Send this proposal to the controller until it responds; then call `on_isr_answer`."""

    proposal: IsrProposal


Effect = Advance | ProposeIsr


class Partition:
    """The state of a partition as one of its replicas sees it.

    The replica is a follower until it becomes the leader.
    """

    __slots__ = (
        "_broker_epoch",
        "_followers",
        "_lag_time_max_ms",
        "_live",
        "_log_start_offset",
        "_min_insync_replicas",
        "_now_ms",
        "_proposed",
        "broker_id",
        "controller_epoch",
        "epoch_start_offset",
        "high_watermark",
        "is_leader",
        "isr",
        "lags",
        "leader",
        "leader_epoch",
        "log_end_offset",
        "maximal_isr",
        "partition_epoch",
        "replicas",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        broker_id: int,
        *,
        min_insync_replicas: int = 1,
        high_watermark: int = 0,
        lag_time_max_ms: int = 30_000,
        topic_id: bytes = NO_TOPIC_ID,
    ) -> None:
        """Create a follower.

        `high_watermark` was read from the checkpoint and is limited to the log end.
        """
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.broker_id = broker_id
        self._min_insync_replicas = min_insync_replicas
        self._lag_time_max_ms = lag_time_max_ms
        self._broker_epoch = UNKNOWN_EPOCH
        self._live = _NOBODY
        self.is_leader = False
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.controller_epoch = 0
        """The epoch of the controller that made this replica the leader or a follower."""
        self.epoch_start_offset = UNKNOWN_OFFSET
        """The log end when this broker became the leader in this epoch, or -1 for a follower."""
        self.isr: tuple[int, ...] = ()
        self.maximal_isr: tuple[int, ...] = ()
        self.replicas: tuple[int, ...] = ()
        self.high_watermark = high_watermark
        self.log_end_offset = high_watermark
        self._log_start_offset = 0
        self._followers: dict[int, FollowerState] = {}
        self._proposed: IsrProposal | None = None
        self.lags: tuple[Lag, ...] = ()
        """The lag of each replica that the last proposal adds or removes, as of that proposal."""
        self._now_ms = NEVER_MS

    @property
    def min_insync_replicas(self) -> int:
        """The topic's `min.insync.replicas`."""
        return self._min_insync_replicas

    @property
    def broker_epoch(self) -> int:
        """The epoch with which this broker is registered."""
        return self._broker_epoch

    @property
    def live(self) -> Mapping[int, int]:
        """The live brokers with their epochs. A broker that is not live cannot join the ISR."""
        return self._live

    @property
    def log_start_offset(self) -> int:
        """The first offset in this replica's log."""
        return self._log_start_offset

    @property
    def is_changing_isr(self) -> bool:
        """True while the controller has not responded to a proposal."""
        return self._proposed is not None

    # --- what changes around it ------------------------------------------------------------------

    def configure(self, min_insync_replicas: int) -> None:
        """Apply settings of the topic that have changed."""
        self._min_insync_replicas = min_insync_replicas

    def on_registered(self, broker_epoch: int) -> None:
        """Store the epoch of this broker's new registration (KIP-903)."""
        self._broker_epoch = broker_epoch

    def brokers_changed(self, live: Mapping[int, int], now_ms: int = 0) -> list[Effect]:
        """Set the live brokers and their epochs.

        If a broker has failed, the high watermark may advance.

        The caller must not change `live` afterwards.
        """
        has_failed = any(live.get(broker) != epoch for broker, epoch in self._live.items())
        self._live = live
        # RE-5: if a replica that was about to join has failed, it no longer counts, so the HW may
        # advance.
        if not has_failed or not self._followers:
            return []
        self._now_ms = max(self._now_ms, now_ms)
        return self._advance()

    def on_log_start_moved(self, offset: int) -> None:
        """Store the new start offset of the log after retention or DeleteRecords has moved it."""
        self._log_start_offset = offset

    # --- what the controller says ----------------------------------------------------------------

    def become_leader(
        self, state: PartitionImage, log_end_offset: int, now_ms: int = 0
    ) -> list[Effect]:
        """Become the leader at `log_end_offset`.

        What is known about followers from an older epoch is dropped.

        If this replica already leads in this epoch, only the ISR and the replicas are updated, and
        only if the partition epoch is new. In that case, `log_end_offset` is ignored.
        """
        assert state.leader == self.broker_id, state
        assert state.leader_epoch >= self.leader_epoch, "an old LeaderAndIsr must not get here"
        self._now_ms = max(self._now_ms, now_ms)
        # In a new epoch, the log end of a follower is unknown until its first fetch (KIP-101). To
        # join, a follower must have reached the log end at which the epoch started (RE-8).
        if state.leader_epoch > self.leader_epoch:
            assert log_end_offset >= self.high_watermark, (
                "a log ends at its high watermark or above"
            )
            self._followers = {}
            self.log_end_offset = self.epoch_start_offset = log_end_offset
        else:
            assert self.is_leader, "one epoch has one leader"
            # KIP-497: this state, or a newer one, may already have arrived in the response to a
            # proposal.
            if state.partition_epoch <= self.partition_epoch:
                return []
        self._take_over(state)
        self.is_leader = True
        # ISR members get the usual time to catch up, starting now. All other replicas count as
        # never caught up.
        known = self._followers
        self._followers = {
            replica: known.get(replica)
            or FollowerState(now_ms if replica in state.isr else NEVER_MS)
            for replica in dict.fromkeys((*state.replicas, *state.isr))
            if replica != self.broker_id
        }
        return self._advance()

    def become_follower(self, state: PartitionImage) -> None:
        """Stop leading, and reject clients."""
        assert state.leader != self.broker_id, state
        assert state.leader_epoch >= self.leader_epoch, "an old LeaderAndIsr must not get here"
        self._take_over(state)
        self.is_leader = False
        self.epoch_start_offset = UNKNOWN_OFFSET
        self._followers = {}

    def _take_over(self, state: PartitionImage) -> None:
        self.leader = state.leader
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.controller_epoch = state.controller_epoch
        self.replicas = state.replicas
        self._commit_isr(state.isr)

    # --- as the leader ---------------------------------------------------------------------------

    def on_appended(self, log_end_offset: int, now_ms: int = 0) -> list[Effect]:
        """Record the leader's new log end. The only possible effect is an `Advance`."""
        if not self.is_leader:
            raise self._not_leader()
        assert log_end_offset >= self.log_end_offset, "a leader's log never shrinks"
        self.log_end_offset = log_end_offset
        # If the time is 0, it was not given, so use the last known time.
        if now_ms > self._now_ms:
            self._now_ms = now_ms
        return self._advance()

    def on_fetch(self, fetch: FollowerFetch, now_ms: int) -> list[Effect]:
        """Handle a fetch. It shows that the follower has all records below the fetch offset (RE-5).

        This must be called only if the fetch is in range and there is no diverging epoch. Raises
        NotLeaderOrFollower if the broker has no replica or has registered again since, and
        FencedLeaderEpoch or UnknownLeaderEpoch if the fetch is in another epoch.
        """
        if not self.is_leader:
            raise self._not_leader()
        # KIP-320: the leader epoch must be checked before anything else in the fetch is used.
        self.check_leader_epoch(fetch.leader_epoch)
        replica = fetch.replica
        follower = self._followers.get(replica)
        if follower is None:
            raise NotLeaderOrFollower(f"broker {replica} has no replica of {self.topic_partition}")
        # KIP-903: if the broker has restarted since this fetch, it may have lost those records, so
        # ignore the fetch.
        if fetch.broker_epoch != UNKNOWN_EPOCH:
            newest = max(follower.broker_epoch, self._live.get(replica, UNKNOWN_EPOCH))
            if fetch.broker_epoch < newest:
                raise NotLeaderOrFollower(
                    f"broker {replica} is registered in epoch {newest}, not {fetch.broker_epoch}"
                )
        self._now_ms = max(self._now_ms, now_ms)
        follower.on_fetch(fetch, self.log_end_offset, now_ms)
        # RE-8: a replica rejoins the ISR after a fetch or after the response to an earlier
        # proposal, but never because of a timer.
        joining = [replica] if self._may_join(replica, follower) else []
        return [*self._expand(joining), *self._advance()]

    def kept_up(self, requested_at_ms: Callable[[int], int | None], now_ms: int) -> list[Effect]:
        """Call this before the log grows.

        It records when each follower that has the whole log last sent a request.

        `requested_at_ms` returns when the last request in a follower's fetch session arrived, if
        there is a session. These requests do not contain idle partitions but, as in Kafka, each of
        them counts for every partition in the session. If a follower has not sent another request
        since, it does not get more time to catch up.
        """
        effects: list[Effect] = []
        for replica, follower in self._followers.items():
            fetch = follower.last_fetch
            if not (
                fetch is not None
                and fetch.offset == self.log_end_offset
                and replica in self.isr
                and now_ms - follower.caught_up_at_ms > _LEVEL_FOR_MS
                and self._live.get(replica) in (UNKNOWN_EPOCH, fetch.broker_epoch)
            ):
                continue
            at_ms = requested_at_ms(replica)
            if at_ms is not None and at_ms > follower.caught_up_at_ms:
                effects += self.on_fetch(fetch, at_ms)
        return effects

    def on_isr_answer(self, proposal: IsrProposal, answer: IsrAnswer, now_ms: int) -> list[Effect]:
        """Handle the controller's response to a proposal.

        A response that is out of date changes nothing.
        """
        # A LeaderAndIsr arrived before this response, so the response is not about the current
        # proposal.
        if proposal != self._proposed:
            return []
        self._now_ms = max(self._now_ms, now_ms)
        if answer.error_code in _OVERTAKEN:
            return []
        # The committed ISR and the maximal ISR are the same again, so the HW may advance (RE-4).
        if answer.error_code in _DROPPED:
            self._commit_isr(self.isr)
            return self._advance()
        if answer.error_code:
            # All other errors may be temporary, for example if the controller has resigned or the
            # request was lost. Send the proposal again; in the meantime, the maximal ISR applies.
            return [ProposeIsr(proposal)]
        if (
            answer.leader_epoch != self.leader_epoch
            or answer.partition_epoch < self.partition_epoch
        ):
            return []
        self.partition_epoch = answer.partition_epoch
        self._commit_isr(answer.isr)
        return [*self._expand(self._joining(proposal)), *self._advance()]

    def expire(self, now_ms: int) -> list[Effect]:
        """Propose an ISR without the replicas that lag too far behind (RE-8)."""
        if not self._followers:
            return []
        self._now_ms = max(self._now_ms, now_ms)
        effects: list[Effect] = []
        # As with Kafka's isInflight, there is only one proposal at a time. The next check is made
        # after half the maximum lag time.
        if self._proposed is None:
            kept = tuple(one for one in self.isr if self._keeps_up(one))
            if len(kept) < len(self.isr):
                effects.append(self._propose(kept))
        return [*effects, *self._advance()]

    def _keeps_up(self, replica: int) -> bool:
        if replica == self.broker_id:
            return True
        follower = self._followers[replica]
        return follower.is_caught_up(self.log_end_offset, self._now_ms, self._lag_time_max_ms)

    def _is_eligible(self, replica: int, follower: FollowerState) -> bool:
        """Return whether the follower's broker is live in the registration that sent the fetch.

        If the broker has registered again, it may have lost data. If its epoch is unknown, the
        controller checks it.
        """
        epoch = self._live.get(replica)
        return epoch is not None and (
            UNKNOWN_EPOCH in (epoch, follower.broker_epoch) or follower.broker_epoch == epoch
        )

    def _may_join(self, replica: int, follower: FollowerState) -> bool:
        return (
            replica not in self.isr
            # The follower may still have to truncate its log below the start of the leader epoch,
            # so only the records after it count.
            and follower.log_end_offset >= max(self.high_watermark, self.epoch_start_offset)
            and self._is_eligible(replica, follower)
        )

    def _joining(self, answered: IsrProposal) -> list[int]:
        """Return the replicas that caught up during another proposal and are still caught up."""
        refused = {member.broker_id for member in answered.isr}
        return [
            replica
            for replica, follower in self._followers.items()
            if replica not in refused
            and self._may_join(replica, follower)
            and self._keeps_up(replica)
        ]

    def _expand(self, joining: list[int]) -> list[Effect]:
        if not joining or self._proposed is not None:
            return []
        return [self._propose((*self.isr, *joining))]

    def _propose(self, isr: tuple[int, ...]) -> ProposeIsr:
        members = tuple(IsrMember(replica, self._broker_epoch_of(replica)) for replica in isr)
        self._proposed = IsrProposal(
            self.topic_partition, self.topic_id, self.leader_epoch, members, self.partition_epoch
        )
        involved = tuple(dict.fromkeys((*self.isr, *isr)))
        self.maximal_isr = involved
        self.lags = tuple(
            self._followers[replica].lag(
                replica, self.log_end_offset, self._now_ms, self._lag_time_max_ms
            )
            for replica in involved
            if (replica in isr) != (replica in self.isr)
        )
        return ProposeIsr(self._proposed)

    def _broker_epoch_of(self, replica: int) -> int:
        if replica == self.broker_id:
            return self._broker_epoch
        return self._followers[replica].broker_epoch

    def _commit_isr(self, isr: tuple[int, ...]) -> None:
        self.isr = self.maximal_isr = isr
        self._proposed = None

    def _advance(self) -> list[Effect]:
        """Advance the HW, if allowed, to the smallest LEO of the replicas that count (RE-4)."""
        # This runs for every append and every fetch, so it makes a single pass and creates no list.
        smallest = self.log_end_offset
        for replica, follower in self._followers.items():
            if follower.log_end_offset < smallest and (
                replica in self.maximal_isr
                # This replica is about to join. If the high watermark advanced without it, it would
                # never catch up.
                or (self._keeps_up(replica) and self._is_eligible(replica, follower))
            ):
                smallest = follower.log_end_offset
        # KIP-966: below min.insync.replicas, acks=all rejects new records, so they must not become
        # visible.
        if smallest <= self.high_watermark or not self.has_enough_in_sync():
            return []
        self.high_watermark = smallest
        return [Advance(smallest)]

    # --- as a follower ---------------------------------------------------------------------------

    def on_copied(self, log_end_offset: int, leader_high_watermark: int) -> list[Advance]:
        """Store the new end of the follower's log, and adopt the leader's HW (RE-6).

        If a new leader has a lower HW, keep the higher one, because committed records stay
        committed.
        """
        assert not self.is_leader, "a leader's watermark is its own"
        self.log_end_offset = log_end_offset
        # RE-6: the leader's HW may be above the last record that this follower has fetched.
        high_watermark = min(log_end_offset, leader_high_watermark)
        if high_watermark <= self.high_watermark:
            return []
        self.high_watermark = high_watermark
        return [Advance(high_watermark)]

    def on_truncated(self, log_end_offset: int) -> None:
        """Set the log end after a truncation. It is below the HW only after an unclean election."""
        assert not self.is_leader, "a leader's log never shrinks"
        self.log_end_offset = log_end_offset
        self.high_watermark = min(self.high_watermark, log_end_offset)

    def on_started_at(self, offset: int) -> None:
        """Record that the follower's log was emptied and now starts at this offset."""
        assert not self.is_leader, "a leader's log never shrinks"
        self._log_start_offset = self.high_watermark = self.log_end_offset = offset

    # --- queries ----------------------------------------------------------------

    def follower_end_offset(self, replica: int) -> int:
        """Return the LEO in the follower's last fetch, or -1 if there was none in this epoch."""
        return self._followers[replica].log_end_offset

    def caught_up_at_ms(self, replica: int) -> int:
        """Return when a follower last had all of the leader's records.

        If it never did, the result is a time long ago.
        """
        return self._followers[replica].caught_up_at_ms

    def in_sync(self) -> list[InSync]:
        """Return the followers that are in the ISR and have fetched in this epoch."""
        return [
            InSync(
                replica,
                follower.log_start_offset,
                follower.log_end_offset,
                follower.caught_up_at_ms,
            )
            for replica, follower in self._followers.items()
            if replica in self.isr and follower.last_fetch is not None
        ]

    def low_watermark(self, live: Container[int]) -> int:
        """Return the smallest log start offset of the live replicas, or -1 if one is unknown."""
        smallest = self._log_start_offset
        for replica, follower in self._followers.items():
            if follower.log_start_offset < smallest and replica in live:
                smallest = follower.log_start_offset
        return smallest

    def check_leader_epoch(self, leader_epoch: int) -> None:
        """Reject a client that has another leader epoch (KIP-320).

        The epoch is -1 if the client sent none.
        """
        # Tools send no epoch, and neither do consumers that are older than KIP-320.
        if leader_epoch in (NO_EPOCH, self.leader_epoch):
            return
        if leader_epoch < self.leader_epoch:
            raise FencedLeaderEpoch(
                f"{self.topic_partition} is in leader epoch {self.leader_epoch}, no longer "
                f"{leader_epoch}; refresh the metadata"
            )
        raise UnknownLeaderEpoch(
            f"{self.topic_partition} is in leader epoch {self.leader_epoch} on this broker, not "
            f"yet {leader_epoch}; retry"
        )

    def has_enough_in_sync(self) -> bool:
        """Return whether there are enough replicas in the ISR to accept appends with acks=all."""
        count = len(self.isr)
        # KIP-966: if the partition has fewer replicas than min.insync.replicas, it is enough if all
        # are in sync.
        return count >= self._min_insync_replicas or count >= len(self.replicas)

    def check_acks_all(self) -> None:
        """Check this before an append with acks=all (PR-4). Raises NotEnoughReplicas."""
        if not self.has_enough_in_sync():
            raise NotEnoughReplicas(
                f"{self.topic_partition} has {counted(len(self.isr), 'replica')} in sync, but "
                f"min.insync.replicas is {self._min_insync_replicas}"
            )

    def check_written_to_all(self) -> None:
        """Check this after an append with acks=all (PR-4). Raises NotEnoughReplicasAfterAppend."""
        if not self.has_enough_in_sync():
            raise NotEnoughReplicasAfterAppend(
                f"{self.topic_partition}: written, but the ISR shrank below min.insync.replicas"
            )

    def _not_leader(self) -> NotLeaderOrFollower:
        return NotLeaderOrFollower(f"broker {self.broker_id} does not lead {self.topic_partition}")
