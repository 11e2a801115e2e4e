"""Reads records below the high watermark for consumers, which may specify their rack (KIP-392)."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from barnabas.broker.context import Context
from barnabas.broker.fetching.fetch_reader import (
    DIVERGING_EPOCHS,
    ReadBudget,
    Row,
    TopicReader,
    diverging_epoch,
)
from barnabas.broker.partitions.replica import Replica
from barnabas.protocol.messages.fetch import AbortedTransaction, FetchPartition, FetchRequest
from barnabas.replication.replica_selector import RACK_AWARE, select_replica
from barnabas.types import FileSlice

_READ_COMMITTED = 1
_BASE_OFFSET = Struct(">q")


class ConsumerReader(TopicReader):
    """Reads whole batches below the leader's high watermark on behalf of consumers.

    If `read_committed`, records are read only up to the last stable offset (CO-6, CO-7).
    """

    __slots__ = ("_committed",)

    looks_at_all = False

    def __init__(self, context: Context, request: FetchRequest) -> None:
        super().__init__(context)
        self._committed = request.isolation_level == _READ_COMMITTED

    def replica(self, name: tuple[str, int], leader_epoch: int) -> Replica:
        self._check(name[0])
        return self._context.node.replicas.leader_of(name, leader_epoch)

    def place(self, replica: Replica) -> Replica:
        return replica

    def fill(self, row: Row, replica: Replica, wanted: FetchPartition, budget: ReadBudget) -> bool:
        if wanted.last_fetched_epoch >= 0 and self._context.version >= DIVERGING_EPOCHS:
            diverging = diverging_epoch(replica, wanted)
            if diverging is not None:
                row.data.diverging_epoch = diverging
                return True
        log, data, offset = replica.log, row.data, wanted.fetch_offset
        bound = data.last_stable_offset if self._committed else data.high_watermark
        # If the offset is outside the log, the read rejects it.
        if (offset >= bound or budget.left_bytes <= 0) and (
            log.log_start_offset <= offset <= log.log_end_offset
        ):
            row.is_drained = offset >= bound
            if self._committed:
                # A read_committed consumer always gets a list, which may be empty. Other consumers
                # get null.
                data.aborted_transactions = []
            return False
        slices = budget.read(row, log, wanted, bound)
        if self._committed and slices is not None:
            # Include only aborted transactions that overlap these records. The consumer skips their
            # records (CO-6).
            end_offset = _end_offset(slices, offset, bound)
            data.aborted_transactions = [
                AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                for each in log.aborted_transactions(offset, end_offset)
            ]
        return False

    def keeps_silent(self, row: Row) -> bool:
        return row.is_drained

    def on_sent(self) -> None:
        """Do nothing, because a response to a consumer does not change any state."""


class RackReader(ConsumerReader):
    """Reads for a consumer that specified its rack, on the leader or a nearby follower (KIP-392).

        at the leader     no records, but the id of an in-sync follower in the consumer's rack, if
                          `replica.selector.class` asks for that and the leader is in another rack
        at a follower     records below its own high watermark, as at a leader. From there to the
                          log end, the consumer waits; beyond the end, OFFSET_OUT_OF_RANGE sends
                          the consumer to the leader

    Every follower serves such consumers regardless of its own selector, because during a rolling
    change the setting reaches the brokers at different times.
    """

    __slots__ = ("_rack", "_selects")

    def __init__(self, context: Context, request: FetchRequest) -> None:
        super().__init__(context, request)
        node = context.node
        self._rack = request.rack_id
        own = node.image.brokers.get(node.broker_id)
        self._selects = (
            node.config.str("replica.selector.class").endswith(RACK_AWARE)
            and own is not None
            and own.rack != self._rack
        )

    def replica(self, name: tuple[str, int], leader_epoch: int) -> Replica:
        self._check(name[0])
        return self._context.node.replicas.replica_of(name, leader_epoch)

    def fill(self, row: Row, replica: Replica, wanted: FetchPartition, budget: ReadBudget) -> bool:
        # The consumer keeps using this follower until `metadata.max.age.ms` has elapsed or a fetch
        # fails.
        if self._selects and replica.partition.is_leader:
            preferred = self._preferred(replica, wanted.fetch_offset)
            if preferred is not None:
                row.data.preferred_read_replica = preferred
                return True
        return super().fill(row, replica, wanted, budget)

    def _preferred(self, replica: Replica, offset: int) -> int | None:
        brokers = self._context.node.image.brokers
        followers = replica.partition.in_sync()
        racks = {
            each.broker_id: brokers[each.broker_id].rack
            for each in followers
            if each.broker_id in brokers
        }
        return select_replica(offset, self._rack, racks, followers)


def _end_offset(slices: Sequence[FileSlice], offset: int, bound: int) -> int:
    """Return the offset after the last batch in the slices, or a later offset, but at most `bound`.

    If another batch follows in the file, the result is the offset at which it begins.
    """
    if not slices:
        return offset
    last = slices[-1]
    # There may be more batches between the end of the slice and the bound. The bound could
    # therefore include transactions that start only after the records that are sent.
    following = last.file.pread(_BASE_OFFSET.size, last.position + last.size)
    if len(following) == _BASE_OFFSET.size:
        (end_offset,) = _BASE_OFFSET.unpack(following)
        if offset < end_offset <= bound:
            return int(end_offset)
    return bound
