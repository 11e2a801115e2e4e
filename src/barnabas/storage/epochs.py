"""Which leader epoch began at which offset: `leader-epoch-checkpoint` (KIP-101, KIP-279).

Owns the ascending list of (epoch, start offset) of one log. Truncation between replicas is decided
by it, never by the high watermark. Invariant: epochs and start offsets both rise strictly, so an
epoch that got no record is replaced by the next one.
"""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

from barnabas.errors import CorruptData
from barnabas.storage.checkpoint import encode_entries, read_entries, replace_file
from barnabas.storage.files import Files

UNKNOWN = -1

FILE_NAME = "leader-epoch-checkpoint"


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class LeaderEpochs:
    """The epochs of one log; every change is written to its file."""

    __slots__ = ("_entries", "_files", "_path", "_synced_version", "_version", "latest")

    def __init__(self, files: Files, directory: Path, *, is_lost: bool = False) -> None:
        """Reads the file, unless it `is_lost`; CorruptData if it is none of ours."""
        self._files = files
        self._path = directory / FILE_NAME
        self._entries: list[EpochEntry] = []
        for words in () if is_lost else read_entries(files, self._path):
            try:
                epoch, start_offset = map(int, words)
            except ValueError as cause:
                raise CorruptData(f"{self._path} has the line {' '.join(words)!r}") from cause
            self._entries.append(EpochEntry(epoch, start_offset))
        # Of what was saved: counted, so that a change during a sync is not taken for synced.
        self._version = 1
        self._synced_version = 1 if self._entries else 0
        self.latest = UNKNOWN
        """The newest epoch; -1 if there is none."""
        self._changed()

    def _changed(self) -> None:
        self.latest = self._entries[-1].epoch if self._entries else UNKNOWN

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        return tuple(self._entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Say that `epoch` begins at this offset. What contradicts it was never committed."""
        if self.note(epoch, start_offset):
            self.save()

    def note(self, epoch: int, start_offset: int) -> bool:
        """`assign` without the writing, for recovery; whether anything changed."""
        entries = self._entries
        if entries and epoch == entries[-1].epoch and start_offset >= entries[-1].start_offset:
            return False
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochEntry(epoch, start_offset))
        self._changed()
        return True

    def epoch_at(self, offset: int) -> int:
        """The epoch whose range holds the offset; -1 if none does."""
        i = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[i - 1].epoch if i else UNKNOWN

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEntry:
        """The greatest epoch at or below the asked one, and the offset after its last record.

        (-1, -1) for an epoch that is newer than all; an epoch older than all ends where they begin.
        """
        entries = self._entries
        if epoch == UNKNOWN or not entries or epoch > entries[-1].epoch:
            return EpochEntry(UNKNOWN, UNKNOWN)
        if epoch == entries[-1].epoch:
            return EpochEntry(epoch, log_end_offset)
        i = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
        return EpochEntry(entries[i - 1].epoch if i else epoch, entries[i].start_offset)

    def truncate_from_end(self, offset: int) -> None:
        """Forget epochs that begin at or after the offset: the log ends there."""
        kept = [entry for entry in self._entries if entry.start_offset < offset]
        if len(kept) != len(self._entries):
            self._entries = kept
            self._changed()
            self.save()

    def truncate_from_start(self, offset: int) -> None:
        """Forget epochs that end before the offset; the one that holds it begins there now."""
        i = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        if i and (i > 1 or self._entries[0].start_offset < offset):
            self._entries[:i] = [EpochEntry(self._entries[i - 1].epoch, offset)]
            self.save()

    def save(self) -> None:
        """Write the file. A replacement must not be lost together with what it replaces, so it is
        made durable; where there is nothing to lose, in a log that was never flushed or has no
        epoch, it need not be, and partitions are made and opened without waiting for the disk.
        """
        self._version += 1
        if not self._entries:
            self._synced_version = 0
        is_fresh = self._synced_version == 0
        entries = encode_entries((entry.epoch, entry.start_offset) for entry in self._entries)
        replace_file(self._files, self._path, entries, sync=not is_fresh)
        if not is_fresh:
            self._synced_version = self._version

    @property
    def unsynced_version(self) -> int:
        """What `sync` has to be told; 0 if the file is durable, or there is nothing in it."""
        if not self._entries or self._synced_version == self._version:
            return 0
        return self._version

    def sync(self, version: int) -> None:
        """Make the file as it was at that version durable; suits a thread."""
        self._files.sync(self._path)
        self._synced_version = max(self._synced_version, version)
