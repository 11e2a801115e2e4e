"""The clients of a fetch: a consumer, a consumer in a rack, a follower, a probe for a log's end.

    reader            replica id   reads from                     up to
    ConsumerReader    -1           the leader                     the high watermark, or the LSO
    RackReader        -1           the leader, or a follower in   the same
                                   the consumer's rack (KIP-392)
    FollowerReader    >= 0         the leader                     the log's end (RE-5, RE-7)
    EndProbe          -2           any replica                    the log's end

A reader knows who may read, from which replica, up to where, and what the reading means for the
partition; `FetchPass` has the rows, the limits and the slices. A reader serves one pass.

Where the client's log left this one by its last epoch, the answer is the diverging epoch (KIP-595),
and nothing is read.
"""

from __future__ import annotations

from typing import Protocol

from barnabas.broker.context import Context
from barnabas.broker.fetching.read_budget import ReadBudget
from barnabas.broker.fetching.row import Row
from barnabas.broker.partitions.replica import Replica
from barnabas.broker.partitions.watchers import Watchers
from barnabas.errors import OffsetOutOfRange, TopicAuthorizationFailed
from barnabas.protocol.messages.fetch import EpochEndOffset, FetchPartition

CONSUMER = -1
"""The replica id of a consumer."""

END_PROBE = -2
"""The replica id of a client that looks for the end of one replica's log."""

DIVERGING_EPOCHS = 12
"""The first version that carries the epoch of the last record fetched."""


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
        """Where to wait for more to read of it."""
        ...

    def fill(self, row: Row, replica: Replica, wanted: FetchPartition, budget: ReadBudget) -> bool:
        """Read a partition into its row. True if the answer must not wait for more bytes.

        Raises OffsetOutOfRange, other KafkaErrors that are the answer, CorruptData and OSError.
        """
        ...

    def keeps_silent(self, row: Row) -> bool:
        """Whether a session's answer leaves out this row, whose bounds its reader knows."""
        ...

    def sent(self) -> None:
        """Called when an answer is made of what was read."""
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

    def _check(self, topic: str) -> None:
        """Raises TopicAuthorizationFailed."""
        if topic != self._topic:
            self._topic = topic
            self._is_allowed = self._context.allowed(topic, self.references)
        if not self._is_allowed:
            raise TopicAuthorizationFailed(f"not allowed to read {topic}")


def diverging_epoch(replica: Replica, wanted: FetchPartition) -> EpochEndOffset | None:
    """Where the client's log left this one, if it did (KIP-595): it must truncate its own there."""
    log = replica.log
    epoch, end_offset = log.epoch_end_offset(wanted.last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        raise OffsetOutOfRange(f"leader epoch {wanted.last_fetched_epoch} is unknown")
    if wanted.fetch_offset < log.log_start_offset:
        raise OffsetOutOfRange(f"the log begins at {log.log_start_offset}")
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None
