"""The disk of a broker's machine: logs of entries, and the small files next to them.

A log is a list of entries of which a prefix is flushed. A killed process loses nothing that it has
written, because the page cache belongs to the machine; a machine that loses power keeps the flushed
prefix and any part of the rest. The epochs use the log's own class, without its file.

To a broker's replica a log of entries is a `storage.log.Log`: a replica hands on what it is given
without looking at it, so an entry takes the place of a batch's bytes. Only what the coordinators
write comes as bytes, and becomes an entry here.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple, cast

from barnabas.config import LogConfig
from barnabas.coordinator.records import KeyValue
from barnabas.errors import OutOfOrderSequenceNumber
from barnabas.records.batch import (
    TRANSACTIONAL,
    BatchHeader,
    assign_in_place,
    iterate_batches,
)
from barnabas.records.compression import NONE
from barnabas.records.control_records import ABORT, COMMIT, Marker
from barnabas.records.record import BatchBuilder, records_of
from barnabas.storage.append_result import AppendResult
from barnabas.storage.batch_validation import Limits, admit_marker
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.files import Files
from barnabas.storage.log_health import LogHealth
from barnabas.storage.producers import Producers
from barnabas.storage.transaction_index import Aborted, AbortedTransaction
from barnabas.types import TopicPartition

NO_PRODUCER = -1
_NO_TIME = -1
_BATCHES_AT_ONCE = 20

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
    """Keeps epochs in memory, because after a crash they are rebuilt from the remaining entries."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(cast(Files, None), Path(), is_lost=True)


class Slice(NamedTuple):
    """A few batches, in the form that a broker's file would have."""

    data: bytes

    def read(self) -> bytes:
        return self.data

    def release(self) -> None:
        """Do nothing, because there is no file."""


class SimLog:
    """One replica's log. `entries[i]` has the offset `base + i`."""

    __slots__ = (
        "_disk",
        "aborted",
        "base",
        "config",
        "entries",
        "epochs",
        "flushed",
        "has_lost",
        "health",
        "log_start_offset",
        "producers",
        "staged",
        "topic_id",
        "topic_partition",
        "unjudged",
    )

    limits = Limits.of(LogConfig())
    directory = Path("a simulated disk")
    unsettled = None  # a cut is on disk at once

    def __init__(self, topic_partition: TopicPartition, topic_id: bytes, disk: Disk) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self._disk = disk
        self.health = LogHealth()
        self.config = LogConfig()
        self.base = 0
        self.log_start_offset = 0
        self.entries: list[Entry] = []
        self.epochs = _Epochs()
        self.flushed = 0  # an offset
        self.staged = 0  # the last entries, which a killed process does not write
        self.unjudged = 0  # the last entries, which the checkers do not know yet
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

    # --- append ----------------------------------------------------------------------------------

    def assign_leader_epoch(self, leader_epoch: int) -> None:
        self.epochs.assign(leader_epoch, self.log_end_offset)

    def append(
        self, entry: Entry, leader_epoch: int, wall_ms: int = 0, is_unseen: bool = False
    ) -> AppendResult:
        """Stage a producer's entry at the next offset, unless it is there already.

        An unknown producer must begin at 0. This is stricter than a broker, so that a gap is never
        mistaken for the result of retention.
        """
        self._check_space()
        if entry.producer != NO_PRODUCER:
            same = self.producers.check(header_of(entry))
            if same is not None:
                offset = same.base_offset
                return AppendResult(offset, offset, _NO_TIME, self.log_start_offset, 0, True)
            known = self.producers.get(entry.producer)
            if entry.sequence and (known is None or known.epoch != entry.producer_epoch):
                raise OutOfOrderSequenceNumber(f"{entry.sequence} of a producer that is not known")
        return self._stage(entry, leader_epoch)

    def append_own(self, records: memoryview, leader_epoch: int, wall_ms: int) -> AppendResult:
        """Stage a coordinator's batch, which takes one offset and has one record."""
        self._check_space()
        payload = tuple(
            [
                KeyValue(record.key or b"", record.value)
                for position, header in iterate_batches(records)
                for record in records_of(records, position, header)
            ]
        )
        assert len(payload) == 1, payload
        return self._stage(Entry(0, 0, NO_PRODUCER, 0, 0, 0, STATE, payload), leader_epoch)

    def append_control(self, records: memoryview, leader_epoch: int, wall_ms: int) -> AppendResult:
        """Stage a transaction's marker."""
        self._check_space()
        header, marker = admit_marker(records)
        producer_id, producer_epoch = header.producer_id, header.producer_epoch
        self.producers.check_marker(producer_id, producer_epoch, marker.coordinator_epoch)
        kind = COMMITS if marker.type == COMMIT else ABORTS
        entry = Entry(0, 0, producer_id, marker.coordinator_epoch, 0, producer_epoch, kind)
        return self._stage(entry, leader_epoch)

    def _stage(self, entry: Entry, leader_epoch: int) -> AppendResult:
        offset = self.log_end_offset
        self._add(entry._replace(offset=offset, epoch=leader_epoch))
        return AppendResult(offset, offset, _NO_TIME, self.log_start_offset, 1, False)

    def append_as_follower(
        self, entries: Sequence[Entry], wall_ms: int = 0, high_watermark: int = -1
    ) -> int:
        """Stage the leader's entries, which have their offsets and epochs."""
        self._check_space()
        for entry in entries:
            self._add(entry)
        return len(entries)

    def _add(self, entry: Entry) -> None:
        if self.epochs.latest != entry.epoch:
            self.epochs.assign(entry.epoch, entry.offset)
        self.entries.append(entry)
        self.staged += 1
        self.unjudged += 1
        self._note(entry)

    def _check_space(self) -> None:
        if self._disk.is_full:
            raise OSError(errno.ENOSPC, "there is no space left on it")

    def write_staged(self) -> None:
        self.staged = 0

    def drop_staged(self) -> None:
        """Lose what the process has not written when it is killed."""
        if self.staged:
            self.truncate(self.log_end_offset - self.staged)

    def due_flush(self, now_ms: int) -> bool:
        """Return False, because no topic asks for flushes."""
        return False

    @property
    def segments(self) -> tuple[SimLog]:
        return (self,)

    def need_descriptors(self) -> None:
        """Do nothing, because there are no files."""

    # --- read ------------------------------------------------------------------------------------

    def entries_in(self, offset: int, end: int, limit: int) -> list[Entry]:
        """Return at most `limit` entries of this range. As in a log, write staged entries first."""
        self.staged = 0
        first = offset - self.base
        return self.entries[first : min(first + limit, end - self.base)]

    def read(self, offset: int, max_bytes: int, end_offset: int) -> list[Slice]:
        """Return a coordinator's entries as batches."""
        return [
            Slice(_batch(each)) for each in self.entries_in(offset, end_offset, _BATCHES_AT_ONCE)
        ]

    def last_stable_offset(self, high_watermark: int) -> int:
        return max(self.producers.stable_below(high_watermark), self.log_start_offset)

    def aborted_in(self, start: int, end: int) -> tuple[AbortedTransaction, ...]:
        """Return the transactions in this range that a reader of committed records skips."""
        return tuple(
            AbortedTransaction(each.producer_id, each.first_offset)
            for each in self.aborted
            if each.first_offset < end and each.last_offset >= start
        )

    # --- shorten ---------------------------------------------------------------------------------

    def truncate(self, offset: int) -> list[Entry]:
        """End the log at this offset; returns the removed entries."""
        keep = max(offset - self.base, 0)
        gone = self.entries[keep:]
        del self.entries[keep:]
        self.epochs.truncate_from_end(offset)
        self.flushed = min(self.flushed, offset)
        self.staged = max(self.staged - len(gone), 0)
        self.unjudged = max(self.unjudged - len(gone), 0)
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

    def raise_log_start(self, offset: int) -> None:
        """Delete the entries below this offset, and immediately from the disk as well."""
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


def _batch(entry: Entry) -> bytes:
    builder = BatchBuilder(NONE)
    for key, value in entry.payload:
        builder.append(0, key, value)
    batch = bytearray(builder.build())
    assign_in_place(batch, 0, entry.offset, entry.epoch)
    return bytes(batch)


def header_of(entry: Entry) -> BatchHeader:
    """Return the entry in the form that the producers' state accepts."""
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
