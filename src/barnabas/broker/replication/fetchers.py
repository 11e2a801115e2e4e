"""Distributes the partitions that this broker follows among its fetchers (RE-3).

Each leader has up to `num.replica.fetchers` fetchers. A hash of the partition's name selects one of
them. A fetcher is started for its first partition, and ends when its last partition is removed.
Invariant: a partition is replicated by at most one fetcher, which fetches from the leader that the
controller appointed last.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING

from barnabas.broker.partitions.replica_listener import ReplicaListener
from barnabas.broker.replication.fetcher import Fetcher
from barnabas.metrics import Family, Sample, gauge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.broker.configs.current_config import CurrentConfig
    from barnabas.broker.partitions.replica import Replica
    from barnabas.broker.replication.fetcher_parts import FetcherParts
    from barnabas.broker.replication.followed import Lag
    from barnabas.config import BrokerConfig
    from barnabas.types import TopicPartition

_NO_LEADER = -1


class Fetchers(ReplicaListener):
    """The fetchers of a broker."""

    __slots__ = ("_by_leader", "_count", "_homes", "_is_stopped", "_parts")

    def __init__(self, parts: FetcherParts) -> None:
        self._parts = parts
        self._count = _count_in(parts.config)
        self._by_leader: dict[tuple[int, int], Fetcher] = {}  # by leader id and fetcher number
        self._homes: dict[TopicPartition, Fetcher] = {}
        self._is_stopped = False

    def __len__(self) -> int:
        """Return the number of connections, one for each fetcher."""
        return len(self._by_leader)

    def on_following(self, replica: Replica, leader_id: int) -> None:
        """Replicate the partition from this leader in the current leader epoch of the partition.

        If the leader is -1, there is none. The leader's address is looked up in the image when it
        is needed.
        """
        name = replica.topic_partition
        fetcher = None
        if leader_id not in (_NO_LEADER, self._parts.view.broker_id) and not self._is_stopped:
            fetcher = self._fetcher(leader_id, _spread(name) % self._count)
        before = self._homes.get(name)
        # First remove it from the previous leader's fetcher, because two fetchers must never append
        # to the same log.
        if before is not None and before is not fetcher:
            self._leave(name, before)
        if fetcher is not None:
            self._homes[name] = fetcher
            fetcher.follow(replica)

    def on_unfollowing(self, replica: Replica) -> None:
        """Stop replicating the partition. If any data for it still arrives, the data is dropped."""
        fetcher = self._homes.get(replica.topic_partition)
        if fetcher is not None:
            self._leave(replica.topic_partition, fetcher)

    def on_moved(self, replica: Replica) -> None:
        name = replica.topic_partition
        fetcher = self._homes.get(name)
        followed = None if fetcher is None else fetcher.partitions.get(name)
        if followed is not None:
            followed.on_log_moved()

    def lag(self, topic_partition: TopicPartition) -> Lag | None:
        """Return how far a partition lags behind its leader, or None if this broker does not follow
        it.
        """
        fetcher = self._homes.get(topic_partition)
        followed = None if fetcher is None else fetcher.partitions.get(topic_partition)
        return None if followed is None else followed.lag(self._parts.replicas.clock.monotonic_ms())

    def families(self) -> Iterator[Family]:
        """Yield the lag of every partition that this broker follows (RE-14)."""
        # The client id is that of a fetcher thread in Kafka, and contains the fetcher's number and
        # the leader's id.
        now_ms = self._parts.replicas.clock.monotonic_ms()
        yield gauge(
            "kafka.server:type=FetcherLagMetrics,name=ConsumerLag",
            "Lag in records of a follower on this broker",
            [
                Sample(
                    followed.lag(now_ms).records,
                    (
                        ("clientId", f"ReplicaFetcherThread-{number}-{leader_id}"),
                        ("topic", name.topic),
                        ("partition", str(name.partition)),
                    ),
                )
                for (leader_id, number), fetcher in self._by_leader.items()
                for name, followed in fetcher.partitions.items()
            ],
        )

    def configure(self, config: BrokerConfig) -> None:
        """Apply broker settings that have changed."""
        for fetcher in self._by_leader.values():
            fetcher.configure(config)
        count = _count_in(config)
        # Move partitions whose names now hash to another fetcher.
        if count != self._count:
            self._count = count
            for fetcher in list(self._by_leader.values()):
                for followed in list(fetcher.partitions.values()):
                    self.on_following(followed.replica, fetcher.leader_id)

    async def stop(self) -> None:
        """Stop replicating, and wait until all fetchers have stopped."""
        self._is_stopped = True
        fetchers = list(self._by_leader.values())
        self._by_leader.clear()
        self._homes.clear()
        for fetcher in fetchers:
            fetcher.close()
        for fetcher in fetchers:
            await fetcher.wait_closed()

    def _fetcher(self, leader_id: int, number: int) -> Fetcher:
        fetcher = self._by_leader.get((leader_id, number))
        if fetcher is None:
            fetcher = Fetcher(self._parts, leader_id, number)
            self._by_leader[leader_id, number] = fetcher
        return fetcher

    def _leave(self, name: TopicPartition, fetcher: Fetcher) -> None:
        del self._homes[name]
        fetcher.unfollow(name)
        if not fetcher.partitions:
            # Do not close it immediately, because the controller's next request may add another
            # partition to it.
            asyncio.get_running_loop().call_soon(self._close_idle)

    def _close_idle(self) -> None:
        for key, fetcher in list(self._by_leader.items()):
            if not fetcher.partitions:
                del self._by_leader[key]
                fetcher.close()


def _spread(name: TopicPartition) -> int:
    """Return a hash of the partition's name that is the same in every process."""
    return zlib.crc32(f"{name.topic}-{name.partition}".encode())


def _count_in(config: BrokerConfig | CurrentConfig) -> int:
    """Return the number of fetchers, which is at least one.

    Kafka does not have this lower bound.
    """
    return max(1, config.int("num.replica.fetchers"))
