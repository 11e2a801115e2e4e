"""What a replica reads of a partition, rather than a consumer: up to the log's end (RE-5, RE-7).

    id >= 0     a follower. Its offset says what it has: the leader's machine hears of it, once for
                each request, before anything is read, so the answer has the high watermark that
                follows from it. It waits for what is written, not for what is visible
    id -2       whoever wants to know where a replica's log ends. Followers answer too, and no
                machine hears of it

Where the reader's log left this one by its last epoch, the answer says where, and nothing is read.
In a session all that changed is looked at, whatever the answer may hold: offsets acknowledge. What
did not change needs no look, unless the follower is out of sync and may join.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.fetching.fetch_pass import DIVERGING_EPOCHS, FetchPass, Row, diverging_epoch
from barnabas.broker.partitions.replica import Replica
from barnabas.broker.partitions.watchers import Watchers
from barnabas.broker.runtime.slices import Pace, Slices
from barnabas.broker.security.authorization import CLUSTER_NAME, Operation, ResourceType
from barnabas.errors import OffsetOutOfRange, TopicAuthorizationFailed
from barnabas.protocol.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
)
from barnabas.replication.fetch_session import FetchSession
from barnabas.replication.follower_state import FollowerFetch
from barnabas.replication.throttle import Throttle

ANY_REPLICA = -2
"""The replica id of whoever asks one for its end."""

_REPLICA_STATE = 15


def replica_id_of(context: Context, request: FetchRequest) -> int:
    """-1 for a consumer."""
    if context.version >= _REPLICA_STATE:
        return request.replica_state.replica_id
    return request.replica_id


class FollowerPass(FetchPass):
    """A look at the partitions that a replica wants."""

    __slots__ = (
        "_broker_epoch",
        "_counts",
        "_now_ms",
        "_replica_id",
        "_throttle",
        "_throttled_bytes",
    )

    def __init__(
        self, context: Context, request: FetchRequest, max_bytes: int, *, is_first: bool
    ) -> None:
        """`is_first`: of this request; its offsets are news."""
        super().__init__(context, request, max_bytes)
        self._committed = False
        self._replica_id = replica_id_of(context, request)
        self._broker_epoch = request.replica_state.replica_epoch
        self._counts = is_first and self._replica_id != ANY_REPLICA
        self._now_ms = context.node.clock.monotonic_ms()
        self._throttle: Throttle | None = None  # if any partition is throttled
        self._throttled_bytes = 0

    def place_of(self, replica: Replica) -> Watchers:
        return replica.followers

    def read_changed(self, session: FetchSession) -> Slices[None]:
        pace = Pace()
        for partition in list(session.changed):
            if pace.is_over():
                self._is_interrupted = True
                yield
            row = self._read(partition.topic, partition.topic_id, partition.wanted)
            row.partition = partition
            if row.replica is not None:
                partition.watch(row.replica.followers)
            data = row.data
            is_told = (
                row.replica is not None
                and row.size_bytes == 0
                and data.diverging_epoch.end_offset < 0
                and data.high_watermark == partition.high_watermark
                and data.log_start_offset == partition.log_start_offset
            )
            if not is_told:
                self.rows.append(row)
            elif row.is_drained:
                self._silent.append(row)

    def _check_allowed(self, topic: str) -> None:
        context = self._context
        if self._replica_id == ANY_REPLICA:
            super()._check_allowed(topic)
        elif not context.allowed_to(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
            raise TopicAuthorizationFailed(f"only brokers follow {topic}")

    def _hosted(self, name: tuple[str, int], leader_epoch: int) -> Replica:
        replicas = self._context.node.replicas
        if self._replica_id == ANY_REPLICA:
            return replicas.hosted(name, leader_epoch)
        return replicas.leader_of(name, leader_epoch)

    def _fill(self, row: Row, replica: Replica, wanted: FetchPartition) -> None:
        log, data, offset = replica.log, row.data, wanted.fetch_offset
        if wanted.last_fetched_epoch >= 0 and self._version >= DIVERGING_EPOCHS:
            diverging = self._diverging(replica, wanted)
            if diverging is not None:
                data.diverging_epoch = diverging
                self.has_error = True  # an answer that must not wait
                return
        if not log.log_start_offset <= offset <= log.log_end_offset:
            raise OffsetOutOfRange(
                f"{offset} is not in {replica.topic_partition}, which has "
                f"{log.log_start_offset} to {log.log_end_offset}"
            )
        if self._counts:
            self._count(replica, wanted)
            data.high_watermark = replica.high_watermark
            data.last_stable_offset = replica.last_stable_offset
        if offset == log.log_end_offset:
            # Out of sync it is counted with each request: what kept it out may be over.
            is_in_sync = self._replica_id in replica.partition.isr
            row.is_drained = is_in_sync or self._replica_id == ANY_REPLICA
        elif self._left_bytes > 0:
            throttle = self._context.node.throttles.of_leader(replica)
            if throttle is not None and self._is_held_up(throttle, replica):
                return
            max_bytes = min(self._left_bytes, wanted.partition_max_bytes)
            if self._is_cold(log, offset, max_bytes):
                return
            self._take(
                row,
                log.read(
                    offset,
                    max_bytes,
                    log.log_end_offset,
                    at_least_one_batch=self.size_bytes == 0,
                ),
            )
            if throttle is not None:
                self._throttle = throttle
                self._throttled_bytes += row.size_bytes

    def _is_held_up(self, throttle: Throttle, replica: Replica) -> bool:
        """Whether the rate is used up for a replica that is out of sync (RE-13)."""
        if self._replica_id == ANY_REPLICA or self._replica_id in replica.partition.isr:
            return False
        return throttle.wait_ms(self._now_ms, self._throttled_bytes) > 0

    def response(self, session: FetchSession | None) -> Slices[FetchResponse]:
        if self._throttle is not None:  # what was read and not sent does not count
            self._throttle.record(self._throttled_bytes, self._now_ms)
        return (yield from super().response(session))

    def _diverging(self, replica: Replica, wanted: FetchPartition) -> EpochEndOffset | None:
        log = replica.log
        if self._replica_id == ANY_REPLICA and wanted.last_fetched_epoch >= log.latest_epoch:
            # A follower may have no record of the epoch that the asker knows to be the latest.
            if wanted.fetch_offset <= log.log_end_offset:
                return None
            return EpochEndOffset(epoch=log.latest_epoch, end_offset=log.log_end_offset)
        return diverging_epoch(replica, wanted)

    def _count(self, replica: Replica, wanted: FetchPartition) -> None:
        replica.fetched(
            FollowerFetch(
                self._replica_id,
                wanted.fetch_offset,
                wanted.current_leader_epoch,
                wanted.log_start_offset,
                self._broker_epoch,
            ),
            self._now_ms,
        )
