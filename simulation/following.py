"""The fetchers of a simulated broker: one loop for each leader that it follows.

A fetch asks a leader for every partition that the broker follows there. Each partition's part of
the answer goes to the broker's own `Followed`, which carries out the steps of its machine.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from barnabas.broker.partitions.replica_listener import ReplicaListener
from barnabas.broker.partitions.throttles import Throttles
from barnabas.broker.replication.fetcher_parts import FetcherParts
from barnabas.broker.replication.followed import Followed
from barnabas.replication.follower import FetchBounds, FetchFrom, Wait
from simulation.wire import AskLatest, Bounds, Fetch, FetchAnswer, FetchedPart, Wanted
from simulation.world import Promise

if TYPE_CHECKING:
    from barnabas.broker.inter_broker.peers import Peers
    from barnabas.broker.partitions.replica import Replica
    from barnabas.replication.follower import Step
    from barnabas.types import TopicPartition
    from simulation.network import Connection
    from simulation.sim_broker import SimBroker

_MAX_WAIT_MS = 400
_TIMEOUT_MS = 1500
_BACKOFF_MS = 60


class Fetchers(ReplicaListener):
    """All fetchers of this broker."""

    __slots__ = ("_broker", "_fetchers", "_parts")

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker
        self._fetchers: dict[int, Fetcher] = {}  # by leader
        throttles, peers = Throttles(broker.config.value), cast("Peers", broker.peers)
        self._parts = FetcherParts(broker.view, broker.config, broker.replicas, throttles, peers)

    def on_following(self, replica: Replica, leader_id: int) -> None:
        self.on_unfollowing(replica)
        if leader_id not in self._fetchers:
            self._fetchers[leader_id] = Fetcher(self._broker, leader_id)
        self._fetchers[leader_id].follow(
            Followed(replica, self._parts, self._broker.cluster.machines.follower)
        )

    def on_unfollowing(self, replica: Replica) -> None:
        for fetcher in self._fetchers.values():
            fetcher.unfollow(replica.topic_partition)

    def followed(self, name: TopicPartition) -> Followed:
        """Return a partition that is followed."""
        return next(
            each.followed[name] for each in self._fetchers.values() if name in each.followed
        )


class Fetcher:
    """Copies from one leader."""

    __slots__ = ("_broker", "_leader", "_rest_until_ms", "_sleep", "followed")

    def __init__(self, broker: SimBroker, leader: int) -> None:
        self._broker = broker
        self._leader = leader
        self.followed: dict[TopicPartition, Followed] = {}
        self._rest_until_ms: dict[TopicPartition, int] = {}
        self._sleep: Promise[None] = Promise()
        broker.cluster.world.start(broker.life, self._run())

    def follow(self, followed: Followed) -> None:
        name = followed.replica.topic_partition
        self.followed[name] = followed
        self._rest_until_ms.pop(name, None)
        self._sleep.resolve(None)

    def unfollow(self, name: TopicPartition) -> None:
        self.followed.pop(name, None)

    async def _run(self) -> None:
        broker = self._broker
        world, life = broker.cluster.world, broker.life
        connection = broker.cluster.network.connect(broker.broker_id, life, self._leader)
        while True:
            if not self.followed:
                self._sleep = Promise()
                await self._sleep
                continue
            ready = [
                each
                for name, each in self.followed.items()
                if self._rest_until_ms.get(name, 0) <= world.now_ms
            ]
            if not ready:
                await world.sleep(life, _BACKOFF_MS)
                continue
            wanted = tuple(
                Wanted(each.replica.topic_partition, each.topic_id, each.fetch_from())
                for each in ready
            )
            request = Fetch(broker.broker_id, broker.epoch, wanted, _MAX_WAIT_MS)
            answer: FetchAnswer | None = await connection.call(request, _TIMEOUT_MS)
            if answer is None:
                await world.sleep(life, _BACKOFF_MS)
                continue
            for followed, asked, part in zip(ready, wanted, answer.parts, strict=True):
                await self._take(connection, followed, asked.sent, part)

    async def _take(
        self, connection: Connection, followed: Followed, sent: FetchFrom, part: FetchedPart
    ) -> None:
        records = cast(memoryview, part.entries)
        now_ms = self._broker.now_ms
        step = self._do(followed, partial(followed.on_answer, sent, part.got, records, now_ms))
        if type(step) is not FetchBounds:
            return
        name = followed.replica.topic_partition
        question = AskLatest(name, followed.topic_id, sent.leader_epoch, is_follower=True)
        found: Bounds | None = await connection.call(question, _TIMEOUT_MS)
        if found is None or found.error_code:
            self._rest(followed, _BACKOFF_MS)
        else:
            self._do(followed, partial(followed.bounds, found.earliest, found.latest))

    def _do(self, followed: Followed, carry_out: partial[Step]) -> Step | None:
        """Carry out a step, unless the partition has another leader or epoch by now."""
        if self.followed.get(followed.replica.topic_partition) is not followed:
            return None
        loop = self._broker.loop
        try:
            step = loop.call(carry_out)
        except OSError as error:
            loop.call(followed.replica.fail, error)
            return None
        if isinstance(step, Wait):
            self._rest(followed, step.ms)
        return step

    def _rest(self, followed: Followed, wait_ms: int) -> None:
        name = followed.replica.topic_partition
        self._rest_until_ms[name] = self._broker.now_ms + wait_ms
