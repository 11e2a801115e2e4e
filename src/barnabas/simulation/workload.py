"""Clients: producers that retry, and consumers that read up to the high watermark.

A producer has one record under way. One that is idempotent takes a new producer id when it gives a
record up or is told that its sequence is broken, as Kafka's client starts a new epoch then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.errors import OffsetOutOfRange, OutOfOrderSequenceNumber
from barnabas.simulation.disk import NO_PRODUCER
from barnabas.simulation.network import Connection
from barnabas.simulation.wire import (
    AskLatest,
    AskMetadata,
    Bounds,
    Metadata,
    Produce,
    Produced,
    Read,
    ReadAnswer,
)
from barnabas.simulation.world import Life
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.simulation.cluster import Cluster

_TIMEOUT_MS = 1500
_BACKOFF_MS = 60
_DELIVERY_TIMEOUT_MS = 6000
_POLL_EVERY_MS = 150


class Leader(NamedTuple):
    broker_id: int
    epoch: int


class Client:
    """Knows who leads what, as far as brokers have told it; never goes back to an older epoch."""

    __slots__ = ("_connections", "_leaders", "cluster", "life", "number")

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.cluster = cluster
        self.number = number  # below 0
        self.life = Life()
        self._connections: dict[int, Connection] = {}
        self._leaders: dict[TopicPartition, Leader] = {}

    def connection(self, broker_id: int) -> Connection:
        connection = self._connections.get(broker_id)
        if connection is None:
            connection = self.cluster.network.connect(self.number, self.life, broker_id)
            self._connections[broker_id] = connection
        return connection

    async def leader(self, name: TopicPartition, *, is_stale: bool) -> Leader | None:
        """Who leads it; asks any broker if that is not known, or what is known was wrong."""
        if not is_stale and name in self._leaders:
            return self._leaders[name]
        anyone = self.cluster.world.random.randint(1, self.cluster.options.brokers)
        answer: Metadata | None = await self.connection(anyone).call(AskMetadata(), _TIMEOUT_MS)
        topic = None if answer is None else answer.image.topics.get(name.topic)
        if topic is not None and name.partition in topic.partitions:
            state = topic.partitions[name.partition]
            known = self._leaders.get(name)
            if state.leader >= 0 and (known is None or state.leader_epoch >= known.epoch):
                self._leaders[name] = Leader(state.leader, state.leader_epoch)
        return self._leaders.get(name)

    async def sleep(self, ms: int) -> None:
        await self.cluster.world.sleep(self.life, ms)


class Counts:
    """What came of all the writes. Values and producer ids are counted here, too."""

    __slots__ = ("acknowledged", "last_id", "last_value")

    def __init__(self) -> None:
        self.acknowledged = 0
        self.last_value = 0
        self.last_id = 0


class Producer(Client):
    """Writes to all partitions in turn, until it is told to stop."""

    __slots__ = (
        "_acks",
        "_counts",
        "_id",
        "_is_idempotent",
        "_sequences",
        "has_stopped",
        "is_stopping",
    )

    def __init__(
        self, cluster: Cluster, number: int, acks: int, is_idempotent: bool, counts: Counts
    ) -> None:
        super().__init__(cluster, number)
        self._acks = acks
        self._is_idempotent = is_idempotent
        self._counts = counts
        self._id = NO_PRODUCER
        self._sequences: dict[TopicPartition, int] = {}
        self.is_stopping = False
        self.has_stopped = False
        self._begin_anew()

    async def run(self) -> None:
        cluster = self.cluster
        random, pause_ms = cluster.world.random, cluster.options.pause_between_writes_ms
        names = cluster.partitions
        while not self.is_stopping:
            await self.sleep(int(random.expovariate(1 / pause_ms)))
            self._counts.last_value += 1
            name = names[random.randrange(len(names))]
            await self.send(name, self._counts.last_value)
        self.has_stopped = True

    async def send(self, name: TopicPartition, value: int) -> bool:
        """Whether the record was acknowledged; if not, nobody knows."""
        sequence = self._sequences.get(name, 0)
        request = Produce(
            name, self.cluster.topics[name.topic], self._acks, self._id, sequence, value
        )
        deadline_ms = self.cluster.world.now_ms + _DELIVERY_TIMEOUT_MS
        is_stale = False
        while self.cluster.world.now_ms < deadline_ms:
            leader = await self.leader(name, is_stale=is_stale)
            is_stale = True
            if leader is not None:
                promise = self.connection(leader.broker_id).call(request, _TIMEOUT_MS)
                answer: Produced | None = Produced(0) if not self._acks else await promise
                if answer is not None and not answer.error_code:
                    self._acknowledged(name, sequence)
                    return True
                if answer is not None and answer.error_code == OutOfOrderSequenceNumber.code:
                    break
            await self.sleep(_BACKOFF_MS)
        self._begin_anew()
        return False

    def _acknowledged(self, name: TopicPartition, sequence: int) -> None:
        self._sequences[name] = sequence + 1
        self._counts.acknowledged += 1

    def _begin_anew(self) -> None:
        if self._is_idempotent:
            self._counts.last_id += 1
            self._id = self._counts.last_id
            self._sequences = {}


class Consumer(Client):
    """Reads every partition from its beginning."""

    __slots__ = ("_latest", "_offsets")

    def __init__(self, cluster: Cluster, number: int) -> None:
        super().__init__(cluster, number)
        self._offsets: dict[TopicPartition, int] = {}
        self._latest: dict[TopicPartition, tuple[int, int]] = {}

    async def run(self) -> None:
        is_stale = False
        while True:
            await self.sleep(_POLL_EVERY_MS)
            for name in self.cluster.partitions:
                leader = await self.leader(name, is_stale=is_stale)
                if leader is not None:
                    is_stale = not await self._poll(name, leader)
                    await self._ask_latest(name, leader)

    async def _poll(self, name: TopicPartition, leader: Leader) -> bool:
        """Whether the leader was the right one."""
        offset = self._offsets.get(name, 0)
        request = Read(name, self.cluster.topics[name.topic], offset, leader.epoch)
        answer: ReadAnswer | None = await self.connection(leader.broker_id).call(
            request, _TIMEOUT_MS
        )
        if answer is None:
            return False
        if answer.error_code == OffsetOutOfRange.code:
            is_below = offset < answer.log_start_offset
            self._offsets[name] = answer.log_start_offset if is_below else answer.high_watermark
            return True
        self.cluster.checks.read(name, answer.entries)
        if answer.entries:
            self._offsets[name] = answer.entries[-1].offset + 1
        return not answer.error_code

    async def _ask_latest(self, name: TopicPartition, leader: Leader) -> None:
        history = self.cluster.checks.history(name)
        resets, before = self._latest.get(name, (0, 0))
        request = AskLatest(name, self.cluster.topics[name.topic], leader.epoch)
        answer: Bounds | None = await self.connection(leader.broker_id).call(request, _TIMEOUT_MS)
        if answer is None or answer.error_code or answer.leader_epoch < history.reset_epoch:
            return
        if resets == history.resets:
            self.cluster.checks.latest(name, before, answer.latest)
        self._latest[name] = (history.resets, answer.latest)
