"""The disk of a broker's machine: logs of entries, and the small files next to them.

A log is a list of entries of which a prefix is flushed. A killed process loses nothing, because the
page cache belongs to the machine; a machine that loses power keeps the flushed prefix and any part
of the rest. The epochs use the log's own class, without its file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple, cast

from barnabas.coordinator.records import KeyValue
from barnabas.records.batch import TRANSACTIONAL, BatchHeader
from barnabas.records.control_records import ABORT, COMMIT, Marker
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.files import Files
from barnabas.storage.producers import Producers
from barnabas.storage.transaction_index import Aborted, AbortedTransaction
from barnabas.types import TopicPartition

NO_PRODUCER = -1

PLAIN, IN_TRANSACTION, COMMITS, ABORTS, STATE = range(5)
"""The kinds of entry: a record, a record in a transaction, a commit, an abort, and a
coordinator's records."""


class Entry(NamedTuple):
    """A batch of one record. Its `value` is unique, except that markers and states have none.

    The `sequence` of a marker is its coordinator's epoch. `payload`: a coordinator's records.
    """

    offset: int
    epoch: int
    producer: int
    sequence: int
    value: int
    producer_epoch: int = 0
    kind: int = PLAIN
    payload: tuple[KeyValue, ...] = ()


class _Epochs(LeaderEpochs):
    """Keeps epochs in memory: after a crash they are rebuilt from the remaining entries."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(cast(Files, None), Path(), is_lost=True)


class SimLog:
    """One replica's log. `entries[i]` has the offset `base + i`."""

    __slots__ = (
        "aborted",
        "base",
        "entries",
        "epochs",
        "flushed",
        "has_lost",
        "log_start_offset",
        "producers",
        "topic_id",
    )

    def __init__(self, topic_id: bytes) -> None:
        self.topic_id = topic_id
        self.base = 0
        self.log_start_offset = 0
        self.entries: list[Entry] = []
        self.epochs = _Epochs()
        self.flushed = 0  # an offset
        self.has_lost = False  # a power cut took entries, and the controller does not know it yet
        self.producers = Producers()
        self.aborted: list[Aborted] = []

    @property
    def log_end_offset(self) -> int:
        return self.base + len(self.entries)

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def append(self, entry: Entry) -> int:
        """Append as a leader: the offset is the next one."""
        offset = self.log_end_offset
        self.append_entries([entry._replace(offset=offset)])
        return offset

    def append_entries(self, entries: Sequence[Entry]) -> None:
        """Append as a follower: the entries already have their offsets and epochs."""
        for entry in entries:
            if self.epochs.latest != entry.epoch:
                self.epochs.assign(entry.epoch, entry.offset)
            self.entries.append(entry)
            self._note(entry)

    def read(self, offset: int, end: int, limit: int) -> list[Entry]:
        first = offset - self.base
        return self.entries[first : min(first + limit, end - self.base)]

    def aborted_in(self, start: int, end: int) -> tuple[AbortedTransaction, ...]:
        """Return the transactions in this range that a reader of committed records skips."""
        return tuple(
            AbortedTransaction(each.producer_id, each.first_offset)
            for each in self.aborted
            if each.first_offset < end and each.last_offset >= start
        )

    def truncate(self, offset: int) -> list[Entry]:
        """End the log at this offset; returns the removed entries."""
        keep = max(offset - self.base, 0)
        gone = self.entries[keep:]
        del self.entries[keep:]
        self.epochs.truncate_from_end(offset)
        self.flushed = min(self.flushed, offset)
        if gone:
            self.forget_producers()
            for entry in self.entries:
                self._note(entry)
        return gone

    def forget_producers(self) -> None:
        """Forget everything about the producers."""
        self.producers = Producers()
        self.aborted = []

    def start_at(self, offset: int) -> None:
        """Forget everything and begin at this offset."""
        self.truncate(self.base)
        self.base = self.log_start_offset = self.flushed = offset
        self.epochs.truncate_from_end(0)

    def raise_start(self, offset: int) -> None:
        """Delete the entries below this offset."""
        gone = max(0, min(offset - self.base, len(self.entries)))
        if gone:
            del self.entries[:gone]
            self.base += gone
            self.epochs.truncate_from_start(self.base)
        self.log_start_offset = max(self.log_start_offset, self.base)

    def lose_power(self, random: Random) -> int:
        """Keep the flushed entries and perhaps some of the others; returns how many entries are
        gone."""
        known = self.epochs.entries
        gone = self.truncate(
            random.randint(min(self.flushed, self.log_end_offset), self.log_end_offset)
        )
        self.has_lost = self.has_lost or bool(gone)
        if 0 < self.base == self.log_end_offset and not self.epochs.entries:
            # As in recovery, the last epoch stays known in a log whose records were deleted.
            for entry in reversed(known):
                if entry.start_offset <= self.base:
                    self.epochs.assign(entry.epoch, self.base)
                    break
        return len(gone)

    def _note(self, entry: Entry) -> None:
        if entry.producer == NO_PRODUCER:
            return
        if entry.kind in (COMMITS, ABORTS):
            kind = COMMIT if entry.kind == COMMITS else ABORT
            marker = Marker(entry.offset, 0, kind, entry.sequence)
            ended = self.producers.apply_marker(entry.producer, entry.producer_epoch, marker)
            if ended is not None and kind == ABORT:
                self.aborted.append(
                    Aborted(
                        entry.producer, ended.first_offset, entry.offset, ended.last_stable_offset
                    )
                )
        else:
            self.producers.apply(header_of(entry), entry.offset, 0)


def header_of(entry: Entry) -> BatchHeader:
    """Return the entry in the form that the producers' state takes."""
    attributes = TRANSACTIONAL if entry.kind == IN_TRANSACTION else 0
    return BatchHeader(
        entry.offset, 0, entry.epoch, 2, 0, attributes, 0, 0, 0,
        entry.producer, entry.producer_epoch, entry.sequence, 1,
    )  # fmt: skip


class Disk:
    """One machine's files; they outlive every process that runs on it."""

    __slots__ = ("has_failed", "high_watermarks", "is_full", "logs", "may_have_lost")

    def __init__(self) -> None:
        self.has_failed = False  # unreachable until it is repaired and a process starts
        self.is_full = False
        self.logs: dict[TopicPartition, SimLog] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}  # as checkpointed
        self.may_have_lost = False  # power failed, and a controller may not know it yet

    def empty(self) -> None:
        """Replace the disk with a new one."""
        self.may_have_lost = True
        self.high_watermarks.clear()
        for log in self.logs.values():
            log.has_lost = log.has_lost or log.log_end_offset > 0
            log.start_at(0)

    def lose_power(self, random: Random) -> int:
        self.may_have_lost = True
        return sum(log.lose_power(random) for log in self.logs.values())
