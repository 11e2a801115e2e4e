"""Holds the partitions of a consumer, with the position and the latest fetch state of each. Pure.

Each partition has two offsets. `position` is the offset of the next record for the user.
`fetch_offset` is the offset of the next record to fetch, and is ahead of the position by the number
of buffered offsets. A seek starts a new generation, and the results of earlier fetches are dropped.

The leader epoch of the record before the position is stored with the position. A newer leader may
lack that record, because of an unclean election or a lost disk. The position is therefore doubtful
when the leader changes: nothing is fetched until the new leader has reported where that epoch ends
in its log (KIP-320).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from barnabas.client.consumer.fetched import Chunk, FetchedBytes
from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition


class AssignedPartition:
    """The state of one partition: its offsets, its leader if known, and why it is not fetched.

    reset set --(looked up)--> position known --> fetched, buffered, read
        ^                           |
        |                           `-- newer leader --> is_doubtful --> validated, or truncated
        `-- seek_by: out of range, truncated, another topic of this name
    """

    __slots__ = (
        "buffered",
        "epoch",
        "error",
        "fetch_offset",
        "fetching",
        "generation",
        "high_watermark",
        "is_doubtful",
        "is_dropped",
        "last_stable_offset",
        "leader_epoch",
        "log_start_offset",
        "not_before_ms",
        "paused",
        "position",
        "refused_in",
        "reset",
        "sought_in",
        "topic_id",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition, reset: str) -> None:
        self.topic_partition = topic_partition
        self.position = -1  # -1: unknown
        self.epoch = -1  # the leader epoch of the record before the position; -1: unknown
        self.fetch_offset = -1
        self.topic_id = b""  # the id of the topic that the position refers to; empty: unknown
        self.leader_epoch = -1  # the leader epoch to fetch in
        self.refused_in = -1  # the metadata generation in which the position was out of range
        self.is_doubtful = False  # set if the leader's log may end below the position
        self.reset: str | None = reset  # earliest, latest or none; None if the position is known
        self.generation = 0
        self.sought_in = -1  # the generation for which a position is being looked up; -1: none
        self.is_dropped = False  # no longer assigned
        self.paused = False
        self.fetching = False
        self.buffered = 0  # chunks waiting for the user
        self.not_before_ms = 0
        self.error: BarnabasError | None = None  # raised by the user's next poll
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1

    def seek(self, offset: int, epoch: int = -1) -> None:
        """Continue at this offset. `epoch` is the epoch of the record before it, if known."""
        self._go_to(offset, epoch)
        self.reset = None

    def seek_by(self, reset: str) -> None:
        """Discard the position; a new one is looked up by this rule before the next fetch."""
        self._go_to(-1, -1)
        self.reset = reset

    def refetch(self) -> None:
        """Drop the fetched records that the user has not received yet."""
        self._restart()

    def follow(self, topic_id: bytes, leader_epoch: int) -> bool:
        """Adopt the partition's leader from the current metadata.

        Returns False if the topic was deleted and recreated. The position and its epoch then refer
        to the old topic, and the caller decides where to start in the new topic. A topic id of zero
        is unknown and is ignored.
        """
        if not any(topic_id):
            topic_id = self.topic_id  # the broker predates KIP-516
        if topic_id != self.topic_id:
            is_other_topic = self.topic_id != b""
            self.topic_id = topic_id
            if is_other_topic:
                self.leader_epoch = leader_epoch
                self.epoch = -1
                self.is_doubtful = False
                # A position still to be looked up does not refer to the old topic.
                return self.reset is not None
        elif leader_epoch == self.leader_epoch:
            return True
        self.leader_epoch = leader_epoch
        # There is no need to ask the leader that wrote the last record read. Any other leader,
        # newer or older, may lack that record (KIP-320).
        if 0 <= leader_epoch != self.epoch >= 0:
            self._restart()
            self.is_doubtful = True
        else:
            self.is_doubtful = False
        return True

    def advance(self, offset: int, epoch: int) -> None:
        """Move past records that were returned to the user. Epochs never decrease along a log."""
        self.position = offset
        self.epoch = max(self.epoch, epoch)

    def is_current(self, generation: int) -> bool:
        """Return whether the response to a request sent in this generation is still valid."""
        return not self.is_dropped and self.generation == generation

    def _go_to(self, offset: int, epoch: int) -> None:
        self.position = offset
        self.epoch = epoch
        self.leader_epoch = -1  # forces a comparison of the epochs
        self.is_doubtful = False
        self._restart()

    def _restart(self) -> None:
        self.fetch_offset = self.position
        self.refused_in = -1
        self.generation += 1
        self.buffered = 0
        self.not_before_ms = 0
        self.error = None

    def describe(self, chunk: Chunk) -> FetchedBytes:
        """Return a chunk as raw bytes, with the partition offsets that the broker reported."""
        return FetchedBytes(
            records=chunk.records,
            high_watermark=self.high_watermark,
            log_start_offset=self.log_start_offset,
            last_stable_offset=self.last_stable_offset,
            offset=chunk.offset,
            next_offset=chunk.next_offset,
            aborted=chunk.aborted,
        )

    def wants(self, now_ms: int, most_buffered: int) -> bool:
        """Return whether data should be fetched for this partition now."""
        return (
            self.reset is None
            and not self.paused
            and not self.fetching
            and self.buffered < most_buffered
            and self.error is None
            and self.not_before_ms <= now_ms
        )

    def lags(self) -> bool:
        """Return whether the broker has more records, judging by its last response."""
        return self.fetch_offset < self.high_watermark


def changes(
    before: Sequence[TopicPartition], after: Sequence[TopicPartition]
) -> tuple[list[TopicPartition], list[TopicPartition]]:
    """Return the partitions in both lists, in the order of `before`, then those only in `after`."""
    owned, wanted = frozenset(before), frozenset(after)
    kept = [name for name in before if name in wanted]
    new = [name for name in after if name not in owned]
    return kept, new


class Assignment:
    """The assigned partitions, by partition, in the order in which they were assigned."""

    def __init__(self, auto_offset_reset: str) -> None:
        self._auto_offset_reset = auto_offset_reset
        self._partitions: dict[TopicPartition, AssignedPartition] = {}

    def replace(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Assign these partitions. Partitions that were already assigned keep their positions."""
        before = self._partitions
        # Fetches in flight refer to the states, not to the partitions' names. Mark the states that
        # are removed, so that their responses are ignored.
        for state in before.values():
            state.is_dropped = True
        self._partitions = {
            tp: before.get(tp) or AssignedPartition(tp, self._auto_offset_reset)
            for tp in topic_partitions
        }
        for state in self._partitions.values():
            state.is_dropped = False

    def __iter__(self) -> Iterator[AssignedPartition]:
        return iter(self._partitions.values())

    def __len__(self) -> int:
        return len(self._partitions)

    def names(self) -> list[TopicPartition]:
        return list(self._partitions)

    def of(self, topic_partition: TopicPartition) -> AssignedPartition:
        """Return the state of a partition. Raises ValueError if the partition is not assigned."""
        state = self._partitions.get(topic_partition)
        if state is None:
            raise ValueError(f"partition {topic_partition} is not assigned to this consumer")
        return state
