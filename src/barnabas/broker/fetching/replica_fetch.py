"""What a consumer reads that says where it stands: from its leader, or a follower nearby (KIP-392).

    at the leader     no records, but the name of a follower in sync in the consumer's rack, if
                      `replica.selector.class` asks for that and the leader stands elsewhere
    at a follower     what is below its own high watermark, as at a leader. From there to its log's
                      end the consumer waits; beyond it OFFSET_OUT_OF_RANGE sends it to the leader

A consumer without a rack reads from leaders alone. One with a rack is served by any follower,
whatever this broker's own selector is: brokers are given theirs one after the other.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.fetching.fetch_pass import FetchPass, Row
from barnabas.broker.partitions.replica import Replica
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest
from barnabas.replication.replica_selector import RACK_AWARE, select_replica


class NearPass(FetchPass):
    """A look at the partitions that a consumer in a rack wants."""

    __slots__ = ("_rack", "_sends_on")

    def __init__(self, context: Context, request: FetchRequest, max_bytes: int) -> None:
        super().__init__(context, request, max_bytes)
        node = context.node
        self._rack = request.rack_id
        own = node.image.brokers.get(node.broker_id)
        self._sends_on = (
            node.config.str("replica.selector.class").endswith(RACK_AWARE)
            and own is not None
            and own.rack != self._rack
        )

    def _hosted(self, name: tuple[str, int], leader_epoch: int) -> Replica:
        return self._context.node.replicas.hosted(name, leader_epoch)

    def _fill(self, row: Row, replica: Replica, wanted: FetchPartition) -> None:
        if self._sends_on and replica.partition.is_leader:
            preferred = self._preferred(replica, wanted.fetch_offset)
            if preferred is not None:
                row.data.preferred_read_replica = preferred
                self.has_error = True  # an answer that must not wait
                return
        super()._fill(row, replica, wanted)

    def _preferred(self, replica: Replica, offset: int) -> int | None:
        brokers = self._context.node.image.brokers
        followers = replica.in_sync()
        racks = {
            each.broker_id: brokers[each.broker_id].rack
            for each in followers
            if each.broker_id in brokers
        }
        return select_replica(offset, self._rack, racks, followers)
