"""What a broker's machine keeps: logs of entries, and the small files beside them.

A log is a list of entries of which a prefix is flushed. A process that is killed loses nothing, for
the page cache is the machine's; a machine that loses power keeps the flushed prefix and any part
of the rest. The epochs are the log's own class, without its file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple, cast

from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.files import Files
from barnabas.types import TopicPartition

NO_PRODUCER = -1
_KEPT_BATCHES = 5


class Entry(NamedTuple):
    """A batch of one record; `value` is unlike any other's."""

    offset: int
    epoch: int
    producer: int
    sequence: int
    value: int


class _Epochs(LeaderEpochs):
    """Kept in memory: what a crash leaves of them is rebuilt from the entries."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(cast(Files, None), Path(), is_lost=True)

    def save(self) -> None:
        """There is no file."""


class Written(NamedTuple):
    """One of the last batches of a producer."""

    sequence: int
    offset: int


class SimLog:
    """One replica's log. `entries[i]` has the offset `base + i`."""

    __slots__ = (
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
        self.has_lost = False  # a power loss took entries, and nobody knows of it yet
        self.producers: dict[int, list[Written]] = {}

    @property
    def log_end_offset(self) -> int:
        return self.base + len(self.entries)

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def append(self, epoch: int, producer: int, sequence: int, value: int) -> int:
        """As a leader: the offset is the next one."""
        offset = self.log_end_offset
        self.append_entries([Entry(offset, epoch, producer, sequence, value)])
        return offset

    def append_entries(self, entries: Sequence[Entry]) -> None:
        """As a follower: they have their offsets and epochs already."""
        for entry in entries:
            if self.epochs.latest != entry.epoch:
                self.epochs.assign(entry.epoch, entry.offset)
            self.entries.append(entry)
            self._note(entry)

    def read(self, offset: int, end: int, limit: int) -> list[Entry]:
        first = offset - self.base
        return self.entries[first : min(first + limit, end - self.base)]

    def truncate(self, offset: int) -> list[Entry]:
        """Let the log end there; returns what is gone."""
        keep = max(offset - self.base, 0)
        gone = self.entries[keep:]
        del self.entries[keep:]
        self.epochs.truncate_from_end(offset)
        self.flushed = min(self.flushed, offset)
        if gone:
            self.producers = {}
            for entry in self.entries:
                self._note(entry)
        return gone

    def start_at(self, offset: int) -> None:
        """Forget everything and begin there."""
        self.truncate(self.base)
        self.base = self.log_start_offset = self.flushed = offset
        self.epochs.truncate_from_end(0)

    def raise_start(self, offset: int) -> None:
        """What lies below is deleted."""
        gone = max(0, min(offset - self.base, len(self.entries)))
        if gone:
            del self.entries[:gone]
            self.base += gone
            self.epochs.truncate_from_start(self.base)
        self.log_start_offset = max(self.log_start_offset, self.base)

    def lose_power(self, random: Random) -> int:
        """Only what was flushed is sure to stay; returns how many entries are gone."""
        gone = self.truncate(
            random.randint(min(self.flushed, self.log_end_offset), self.log_end_offset)
        )
        self.has_lost = self.has_lost or bool(gone)
        return len(gone)

    def _note(self, entry: Entry) -> None:
        if entry.producer != NO_PRODUCER:
            written = self.producers.setdefault(entry.producer, [])
            written.append(Written(entry.sequence, entry.offset))
            del written[:-_KEPT_BATCHES]


class Disk:
    """One machine's files; they outlive every process on it."""

    __slots__ = ("high_watermarks", "logs", "may_have_lost")

    def __init__(self) -> None:
        self.logs: dict[TopicPartition, SimLog] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}  # as checkpointed
        self.may_have_lost = False  # power failed, and a controller may not know it yet

    def lose_power(self, random: Random) -> int:
        self.may_have_lost = True
        return sum(log.lose_power(random) for log in self.logs.values())
