"""The leader's replica of an internal topic's partition, for the real shards of a coordinator.

A batch of a coordinator becomes one entry of the simulated log, so it takes one offset and has one
record. It is written immediately: a simulated log stages nothing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from barnabas.coordinator.records import KeyValue
from barnabas.errors import NotLeaderOrFollower
from barnabas.records.batch import assign_in_place, iterate_batches
from barnabas.records.compression import NONE
from barnabas.records.record import BatchBuilder, records_of
from barnabas.types import TopicPartition
from simulation.disk import NO_PRODUCER, STATE, Entry

if TYPE_CHECKING:
    from barnabas.replication.partition import Effect, Partition
    from simulation.hosted import Hosted

_BATCHES_AT_ONCE = 20


class Appended(NamedTuple):
    base_offset: int
    last_offset: int


class Slice(NamedTuple):
    """A few batches, in the form that a broker's file would have."""

    data: bytes

    def read(self) -> bytes:
        return self.data

    def release(self) -> None:
        """Do nothing: there is no file."""


class StateLog:
    """Presents the entries of a log as batches."""

    __slots__ = ("_hosted",)

    def __init__(self, hosted: Hosted) -> None:
        self._hosted = hosted

    @property
    def log_start_offset(self) -> int:
        return self._hosted.log.base

    @property
    def log_end_offset(self) -> int:
        return self._hosted.log.log_end_offset

    def read(self, offset: int, max_bytes: int, end_offset: int) -> list[Slice]:
        entries = self._hosted.log.read(offset, end_offset, _BATCHES_AT_ONCE)
        return [Slice(_batch(entry)) for entry in entries]


class StateReplica:
    """A replica that leads."""

    __slots__ = ("_hosted", "log")

    def __init__(self, hosted: Hosted) -> None:
        self._hosted = hosted
        self.log = StateLog(hosted)

    @property
    def topic_partition(self) -> TopicPartition:
        return self._hosted.name

    @property
    def partition(self) -> Partition:
        return self._hosted.partition

    @property
    def high_watermark(self) -> int:
        return self._hosted.partition.high_watermark

    def append_own(self, records: memoryview, wall_ms: int) -> Appended:
        hosted, offset = self._hosted, self._hosted.log.log_end_offset
        payload = tuple(
            [
                KeyValue(record.key or b"", record.value)
                for position, header in iterate_batches(records)
                for record in records_of(records, position, header)
            ]
        )
        assert len(payload) == 1, payload
        epoch = hosted.partition.leader_epoch
        entry = Entry(offset, epoch, NO_PRODUCER, 0, 0, 0, STATE, payload)
        # Its effects come after the shard has applied it.
        hosted.broker.loop.call_soon(self._handle, hosted.append(entry))
        return Appended(offset, offset)

    def _handle(self, effects: list[Effect]) -> None:
        hosted = self._hosted
        if hosted.broker.hosted.get(hosted.name) is hosted:
            hosted.handle(effects)

    def wait_for(self, offset: int) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def go_on(is_committed: bool) -> None:
            if future.done():
                return
            if is_committed:
                future.set_result(None)
            else:
                future.set_exception(NotLeaderOrFollower(f"{self._hosted.name} has moved"))

        self._hosted.await_offset(offset - 1, go_on)
        return future

    def fail(self, error: OSError) -> None:
        self._hosted.broker.fail_disk(str(error))


def _batch(entry: Entry) -> bytes:
    builder = BatchBuilder(NONE)
    for key, value in entry.payload:
        builder.append(0, key, value)
    batch = bytearray(builder.build())
    assign_in_place(batch, 0, entry.offset, entry.epoch)
    return bytes(batch)
