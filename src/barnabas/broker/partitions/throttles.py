"""Creates the replication throttles according to the broker's settings (KIP-73, RE-13).

    leader.replication.throttled.rate       the leader omits a partition from a follower's response
    follower.replication.throttled.rate     the follower omits it from its requests

Once the rate is used up, these throttles apply to out-of-sync replicas that are listed in the
topic's configs (`leader.replication.throttled.replicas` and `follower....`). Bytes copied to
in-sync replicas are counted but never delayed, because a throttle is meant to delay reassignments
and not acknowledgements. The lists and the rates are handled here. Whether a replica is in sync is
checked by `fetching/replica_readers.py` on the leader, and by `replication/followed.py` on the
follower.

    replica.alter.log.dirs.io.max.bytes.per.second

limits the total rate of all moves between log directories of this broker (KIP-113).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.replication.throttle import Throttle

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica
    from barnabas.config import BrokerConfig


class Throttles:
    """The replication throttles of one broker. `configure` applies changed settings."""

    __slots__ = ("_follower", "_leader", "moves")

    def __init__(self, config: BrokerConfig) -> None:
        broker_id = config.int("broker.id")
        self._leader = Throttle(broker_id)
        self._follower = Throttle(broker_id)
        self.moves = Throttle(broker_id)
        """The throttle for moves from one log directory to another."""
        self.configure(config)

    def configure(self, config: BrokerConfig) -> None:
        for throttle, side in ((self._leader, "leader"), (self._follower, "follower")):
            throttle.bytes_per_s = config.int(f"{side}.replication.throttled.rate")
            throttle.window_count = config.int("replication.quota.window.num")
            throttle.window_ms = 1_000 * config.int("replication.quota.window.size.seconds")
        moves = self.moves
        moves.bytes_per_s = config.int("replica.alter.log.dirs.io.max.bytes.per.second")
        moves.window_count = config.int("alter.log.dirs.replication.quota.window.num")
        window_s = config.int("alter.log.dirs.replication.quota.window.size.seconds")
        moves.window_ms = 1_000 * window_s

    def of_leader(self, replica: Replica) -> Throttle | None:
        """Return the throttle for this replica's followers, if there is one."""
        # The list is a topic config. It contains partitions with their brokers, or an asterisk that
        # stands for all of them (KIP-73).
        listed = replica.log.config.leader_replication_throttled_replicas
        if listed and self._leader.covers(listed, replica.topic_partition.partition):
            return self._leader
        return None

    def of_follower(self, replica: Replica) -> Throttle | None:
        """Return the throttle for this replica as a follower, if there is one."""
        listed = replica.log.config.follower_replication_throttled_replicas
        if listed and self._follower.covers(listed, replica.topic_partition.partition):
            return self._follower
        return None
