"""Tracks the leader epochs of a log and the offsets at which they start (KIP-101, KIP-279).

The epochs and their start offsets are stored in `leader-epoch-checkpoint`. Replicas decide where to
truncate by this list, never by the high watermark. Invariant: both the epochs and the start offsets
are strictly increasing. An epoch that has no records is therefore replaced by the next epoch.

Changes stay in memory until `save` is called, so role changes and truncations do not have to wait
for the disk. The file only has to be correct below the recovery point, so it is written before the
recovery point is raised. After a crash, the epochs above the recovery point are read from the
batches.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

from barnabas.errors import CorruptData
from barnabas.storage.checkpoint import encode_entries, read_entries
from barnabas.storage.files import Files

UNKNOWN = -1

FILE_NAME = "leader-epoch-checkpoint"


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class Unsaved(NamedTuple):
    """A version of the epochs to be written to the file."""

    version: int
    entries: tuple[EpochEntry, ...]


class LeaderEpochs:
    """Tracks the leader epochs of one log."""

    __slots__ = (
        "_entries",
        "_files",
        "_path",
        "_saved_version",
        "_version",
        "_writing",
        "_written_version",
        "latest",
    )

    def __init__(self, files: Files, directory: Path, *, is_lost: bool = False) -> None:
        """Read the file unless it `is_lost`. Raises CorruptData if the file is malformed."""
        self._files = files
        self._path = directory / FILE_NAME
        self._entries: list[EpochEntry] = []
        for words in () if is_lost else read_entries(files, self._path):
            try:
                epoch, start_offset = map(int, words)
            except ValueError as cause:
                raise CorruptData(f"{self._path}: malformed line {' '.join(words)!r}") from cause
            self._entries.append(EpochEntry(epoch, start_offset))
        # Count the changes, so that a change during a save does not count as saved. A file that was
        # written may still be lost in a power failure until the directory has been synced.
        self._version = 1
        self._written_version = self._saved_version = 0 if is_lost else 1
        # held during a save, so that the latest version is kept
        self._writing = threading.Lock()
        self.latest = self._entries[-1].epoch if self._entries else UNKNOWN
        """The newest epoch, or -1 if there are no epochs."""

    def _on_change(self) -> None:
        self.latest = self._entries[-1].epoch if self._entries else UNKNOWN
        self._version += 1

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        return tuple(self._entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Start an epoch at this offset. Existing entries that conflict with it are removed,
        because their records were never committed.
        """
        entries = self._entries
        # The epoch is already known, so keep the offset at which it started.
        if entries and epoch == entries[-1].epoch and start_offset >= entries[-1].start_offset:
            return
        # Remove epochs that have no records, or whose records are not committed, so that both
        # epochs and offsets keep increasing.
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochEntry(epoch, start_offset))
        self._on_change()

    def take_over(self, other: LeaderEpochs) -> None:
        """Replace the epochs with those of another log that ends at the same offset."""
        self._entries = list(other.entries)
        self._on_change()

    def on_renamed(self, directory: Path) -> None:
        """Switch to the new name of the directory."""
        self._path = directory / FILE_NAME

    def epoch_at(self, offset: int) -> int:
        """Return the epoch of the record at the offset, or -1 if no epoch contains the offset."""
        i = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[i - 1].epoch if i else UNKNOWN

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEntry:
        """Return the largest epoch in the log that is not above the given epoch, and the end offset
        of that epoch.

        Returns (-1, -1) if the given epoch is newer than all epochs in the log. If it is older than
        all of them, it ends where the oldest one begins.
        """
        entries = self._entries
        # This log does not contain the epoch, so it cannot tell where the epoch ends.
        if epoch == UNKNOWN or not entries or epoch > entries[-1].epoch:
            return EpochEntry(UNKNOWN, UNKNOWN)
        # The latest epoch ends at the log end.
        if epoch == entries[-1].epoch:
            return EpochEntry(epoch, log_end_offset)
        i = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
        return EpochEntry(entries[i - 1].epoch if i else epoch, entries[i].start_offset)

    def truncate_from_end(self, offset: int) -> None:
        """Remove all epochs that begin at or above the offset, which is the new end of the log."""
        kept = [entry for entry in self._entries if entry.start_offset < offset]
        if len(kept) != len(self._entries):
            self._entries = kept
            self._on_change()

    def truncate_from_start(self, offset: int) -> None:
        """Remove all epochs that end below the offset. The epoch that contains the offset now
        starts there.
        """
        i = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        if i and (i > 1 or self._entries[0].start_offset < offset):
            self._entries[:i] = [EpochEntry(self._entries[i - 1].epoch, offset)]
            self._on_change()

    def take_unsaved(self) -> Unsaved | None:
        """Return the content for `save`, or None if the file already contains it durably."""
        if self._version == self._saved_version:
            return None
        return Unsaved(self._version, self.entries)

    def save(self, unsaved: Unsaved) -> None:
        """Write the content, unless a later version has already been written. This may run in a
        thread.

        The content is durable when the directory has been synced. Call `on_saved` after that sync.
        """
        with self._writing:
            if self._written_version < unsaved.version:
                temporary = self._path.with_name(self._path.name + ".tmp")
                self._files.write(temporary, encode_entries(unsaved.entries), sync=True)
                self._files.replace(temporary, self._path)
                self._written_version = unsaved.version

    def on_saved(self, unsaved: Unsaved) -> None:
        """Record that this version is durable."""
        self._saved_version = max(self._saved_version, unsaved.version)
