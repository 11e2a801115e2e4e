"""Appends transaction markers to partitions led by this broker.

The same rules apply to markers from this broker's coordinator and to markers that another broker
sends with WriteTxnMarkers (KIP-98). If the partition stores offsets, the group coordinator is
notified once the marker has been committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.cluster.layout import GROUP_TOPIC
from barnabas.errors import KafkaStorageError
from barnabas.named_tuple import NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.coordinator.verifier import Verifier
    from barnabas.broker.partitions.replica import Replica
    from barnabas.broker.partitions.replicas import Replicas
    from barnabas.clock import Clock
    from barnabas.types import TopicPartition

OffsetsEnded = Callable[[int, int, bool], None]
"""Called with a partition of `__consumer_offsets`, a producer id, and whether the transaction was
committed.
"""


class Ending(NamedTuple):
    """Holds the contents of a marker."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int


class PlacedMarker(NamedTuple):
    """A marker that has been appended to a log."""

    replica: Replica
    end_offset: int
    """The marker is committed when the high watermark has reached this offset."""
    ending: Ending
    offsets_ended: OffsetsEnded

    @property
    def is_committed(self) -> bool:
        return self.replica.high_watermark >= self.end_offset

    def when_committed(self) -> asyncio.Future[None]:
        """Return a future that is done when the marker has been committed and `on_committed` has
        been called.

        The future fails with the same errors as `Replica.wait_for`. `on_committed` is called even
        if no caller awaits the future, because the marker is in the log anyway.
        """

        def on_reached(future: asyncio.Future[None]) -> None:
            # If this broker is no longer the leader, the new leader's coordinator will replay the
            # marker instead.
            if not future.cancelled() and future.exception() is None:
                self.on_committed()

        waiting = self.replica.wait_for(self.end_offset)
        waiting.add_done_callback(on_reached)
        return waiting

    def on_committed(self) -> None:
        """Commit or discard the offsets of the transaction."""
        topic, partition = self.replica.topic_partition
        if topic == GROUP_TOPIC:
            self.offsets_ended(partition, self.ending.producer_id, self.ending.is_commit)


class MarkerAppend:
    """Appends markers to partitions led by this broker."""

    __slots__ = ("_clock", "_offsets_ended", "_replicas", "_verifier")

    def __init__(
        self,
        clock: Clock,
        replicas: Replicas,
        verifier: Verifier | None,
        offsets_ended: OffsetsEnded,
    ) -> None:
        self._clock = clock
        self._replicas = replicas
        self._verifier = verifier
        self._offsets_ended = offsets_ended

    def append(self, topic_partition: TopicPartition, ending: Ending) -> PlacedMarker:
        """Stage a marker.

        Raises a KafkaError for the coordinator. InvalidProducerEpoch and
        TransactionCoordinatorFenced are final, while any other error can be retried.
        """
        # Loaded with the first log.
        from barnabas.records.control_records import ABORT, COMMIT, Marker, build_marker

        replica = self._replicas.leader_of(topic_partition)
        replica.partition.check_acks_all()
        wall_ms = self._clock.wall_ms()
        kind = COMMIT if ending.is_commit else ABORT
        marker = Marker(0, wall_ms, kind, ending.coordinator_epoch)
        batch = build_marker(marker, ending.producer_id, ending.producer_epoch)
        try:
            result = replica.append_control(memoryview(bytearray(batch)), wall_ms)
        except OSError as error:
            replica.fail(error)
            raise KafkaStorageError(str(error)) from error
        if self._verifier is not None:
            self._verifier.on_marker(topic_partition, ending.producer_id)
        return PlacedMarker(replica, result.last_offset + 1, ending, self._offsets_ended)
