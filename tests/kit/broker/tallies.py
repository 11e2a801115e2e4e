"""Shards of the smallest machine: it remembers the last number given to a name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from barnabas.broker.coordinator.pending_reply import settle
from barnabas.broker.coordinator.shard import Shard, ShardContext
from barnabas.broker.coordinator.shards import Shards
from barnabas.broker.outcome import Outcome
from barnabas.broker.partitions.replica import Replica
from barnabas.broker.partitions.replica_listener import ReplicaListener
from barnabas.broker.partitions.replicas import Replicas
from barnabas.broker.runtime.watched_clock import WatchedClock
from barnabas.clock import SystemClock
from barnabas.cluster.controller_requests import LeaderAndIsr, PartitionState
from barnabas.cluster.image import PartitionImage
from barnabas.cluster.layout import GROUP_TOPIC
from barnabas.config import BrokerConfig
from barnabas.coordinator.decision import (
    NOTHING,
    Decision,
    Markers,
    Reply,
    StateRecord,
)
from barnabas.coordinator.records import (
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_record,
)
from barnabas.coordinator.state_partition import partition_of
from barnabas.errors import (
    KafkaError,
)
from barnabas.protocol.message import Message
from barnabas.protocol.messages.find_coordinator import FindCoordinatorResponse
from barnabas.storage.files import OsFiles
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from tests.kit.broker.hosted_parts import HostedParts

PARTITIONS = 2


TOPIC_ID = bytes(15) + b"\x09"


class Tally:
    """Keeps a number by name; a name can be asked for before it is there, and waits then."""

    def __init__(self, partition: int, epoch: int) -> None:
        self.partition, self.epoch = partition, epoch
        self.numbers: dict[str, int] = {}
        self.ended: list[tuple[int, bool]] = []
        self.is_loaded = False
        self.deadline: int | None = None
        self.expired = 0
        self._waiting: dict[str, list[int]] = {}

    def put(self, ticket: int, name: str, number: int) -> Decision:
        waiting = [ticket, *self._waiting.pop(name, [])]
        return Decision((record(name, number),), tuple(Reply(t, answered(number)) for t in waiting))

    def forget(self, ticket: int) -> Decision:
        tombstones = tuple(record(name, 0)._replace(value=None) for name in self.numbers)
        return Decision(tombstones, (Reply(ticket, answered(len(tombstones))),))

    def get(self, ticket: int, name: str) -> Decision:
        if name in self.numbers:
            return Decision(replies=(Reply(ticket, answered(self.numbers[name])),))
        self._waiting.setdefault(name, []).append(ticket)
        return NOTHING

    def apply(
        self, record: StateRecord, offset: int, producer_id: int = -1, high_watermark: int = 0
    ) -> None:
        assert isinstance(record.key, OffsetCommitKey)
        if record.value is None:
            del self.numbers[record.key.group]
            return
        assert isinstance(record.value, OffsetCommitValue)
        self.numbers[record.key.group] = record.value.offset

    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        self.ended.append((producer_id, is_commit))

    def on_loaded(self, now: object) -> Decision:
        self.is_loaded = True
        return NOTHING

    def deadline_ms(self) -> int | None:
        return self.deadline

    def expire(self, now: object, *, may_forget: bool = True) -> list[Decision]:
        self.deadline = None
        self.expired += 1
        return [Decision((record("expired", self.expired),))]


def record(name: str, number: int) -> StateRecord:
    key = OffsetCommitKey(group=name, topic="t", partition=0)
    value = OffsetCommitValue(offset=number, leader_epoch=-1, metadata="", commit_timestamp=0)
    return StateRecord(key, value)


def answered(number: int) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(node_id=number)


def failed(error: KafkaError) -> Message:
    return FindCoordinatorResponse(error_code=error.code)


class _Led(ReplicaListener):
    """Has shards taken and dropped."""

    __slots__ = ("_shards",)

    def __init__(self, shards: Shards[Tally]) -> None:
        self._shards = shards

    def on_leading(self, replica: Replica) -> None:
        self._shards.take(replica)

    def on_left(self, replica: Replica) -> None:
        self._shards.drop(replica.topic_partition.partition)


class Node:
    """A broker's logs and replicas, and a coordinator above them."""

    def __init__(self, directory: Path, settings: dict[str, str] | None = None) -> None:
        self.config = BrokerConfig({"log.dirs": str(directory), **(settings or {})})
        self.clock = WatchedClock(SystemClock())
        self.store = LogStore(OsFiles(), 0, 86_400_000)
        self.store.begin([directory], self.config.log_config(), self.clock.wall_ms())
        parts = HostedParts(self.store, self.config, self.clock, self._listeners)
        self.replicas, self.role_changes = parts.replicas, parts.role_changes
        self.markers: list[Markers] = []
        self.machines: list[Tally] = []

    def _listeners(self, replicas: Replicas) -> list[ReplicaListener]:
        context = ShardContext(
            self.clock,
            replicas.write_soon,
            replicas.threads.background,
            0,
            200,
            1 << 20,
            self.send_markers,
            replicas.events,
        )
        self.shards: Shards[Tally] = Shards(
            GROUP_TOPIC, self.make, decode_group_record, context, lambda: PARTITIONS
        )
        return [_Led(self.shards)]

    def make(self, partition: int, epoch: int) -> Tally:
        self.machines.append(Tally(partition, epoch))
        return self.machines[-1]

    def send_markers(self, shard: Shard[Tally], markers: Markers) -> None:
        self.markers.append(markers)

    def lead(
        self,
        partition: int,
        epoch: int,
        leader: int = 0,
        others: tuple[int, ...] = (),
        paused: tuple[int, ...] = (),
    ) -> None:
        """`others` have a replica that is not in sync; `paused` are in sync, and never fetch."""
        isr = (leader, *paused)
        image = PartitionImage(leader, epoch, isr, (*isr, *others), epoch, 1)
        name = TopicPartition(GROUP_TOPIC, partition)
        state = PartitionState(name, TOPIC_ID, image, {}, is_new=False)
        self.role_changes.apply_leader_and_isr(LeaderAndIsr(0, 1, (state,)))

    def put(self, name: str, number: int) -> Outcome:
        shard = self.shards.shard_of(name)
        return shard.ask(lambda machine, ticket, _: machine.put(ticket, name, number), failed)

    def get(self, name: str) -> Outcome:
        shard = self.shards.shard_of(name)
        return shard.ask(lambda machine, ticket, _: machine.get(ticket, name), failed)

    async def answer(self, outcome: Outcome) -> FindCoordinatorResponse:
        message = await asyncio.wait_for(settle(outcome, self.replicas), 60)  # type: ignore[arg-type]
        assert isinstance(message, FindCoordinatorResponse)
        return message


@asynccontextmanager
async def started(directory: Path, settings: dict[str, str] | None = None) -> AsyncIterator[Node]:
    node = Node(directory, settings)
    try:
        yield node
    finally:
        node.shards.close()
        node.store.close()


def run(test: Callable[[Path], Awaitable[None]], directory: Path) -> None:
    async def whole() -> None:
        await test(directory)

    asyncio.run(whole())


NAME = next(name for name in "abcdef" if partition_of(name, PARTITIONS) == 0)
