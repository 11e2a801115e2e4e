"""Clients: producers that retry, and consumers that read up to the high watermark.

A producer has one record under way. An idempotent producer takes a new producer id when it gives up
a record or gets a sequence error, since Kafka's client starts a new epoch then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.errors import OffsetOutOfRange, OutOfOrderSequenceNumber
from barnabas.types import TopicPartition
from simulation.disk import NO_PRODUCER
from simulation.network import Connection
from simulation.transaction_checks import committed_of
from simulation.wire import (
    AskEpochEnd,
    AskLatest,
    AskMetadata,
    Bounds,
    EpochEndAnswer,
    Metadata,
    Produce,
    Produced,
    Read,
    ReadAnswer,
)
from simulation.world import Life

if TYPE_CHECKING:
    from simulation.cluster import Cluster

_TIMEOUT_MS = 1500
_BACKOFF_MS = 60
_DELIVERY_TIMEOUT_MS = 6000
_POLL_EVERY_MS = 150


class Leader(NamedTuple):
    broker_id: int
    epoch: int


class Client:
    """Learns the partitions' leaders from brokers' metadata; never goes back to an older epoch."""

    __slots__ = ("_connections", "_leaders", "cluster", "life", "number")

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.cluster = cluster
        self.number = number  # below 0
        self.life = Life()
        self._connections: dict[int, Connection] = {}
        self._leaders: dict[tuple[bytes, TopicPartition], Leader] = {}

    def connection(self, broker_id: int) -> Connection:
        connection = self._connections.get(broker_id)
        if connection is None:
            connection = self.cluster.network.connect(self.number, self.life, broker_id)
            self._connections[broker_id] = connection
        return connection

    async def leader(self, name: TopicPartition, *, is_stale: bool) -> Leader | None:
        """Return the partition's leader; asks any broker if the leader is unknown, or turned out
        to be wrong."""
        key = (self.cluster.topics[name.topic], name)
        if not is_stale and key in self._leaders:
            return self._leaders[key]
        anyone = self.cluster.world.random.randint(1, self.cluster.options.brokers)
        answer: Metadata | None = await self.connection(anyone).call(AskMetadata(), _TIMEOUT_MS)
        topic = None if answer is None else answer.image.topics.get(name.topic)
        if topic is not None and topic.topic_id == key[0] and name.partition in topic.partitions:
            state = topic.partitions[name.partition]
            known = self._leaders.get(key)
            if state.leader >= 0 and (known is None or state.leader_epoch >= known.epoch):
                self._leaders[key] = Leader(state.leader, state.leader_epoch)
        return self._leaders.get(key)

    async def sleep(self, ms: int) -> None:
        await self.cluster.world.sleep(self.life, ms)


class Counts:
    """Counts the outcomes of all writes; also gives out values and producer ids."""

    __slots__ = ("acknowledged", "last_id", "last_value")

    def __init__(self) -> None:
        self.acknowledged = 0
        self.last_value = 0
        self.last_id = 0


class Producer(Client):
    """Writes to all partitions, one after another, until it is stopped."""

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
        self._sequences: dict[tuple[bytes, TopicPartition], int] = {}
        self.is_stopping = False
        self.has_stopped = False
        self._start_over()

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
        """Send a record; returns whether it was acknowledged. If not, its outcome is unknown."""
        topic_id = self.cluster.topics[name.topic]
        sequence = self._sequences.get((topic_id, name), 0)
        request = Produce(name, topic_id, self._acks, self._id, sequence, value)
        self.cluster.checks.topics.sends(value, topic_id)
        deadline_ms = self.cluster.world.now_ms + _DELIVERY_TIMEOUT_MS
        is_stale = False
        while self.cluster.world.now_ms < deadline_ms:
            leader = await self.leader(name, is_stale=is_stale)
            is_stale = True
            if self.cluster.topics[name.topic] != topic_id:
                break  # another topic has this name
            if leader is not None:
                promise = self.connection(leader.broker_id).call(request, _TIMEOUT_MS)
                answer: Produced | None = Produced(0) if not self._acks else await promise
                if answer is not None and not answer.error_code:
                    self._acknowledged((topic_id, name), sequence)
                    return True
                if answer is not None and answer.error_code == OutOfOrderSequenceNumber.code:
                    break
            await self.sleep(_BACKOFF_MS)
        self._start_over()
        return False

    def _acknowledged(self, key: tuple[bytes, TopicPartition], sequence: int) -> None:
        self._sequences[key] = sequence + 1
        self._counts.acknowledged += 1

    def _start_over(self) -> None:
        if self._is_idempotent:
            self._counts.last_id += 1
            self._id = self._counts.last_id
            self._sequences = {}


class Consumer(Client):
    """Reads every partition from its beginning: all records, or only committed ones."""

    __slots__ = ("_epochs", "_is_committed", "_latest", "_offsets")

    def __init__(self, cluster: Cluster, number: int, *, is_committed: bool = False) -> None:
        super().__init__(cluster, number)
        self._is_committed = is_committed
        self._offsets: dict[tuple[bytes, TopicPartition], int] = {}
        self._epochs: dict[tuple[bytes, TopicPartition], tuple[int, int]] = {}
        """The epochs of the last record that was read, and of the leader that has it."""
        self._latest: dict[tuple[bytes, TopicPartition], tuple[int, int]] = {}

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
        """Read from the leader; returns whether it was the right one."""
        topic_id = self.cluster.topics[name.topic]
        key = (topic_id, name)
        if not await self.validate(name, topic_id, leader):
            return False
        offset = self._offsets.get(key, 0)
        request = Read(name, topic_id, offset, leader.epoch, self._is_committed)
        answer: ReadAnswer | None = await self.connection(leader.broker_id).call(
            request, _TIMEOUT_MS
        )
        if answer is None:
            return False
        if answer.error_code == OffsetOutOfRange.code:
            is_below = offset < answer.log_start_offset
            self._offsets[key] = answer.log_start_offset if is_below else answer.high_watermark
            return True
        if answer.entries:
            self.got(name, topic_id, answer)
            last = answer.entries[-1]
            self._offsets[key] = last.offset + 1
            self._epochs[key] = (last.epoch, leader.epoch)
        return not answer.error_code

    def got(self, name: TopicPartition, topic_id: bytes, answer: ReadAnswer) -> None:
        checks = self.cluster.checks
        checks.read(name, topic_id, answer.entries)
        if self._is_committed:
            checks.transactions.read(name, committed_of(answer.entries, answer.aborted))

    async def validate(self, name: TopicPartition, topic_id: bytes, leader: Leader) -> bool:
        """Return whether it may read on: under another leader, its position may be in a log that
        was cut.

        It goes back to where that log and what it has read diverge (KIP-320).
        """
        key = (topic_id, name)
        read_epoch, known_epoch = self._epochs.get(key, (-1, leader.epoch))
        if known_epoch == leader.epoch or read_epoch < 0:
            return True
        request = AskEpochEnd(name, topic_id, leader.epoch, read_epoch)
        answer: EpochEndAnswer | None = await self.connection(leader.broker_id).call(
            request, _TIMEOUT_MS
        )
        if answer is None or answer.error_code:
            return False
        if -1 < answer.end_offset < self._offsets[key]:
            self.cluster.world.tell("consumer {} goes back in {}", self.number, name)
            self._offsets[key] = answer.end_offset
        self._epochs[key] = (read_epoch, leader.epoch)
        return True

    async def _ask_latest(self, name: TopicPartition, leader: Leader) -> None:
        topic_id = self.cluster.topics[name.topic]
        history = self.cluster.checks.history(name)
        resets, before = self._latest.get((topic_id, name), (0, 0))
        request = AskLatest(name, topic_id, leader.epoch)
        answer: Bounds | None = await self.connection(leader.broker_id).call(request, _TIMEOUT_MS)
        if answer is None or answer.error_code or answer.leader_epoch < history.reset_epoch:
            return
        if resets == history.resets:
            self.cluster.checks.latest(name, before, answer.latest)
        self._latest[topic_id, name] = (history.resets, answer.latest)
