"""The throttles of replication, as the broker's settings say (KIP-73, RE-13).

    leader.replication.throttled.rate       a leader leaves a partition out of a follower's answer
    follower.replication.throttled.rate     a follower leaves it out of its requests

That happens to replicas which their topic lists (`leader.replication.throttled.replicas` and
`follower....`) and which are not in sync, when the rate is used up. What is copied to those in sync
counts, but never waits: a throttle holds up moves, and no acknowledgement. This file knows the
lists and the rates; whether a replica is in sync is asked where it is held up, in the leader's
`fetching/replica_readers.py` and the follower's `replication/followed.py`.

    replica.alter.log.dirs.io.max.bytes.per.second

is for the moves between this broker's log directories (KIP-113), all of them together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.replication.throttle import Throttle

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica
    from barnabas.config import BrokerConfig


class Throttles:
    """Holds the throttles of a broker; `configure` applies changed settings."""

    __slots__ = ("_follower", "_leader", "moves")

    def __init__(self, config: BrokerConfig) -> None:
        broker_id = config.int("broker.id")
        self._leader = Throttle(broker_id)
        self._follower = Throttle(broker_id)
        self.moves = Throttle(broker_id)
        """Limits moves between log directories."""
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
        """Return the throttle of those who follow this replica; None for most."""
        # The list is a topic's config, and names partitions and brokers, or all by an asterisk
        # (KIP-73).
        listed = replica.log.config.leader_replication_throttled_replicas
        if listed and self._leader.covers(listed, replica.topic_partition.partition):
            return self._leader
        return None

    def of_follower(self, replica: Replica) -> Throttle | None:
        """Return the throttle of this replica where it follows; None for most."""
        listed = replica.log.config.follower_replication_throttled_replicas
        if listed and self._follower.covers(listed, replica.topic_partition.partition):
            return self._follower
        return None
