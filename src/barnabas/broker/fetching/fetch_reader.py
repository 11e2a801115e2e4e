"""The clients of a fetch: a consumer, a consumer in a rack, a follower, a probe for a log's end.

    reader            replica id   reads from                     up to
    ConsumerReader    -1           the leader                     the high watermark, or the LSO
    RackReader        -1           the leader, or a follower in   the same
                                   the consumer's rack (KIP-392)
    FollowerReader    >= 0         the leader                     the log's end (RE-5, RE-7)
    EndProbe          -2           any replica                    the log's end

A reader knows who may read, from which replica, up to where, and what the reading means for the
partition; `FetchPass` has the rows, the limits and the slices. A reader serves one request, which
may look several times.

Where the client's log left this one by its last epoch, the answer is the diverging epoch (KIP-595),
and nothing is read.
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
"""A replica's log start, high watermark, log end and leader epoch."""

_READ_ENTRIES = 20
"""As many entries of a request cost as much as a partition of which records are read."""

CONSUMER = -1
"""The replica id of a consumer."""

END_PROBE = -2
"""The replica id of a client that looks for the end of one replica's log."""

DIVERGING_EPOCHS = 12
"""The first version that carries the epoch of the last record fetched."""


class Row:
    """The part of the answer for one partition, and where its log stood when it was read."""

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
        """The size of its records."""
        self.is_drained = False
        """There is nothing from the reader's offset on, and nothing is wrong."""
        self.replica = replica
        """The one that was read; None if the row is an error."""
        self.ends = _ends(replica) if replica is not None else None
        """The end of the replica's log at that moment."""
        self.partition: SessionPartition | None = None
        """Its place in the fetch session, if there is one."""

    @property
    def entries(self) -> int:
        """Its cost for `Pace`: records are found in an index, and a file may be opened."""
        return _READ_ENTRIES if self.size_bytes else 1

    def has_moved(self) -> bool:
        """Return whether the replica's log has changed since it was read."""
        return self.replica is not None and self.ends != _ends(self.replica)


class ReadBudget:
    """The bytes that one answer may still hold, shared out among its partitions in the order of
    reading, and the reads for which a thread has to warm the page cache first."""

    __slots__ = ("_max_bytes", "cold", "is_warmed", "left_bytes", "taken_bytes")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = self.left_bytes = max_bytes
        self.taken_bytes = 0
        self.cold: list[tuple[Log, int, int]] = []
        """Reads, from an offset and of how many bytes, that a thread has to warm first."""
        self.is_warmed = False
        """Whether a thread has done so: what is cold all the same is read."""

    def refill(self, *, is_warmed: bool) -> None:
        """Begin a new look at the partitions; what the last one took was released."""
        self.left_bytes, self.taken_bytes = self._max_bytes, 0
        self.is_warmed = is_warmed
        self.cold = []

    def read(
        self, row: Row, log: Log, wanted: FetchPartition, bound: int
    ) -> list[FileSlice] | None:
        """Put whole batches below `bound` into a row; None if their pages are cold.

        A first batch larger than every limit is returned all the same, or its reader would never
        get past it (KIP-74). Raises OffsetOutOfRange, and what a read of a file raises.
        """
        offset = wanted.fetch_offset
        max_bytes = min(self.left_bytes, wanted.partition_max_bytes)
        if (
            not self.is_warmed
            and not log.is_failed
            # An offset out of range is refused by the read below, and needs no disk for it.
            and log.log_start_offset <= offset < log.log_end_offset
            and log.is_cold(offset, max_bytes)
        ):
            self.cold.append((log, offset, max_bytes))
            return None
        # Only the first batch of the whole answer may exceed the limits, not that of each
        # partition.
        slices = log.read(offset, max_bytes, bound, self.taken_bytes == 0)
        row.data.records = slices
        row.size_bytes = size_bytes = sum([part.size for part in slices])
        self.taken_bytes += size_bytes
        self.left_bytes -= size_bytes
        return slices


class FetchReader(Protocol):
    """The client of one look at the partitions."""

    looks_at_all: bool
    """In a session, whether each partition that changed is looked at, even if the answer is full:
    a follower's offsets acknowledge."""

    references: int
    """How many partitions of the next topic the request names, for the log of the authorizer."""

    def replica(self, name: tuple[str, int], leader_epoch: int) -> Replica:
        """The replica to read. Raises TopicAuthorizationFailed, and the row to answer if there is
        no such replica here."""
        ...

    def place(self, replica: Replica) -> Replica | Watchers:
        """Return the place at which to wait for more to read of it."""
        ...

    def fill(self, row: Row, replica: Replica, wanted: FetchPartition, budget: ReadBudget) -> bool:
        """Read a partition into its row. True if the answer must not wait for more bytes.

        Raises OffsetOutOfRange, other KafkaErrors that are the answer, CorruptData and OSError.
        """
        ...

    def keeps_silent(self, row: Row) -> bool:
        """Return whether a session's answer leaves out this row, whose bounds its reader knows."""
        ...

    def count(self, traffic: TopicTraffic, size_bytes: int) -> None:
        """Count the bytes of a row that is answered."""
        ...

    def on_sent(self) -> None:
        """Called when an answer is made of what was read."""
        ...

    def look_again(self) -> None:
        """Forget what was found out about rights and rates: the request has waited since."""
        ...


class TopicReader:
    """A client that needs the right to read each topic, which is judged once for the partitions of
    a topic that follow each other."""

    __slots__ = ("_context", "_is_allowed", "_topic", "references")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._topic: str | None = None
        self._is_allowed = False
        self.references = 1

    def count(self, traffic: TopicTraffic, size_bytes: int) -> None:
        traffic.bytes_out += size_bytes

    def look_again(self) -> None:
        self._topic = None  # the right to read it may have been taken away

    def _check(self, topic: str) -> None:
        """Raises TopicAuthorizationFailed."""
        if topic != self._topic:
            self._topic = topic
            self._is_allowed = self._context.is_allowed(topic, self.references)
        if not self._is_allowed:
            raise TopicAuthorizationFailed(f"not allowed to read {topic}")


def diverging_epoch(replica: Replica, wanted: FetchPartition) -> EpochEndOffset | None:
    """Return where the client's log left this one, if it did, to truncate its own (KIP-595)."""
    log = replica.log
    epoch, end_offset = log.epoch_end_offset(wanted.last_fetched_epoch)
    # Kafka's order (Partition.readRecords). For an epoch that this log never had there is no offset
    # to truncate to: the reader has to look for a new position.
    if epoch < 0 or end_offset < 0:
        raise OffsetOutOfRange(f"leader epoch {wanted.last_fetched_epoch} is unknown")
    if wanted.fetch_offset < log.log_start_offset:
        raise OffsetOutOfRange(f"the log begins at {log.log_start_offset}")
    # The reader's last record is of an epoch that this log lacks, or lies beyond the end that the
    # epoch has here: its log has left this one, and serving it on would mix both (KIP-320).
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def bounds(replica: Replica) -> PartitionData:
    """The answer for a replica of which nothing has been read yet."""
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
