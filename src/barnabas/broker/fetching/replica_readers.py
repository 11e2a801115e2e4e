"""Reads up to the log end for followers, and for controllers or tools that query the log end.

In a session, these readers read all changed partitions even if the response is full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.context import Context
from barnabas.broker.fetching.fetch_reader import (
    DIVERGING_EPOCHS,
    ReadBudget,
    Row,
    TopicReader,
    diverging_epoch,
)
from barnabas.broker.partitions.replica import Replica, Watchers
from barnabas.broker.partitions.traffic import TopicTraffic
from barnabas.errors import OffsetOutOfRange, TopicAuthorizationFailed
from barnabas.protocol.messages.fetch import EpochEndOffset, FetchPartition, FetchRequest
from barnabas.replication.follower_state import FollowerFetch
from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.replication.throttle import Throttle


class FollowerReader:
    """Reads up to the log end for a follower, which waits for any data that has been written,
    whether or not consumers can see it (RE-5, RE-7).

    The fetch offset acknowledges all records below it. The leader's partition records the offset
    once per request, before the records are read, so that the response contains the resulting high
    watermark. A partition that has not changed does not have to be read, unless the follower is out
    of sync and may be able to rejoin.
    """

    __slots__ = (
        "_broker_epoch",
        "_context",
        "_counts",
        "_is_allowed",
        "_now_ms",
        "_replica_id",
        "_throttle",
        "_throttled_bytes",
        "references",
    )

    looks_at_all = True

    def __init__(self, context: Context, request: FetchRequest, replica_id: int) -> None:
        self._context = context
        self._replica_id = replica_id
        self._broker_epoch = request.replica_state.replica_epoch
        self._counts = True
        self._is_allowed: bool | None = None  # None until it has been checked
        self.references = 1
        self._now_ms = context.node.clock.monotonic_ms()
        self._throttle: Throttle | None = None  # not None if some partition is throttled
        self._throttled_bytes = 0

    def replica(self, name: tuple[str, int], leader_epoch: int) -> Replica:
        context = self._context
        # CLUSTER_ACTION applies to all partitions, so check and log it only once. Kafka returns the
        # same code for each topic.
        if self._is_allowed is None:
            self._is_allowed = context.allowed_to(
                Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
            )
        if not self._is_allowed:
            raise TopicAuthorizationFailed(f"only brokers may fetch {name[0]} as followers")
        return context.node.replicas.leader_of(name, leader_epoch)

    def place(self, replica: Replica) -> Watchers:
        return replica.followers

    def fill(self, row: Row, replica: Replica, wanted: FetchPartition, budget: ReadBudget) -> bool:
        if wanted.last_fetched_epoch >= 0 and self._context.version >= DIVERGING_EPOCHS:
            diverging = diverging_epoch(replica, wanted)
            if diverging is not None:
                row.data.diverging_epoch = diverging
                return True
        _check_in_log(replica, wanted.fetch_offset)
        if self._counts:
            # Record the fetch offset before reading. It can advance the high watermark (RE-5),
            # which is included in the response (RE-6).
            self._count(replica, wanted)
            row.data.high_watermark = replica.high_watermark
            row.data.last_stable_offset = replica.last_stable_offset
        log = replica.log
        if wanted.fetch_offset == log.log_end_offset:
            # While a follower is out of sync, record each of its requests, because it may be able
            # to rejoin.
            row.is_drained = self._replica_id in replica.partition.isr
        elif budget.left_bytes > 0:
            throttle = self._context.node.throttles.of_leader(replica)
            # Bytes for an in-sync replica count towards the quota but are never held back, because
            # that would delay acknowledgements (KIP-73).
            if throttle is None or not self._is_held_up(throttle, replica):
                budget.read(row, log, wanted, log.log_end_offset)
                if throttle is not None:
                    self._throttle = throttle
                    self._throttled_bytes += row.size_bytes
        return False

    def keeps_silent(self, row: Row) -> bool:
        return _has_nothing(row)

    def count(self, traffic: TopicTraffic, size_bytes: int) -> None:
        traffic.replication_bytes_out += size_bytes

    def on_sent(self) -> None:
        """Count the bytes that have been sent towards the quota."""
        if self._throttle is not None:
            self._throttle.record(self._throttled_bytes, self._now_ms)

    def look_again(self) -> None:
        # The first read has recorded the offsets. Recording them again would look like another
        # request and distort the lag measurement (RE-8).
        self._counts = False
        self._is_allowed = None
        self._now_ms = self._context.node.clock.monotonic_ms()
        self._throttle = None
        self._throttled_bytes = 0

    def _count(self, replica: Replica, wanted: FetchPartition) -> None:
        replica.on_fetch(
            FollowerFetch(
                self._replica_id,
                wanted.fetch_offset,
                wanted.current_leader_epoch,
                wanted.log_start_offset,
                self._broker_epoch,
            ),
            self._now_ms,
        )

    def _is_held_up(self, throttle: Throttle, replica: Replica) -> bool:
        """Return whether the quota for a replica that is out of sync has been used up (RE-13)."""
        if self._replica_id in replica.partition.isr:
            return False
        # Include the bytes in this response, which are not recorded until it is sent.
        return throttle.wait_ms(self._now_ms, self._throttled_bytes) > 0


class EndProbe(TopicReader):
    """Queries the log end of a single replica.

    Followers answer such queries too. The fetch offset is not recorded.
    """

    __slots__ = ()

    looks_at_all = True

    def replica(self, name: tuple[str, int], leader_epoch: int) -> Replica:
        self._check(name[0])
        return self._context.node.replicas.replica_of(name, leader_epoch)

    def place(self, replica: Replica) -> Watchers:
        return replica.followers

    def fill(self, row: Row, replica: Replica, wanted: FetchPartition, budget: ReadBudget) -> bool:
        if wanted.last_fetched_epoch >= 0 and self._context.version >= DIVERGING_EPOCHS:
            diverging = self._diverging_epoch(replica, wanted)
            if diverging is not None:
                row.data.diverging_epoch = diverging
                return True
        _check_in_log(replica, wanted.fetch_offset)
        log_end_offset = replica.log.log_end_offset
        row.is_drained = wanted.fetch_offset == log_end_offset
        if not row.is_drained and budget.left_bytes > 0:
            budget.read(row, replica.log, wanted, log_end_offset)
        return False

    def keeps_silent(self, row: Row) -> bool:
        return _has_nothing(row)

    def on_sent(self) -> None:
        """Do nothing, because a response to a probe does not change any state."""

    def _diverging_epoch(self, replica: Replica, wanted: FetchPartition) -> EpochEndOffset | None:
        log = replica.log
        if wanted.last_fetched_epoch < log.latest_epoch:
            return diverging_epoch(replica, wanted)
        # A follower may not have any records of the latest leader epoch.
        if wanted.fetch_offset <= log.log_end_offset:
            return None
        return EpochEndOffset(epoch=log.latest_epoch, end_offset=log.log_end_offset)


def _has_nothing(row: Row) -> bool:
    """Return whether the row contains no records, no error and no diverging epoch."""
    return (
        row.replica is not None and row.size_bytes == 0 and row.data.diverging_epoch.end_offset < 0
    )


def _check_in_log(replica: Replica, offset: int) -> None:
    log = replica.log
    if not log.log_start_offset <= offset <= log.log_end_offset:
        raise OffsetOutOfRange(
            f"offset {offset} is out of range for {replica.topic_partition}, which has offsets "
            f"{log.log_start_offset} to {log.log_end_offset}"
        )
