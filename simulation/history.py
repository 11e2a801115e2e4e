"""The truth about one partition: everything that was ever committed, and its leaders.

A record is committed once a leader's high watermark has passed it. The committed part grows. It
shrinks only if a loss was legal, because an unclean election was allowed or because the disks
themselves have lost records.
"""

from __future__ import annotations

from barnabas.cluster.layout import StateNode
from barnabas.types import TopicPartition
from simulation.disk import IN_TRANSACTION, NO_PRODUCER, PLAIN, Entry, SimLog


class History:
    """The history of one partition of the topic with this id."""

    __slots__ = (
        "committed",
        "deleted_before_loss",
        "deleted_below",
        "is_forked",
        "is_second",
        "is_unclean",
        "leaders",
        "lost",
        "lost_sequences",
        "name",
        "previous",
        "reset_epoch",
        "resets",
        "sequences",
        "starts",
        "stored",
        "topic_id",
        "values",
    )

    def __init__(self, name: TopicPartition, topic_id: bytes, *, is_second: bool) -> None:
        self.name = name
        self.topic_id = topic_id
        self.is_second = is_second  # its topic has the name of a deleted topic
        self.committed: list[Entry] = []  # by offset
        self.deleted_below = 0  # set by DeleteRecords; no replica needs to have these records
        self.deleted_before_loss = 0  # the highest value of this before the loss
        # An unclean election was allowed and happened, or the topic is being deleted. It is
        # uncertain which records clients have seen, so only rules that still hold are judged
        # (epochs, leaders, logs that are equal in the end).
        self.is_forked = False
        self.lost: dict[Entry, int] = {}  # legally
        self.resets = 0
        self.reset_epoch = -1  # an earlier leader may still count lost records
        self.leaders: dict[int, int] = {}  # the leader of each epoch
        self.starts: dict[int, int] = {}  # and where its log ended then
        self.sequences: dict[tuple[int, int], int] = {}  # each producer's last, in each epoch
        self.lost_sequences: dict[tuple[int, int], int] = {}  # the last lost one
        self.values: dict[int, int] = {}  # offsets of idempotent producers' values
        self.stored: StateNode | None = None  # in the metadata store
        self.previous: StateNode | None = None  # before the last election
        self.is_unclean = False  # the present leader was not in the ISR before

    @property
    def newest_epoch(self) -> int:
        return max(self.leaders, default=-1)

    def first_missing(self, log: SimLog, start: int, end: int) -> int | None:
        """Return the first committed offset in this range at which the log lacks the entry or
        has a different one."""
        committed, base = self.committed, log.base
        start = max(start, base, self.deleted_below)
        if start >= end:
            return None
        if committed[start:end] == log.entries[start - base : max(end - base, 0)]:
            return None
        for offset in range(start, end):
            place = offset - base
            if place >= len(log.entries) or log.entries[place] != committed[offset]:
                return offset
        return None

    def commit(self, entries: list[Entry], *, has_epochs_again: bool) -> str | None:
        """Commit these entries next; returns what is wrong with their sequence numbers, if
        anything.

        `has_epochs_again`: coordinators have forgotten which epochs they gave to producers.
        """
        before = len(self.committed)
        self.committed += entries
        sequences = self.sequences
        for entry in entries:
            if entry.producer == NO_PRODUCER or entry.kind > IN_TRANSACTION:
                continue
            if has_epochs_again and entry.kind == IN_TRANSACTION:
                continue
            producer = (entry.producer, entry.producer_epoch)
            expected = sequences.get(producer, -1) + 1
            if entry.sequence != expected and not self._goes_on_after_loss(entry, before):
                return (
                    f"producer {entry.producer} has sequence {entry.sequence} at offset "
                    f"{entry.offset} where {expected} was due"
                )
            sequences[producer] = entry.sequence
            if entry.value in self.values:
                return f"{entry} is there already, at {self.values[entry.value]}"
            self.values[entry.value] = entry.offset
        return None

    def _goes_on_after_loss(self, entry: Entry, end: int) -> bool:
        """Return whether an entry follows its producer's lost records, and leaders may have
        forgotten the producer.

        The producer's earlier records were deleted, so a log that began after them does not know
        the producer.
        """
        lost = self.lost_sequences.get((entry.producer, entry.producer_epoch))
        if lost is None or entry.sequence != lost + 1:
            return False
        known = self.committed[self.deleted_before_loss : end]
        return all(each.producer != entry.producer for each in known)

    def deleted_again(self, base: int) -> list[Entry]:
        """Return the entries that a leader whose log begins at `base` deleted before the others
        lost them.

        They count as committed once more, and as deleted, because no log has them and the next
        offset that is given out is above them.
        """
        known = len(self.committed)
        if not known < base <= self.deleted_before_loss:
            return []
        self.deleted_below = max(self.deleted_below, base)
        lost = {entry.offset: entry for entry in self.lost}
        return [lost[offset] for offset in range(known, base) if offset in lost]

    def lose(self, offset: int, epoch: int) -> int:
        """Remove the committed records from this offset on, whose loss is legal; returns how
        many there were."""
        gone = self.committed[offset:]
        del self.committed[offset:]
        self.resets += 1
        self.deleted_before_loss = max(self.deleted_before_loss, self.deleted_below)
        self.deleted_below = min(self.deleted_below, offset)
        self.reset_epoch = epoch
        for entry in gone:
            self.lost[entry] = self.resets
            self.lost_sequences[entry.producer, entry.producer_epoch] = entry.sequence
            self.values.pop(entry.value, None)
        self.sequences = {}
        for entry in self.committed:
            if entry.producer != NO_PRODUCER and entry.kind in (PLAIN, IN_TRANSACTION):
                self.sequences[entry.producer, entry.producer_epoch] = entry.sequence
        return len(gone)
