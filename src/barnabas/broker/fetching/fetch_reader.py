"""Defines the interface for the different kinds of fetch clients, which are consumers, followers
and log-end probes.

    reader            replica id   reads from                     up to
    ConsumerReader    -1           the leader                     the high watermark, or the LSO
    RackReader        -1           the leader, or a follower in   the same
                                   the consumer's rack (KIP-392)
    FollowerReader    >= 0         the leader                     the log end (RE-5, RE-7)
    EndProbe          -2           any replica                    the log end

A reader decides who may read, from which replica and up to which offset, and how reading affects
the partition. `FetchPass` manages the rows, the limits and the slices. Each reader serves a single
request, which may read several times.

If the client's last fetched epoch shows that its log has diverged, the response contains the
diverging epoch (KIP-595) instead of records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from barnabas.broker.context import Context
from barnabas.broker.partitions.replica import Replica, Watchers
from barnabas.broker.partitions.traffic import TopicTraffic
from barnabas.errors import OffsetOutOfRange, TopicAuthorizationFailed
from barnabas.protocol.messages.fetch import EpochEndOffset, FetchPartition, PartitionData
from barnabas.replication.fetch_session import SessionPartition
from barnabas.types import FileSlice

if TYPE_CHECKING:
    from barnabas.storage.log import Log

Ends = tuple[int, int, int, int]
"""The log start, high watermark, log end and leader epoch of a replica."""

_READ_ENTRIES = 20
"""The number of entries that together cost as much as reading one partition."""

CONSUMER = -1
"""The replica id of consumers."""

END_PROBE = -2
"""The replica id of clients that query the log end of a single replica."""

DIVERGING_EPOCHS = 12
"""The first version that includes the epoch of the last fetched record."""


class Row:
    """The response for one partition, with its log's offsets at the time of the read."""

    __slots__ = (
        "data",
        "ends",
        "is_drained",
        "partition",
        "replica",
        "size_bytes",
        "topic",
        "topic_id",
    )

    def __init__(
        self, topic: str, topic_id: bytes, data: PartitionData, replica: Replica | None = None
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.data = data
        self.size_bytes = 0
        """The total size of the records in this row."""
        self.is_drained = False
        """Whether the reader reached the end of the available records without an error."""
        self.replica = replica
        """The replica that was read, or None if this row is an error."""
        self.ends = _ends(replica) if replica is not None else None
        """The offsets of the replica's log at the time of the read."""
        self.partition: SessionPartition | None = None
        """The partition in the fetch session, if there is one."""

    @property
    def entries(self) -> int:
        """Return the cost of this row for `Pace`. Records require an index lookup and perhaps
        opening a file.
        """
        return _READ_ENTRIES if self.size_bytes else 1

    def has_moved(self) -> bool:
        """Return whether the replica's log has changed since it was read."""
        return self.replica is not None and self.ends != _ends(self.replica)


class ReadBudget:
    """The number of bytes that remain for one response, shared by all of its partitions.

    The budget also collects the reads whose data a thread must first load into the page cache.
    """

    __slots__ = ("_max_bytes", "cold", "is_warmed", "left_bytes", "taken_bytes")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = self.left_bytes = max_bytes
        self.taken_bytes = 0
        self.cold: list[tuple[Log, int, int]] = []
        """The reads (log, offset, size) whose data a thread must first load into the page cache."""
        self.is_warmed = False
        """Whether a thread has loaded the cold data. If so, data that is still cold is read anyway.
        """

    def refill(self, *, is_warmed: bool) -> None:
        """Start a new pass over the partitions.

        The previous pass's slices must have been released.
        """
        self.left_bytes, self.taken_bytes = self._max_bytes, 0
        self.is_warmed = is_warmed
        self.cold = []

    def read(
        self, row: Row, log: Log, wanted: FetchPartition, bound: int
    ) -> list[FileSlice] | None:
        """Put whole batches below `bound` into a row. Returns None if their pages are not in the
        cache.

        The first batch is returned even if it is larger than all limits, so that the client can
        make progress (KIP-74). Raises OffsetOutOfRange, or any error that occurs while reading a
        file.
        """
        offset = wanted.fetch_offset
        max_bytes = min(self.left_bytes, wanted.partition_max_bytes)
        if (
            not self.is_warmed
            and not log.health.is_failed
            # If the offset is out of range, the read below rejects it without accessing the disk.
            and log.log_start_offset <= offset < log.log_end_offset
            and log.is_cold(offset, max_bytes)
        ):
            self.cold.append((log, offset, max_bytes))
            return None
        # Only the first batch of the whole response may exceed the limits, not the first batch of
        # each partition.
        slices = log.read(offset, max_bytes, bound, self.taken_bytes == 0)
        row.data.records = slices
        row.size_bytes = size_bytes = sum([part.size for part in slices])
        self.taken_bytes += size_bytes
        self.left_bytes -= size_bytes
        return slices


class FetchReader(Protocol):
    """A kind of client on whose behalf partitions are read."""

    looks_at_all: bool
    """Whether all changed partitions in a session are read even if the response is full. This is
    necessary for followers, whose fetch offsets are acknowledgements.
    """

    references: int
    """The number of partitions of the current topic. The authorizer logs this number."""

    def replica(self, name: tuple[str, int], leader_epoch: int) -> Replica:
        """Return the replica to be read.

        Raises TopicAuthorizationFailed, or another error for the client if this broker does not
        have such a replica.
        """
        ...

    def place(self, replica: Replica) -> Replica | Watchers:
        """Return the place where a request waits for more data from the replica."""
        ...

    def fill(self, row: Row, replica: Replica, wanted: FetchPartition, budget: ReadBudget) -> bool:
        """Read a partition into its row. Return True if the response must not wait for more bytes.

        Raises OffsetOutOfRange or another KafkaError to send to the client, CorruptData or OSError.
        """
        ...

    def keeps_silent(self, row: Row) -> bool:
        """Return whether a session may omit this row because the client already knows these
        offsets.
        """
        ...

    def count(self, traffic: TopicTraffic, size_bytes: int) -> None:
        """Count the bytes of a row towards the size of the response."""
        ...

    def on_sent(self) -> None:
        """Called when a response has been built from the rows."""
        ...

    def look_again(self) -> None:
        """Forget the cached authorization and rates after the request has waited."""
        ...


class TopicReader:
    """A client that needs permission to READ each topic.

    For consecutive partitions of the same topic, authorization is checked only once.
    """

    __slots__ = ("_context", "_is_allowed", "_topic", "references")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._topic: str | None = None
        self._is_allowed = False
        self.references = 1

    def count(self, traffic: TopicTraffic, size_bytes: int) -> None:
        traffic.bytes_out += size_bytes

    def look_again(self) -> None:
        self._topic = None  # READ may have been revoked

    def _check(self, topic: str) -> None:
        """Raise TopicAuthorizationFailed if the client is not authorized to read the topic."""
        if topic != self._topic:
            self._topic = topic
            self._is_allowed = self._context.is_allowed(topic, self.references)
        if not self._is_allowed:
            raise TopicAuthorizationFailed(f"not allowed to read {topic}")


def diverging_epoch(replica: Replica, wanted: FetchPartition) -> EpochEndOffset | None:
    """Return the point at which the client's log has diverged, or None. The client truncates its
    log at this point (KIP-595).
    """
    log = replica.log
    epoch, end_offset = log.epoch_end_offset(wanted.last_fetched_epoch)
    # The checks are in the same order as in Kafka (Partition.readRecords). If this log never had
    # the epoch, there is no offset to truncate to, so the client must find a new position.
    if epoch < 0 or end_offset < 0:
        raise OffsetOutOfRange(f"leader epoch {wanted.last_fetched_epoch} is unknown")
    if wanted.fetch_offset < log.log_start_offset:
        raise OffsetOutOfRange(f"the log starts at offset {log.log_start_offset}")
    # The client's last record is in an epoch that this log lacks, or beyond the end of its epoch in
    # this log. The logs have diverged, so sending more records would mix records from both logs
    # (KIP-320).
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def bounds(replica: Replica) -> PartitionData:
    """Return the response for a replica before any records are read."""
    high_watermark, log = replica.partition.high_watermark, replica.log
    return PartitionData(
        partition_index=log.topic_partition.partition,
        high_watermark=high_watermark,
        last_stable_offset=log.last_stable_offset(high_watermark),
        log_start_offset=log.log_start_offset,
        aborted_transactions=None,
        records=b"",
    )


def _ends(replica: Replica) -> Ends:
    log, partition = replica.log, replica.partition
    return (
        log.log_start_offset,
        partition.high_watermark,
        log.log_end_offset,
        partition.leader_epoch,
    )
