"""One partition of a fetch's answer, and where its log stood when it was read."""

from __future__ import annotations

from barnabas.broker.partitions.replica import Replica
from barnabas.protocol.messages.fetch import PartitionData
from barnabas.replication.fetch_session import SessionPartition

Ends = tuple[int, int, int, int]
"""A replica's log start, high watermark, log end and leader epoch."""

_READ_ENTRIES = 20
"""As many entries of a request cost as much as a partition of which records are read."""


class Row:
    """The part of the answer for one partition."""

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
        """Of its records."""
        self.is_drained = False
        """There is nothing from the reader's offset on, and nothing is wrong."""
        self.replica = replica
        """The one that was read; None if the row is an error."""
        self.ends = _ends(replica) if replica is not None else None
        """Where the replica's log stood then."""
        self.partition: SessionPartition | None = None
        """Its place in the fetch session, if there is one."""

    @property
    def entries(self) -> int:
        """Its cost for `Pace`: records are found in an index, and a file may be opened."""
        return _READ_ENTRIES if self.size_bytes else 1

    def has_moved(self) -> bool:
        """Whether the replica's log has changed since it was read."""
        return self.replica is not None and self.ends != _ends(self.replica)


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
