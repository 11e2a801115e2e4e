"""Maintains a log's leader epochs and their start offsets (KIP-101, KIP-279).

The list of (epoch, start offset) is stored in `leader-epoch-checkpoint`. Replicas truncate by this
list, never by the high watermark. Invariant: epochs and start offsets are both strictly increasing,
so a new epoch replaces an epoch without records.

Changes stay in memory until `save`, so role changes and truncations do not wait for the disk. The
file only has to be correct below the recovery point, so it is written before the recovery point
moves. Above it, the list is rebuilt from the batches after a crash.
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
    """A version of the content to write to the file."""

    version: int
    entries: tuple[EpochEntry, ...]


class LeaderEpochs:
    """The epochs of one log."""

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
        """Read the file unless it `is_lost`. Raises CorruptData if it is malformed."""
        self._files = files
        self._path = directory / FILE_NAME
        self._entries: list[EpochEntry] = []
        for words in () if is_lost else read_entries(files, self._path):
            try:
                epoch, start_offset = map(int, words)
            except ValueError as cause:
                raise CorruptData(f"{self._path}: malformed line {' '.join(words)!r}") from cause
            self._entries.append(EpochEntry(epoch, start_offset))
        # With a counter, a change during a save does not count as saved. Until the directory is
        # synced, a power failure can undo a written file.
        self._version = 1
        self._written_version = self._saved_version = 0 if is_lost else 1
        # held by threads that save: the latest version must win
        self._writing = threading.Lock()
        self.latest = self._entries[-1].epoch if self._entries else UNKNOWN
        """The newest epoch; -1 if there is none."""

    def _on_change(self) -> None:
        self.latest = self._entries[-1].epoch if self._entries else UNKNOWN
        self._version += 1

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        return tuple(self._entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Add an epoch that begins at this offset. Conflicting entries were never committed."""
        entries = self._entries
        # The epoch is already in the list; keep its start offset.
        if entries and epoch == entries[-1].epoch and start_offset >= entries[-1].start_offset:
            return
        # Remove epochs whose records are uncommitted or that have none, so that both columns
        # increase.
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochEntry(epoch, start_offset))
        self._on_change()

    def take_over(self, other: LeaderEpochs) -> None:
        """Adopt the epochs of another log with the same end."""
        self._entries = list(other.entries)
        self._on_change()

    def on_renamed(self, directory: Path) -> None:
        """Use the directory's new name."""
        self._path = directory / FILE_NAME

    def epoch_at(self, offset: int) -> int:
        """Return the epoch whose range contains the offset; -1 if there is none."""
        i = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[i - 1].epoch if i else UNKNOWN

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEntry:
        """Return the greatest epoch at or below this one, and the offset after its last record.

        Returns (-1, -1) for an epoch newer than all in the log. An epoch older than all in the log
        ends where the oldest begins.
        """
        entries = self._entries
        # The end of an epoch that is not in this log is unknown.
        if epoch == UNKNOWN or not entries or epoch > entries[-1].epoch:
            return EpochEntry(UNKNOWN, UNKNOWN)
        # The latest epoch ends where the log ends.
        if epoch == entries[-1].epoch:
            return EpochEntry(epoch, log_end_offset)
        i = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
        return EpochEntry(entries[i - 1].epoch if i else epoch, entries[i].start_offset)

    def truncate_from_end(self, offset: int) -> None:
        """Remove epochs that begin at or after the offset, the log's new end."""
        kept = [entry for entry in self._entries if entry.start_offset < offset]
        if len(kept) != len(self._entries):
            self._entries = kept
            self._on_change()

    def truncate_from_start(self, offset: int) -> None:
        """Remove epochs that end before the offset; the epoch that contains it now begins there."""
        i = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        if i and (i > 1 or self._entries[0].start_offset < offset):
            self._entries[:i] = [EpochEntry(self._entries[i - 1].epoch, offset)]
            self._on_change()

    def take_unsaved(self) -> Unsaved | None:
        """Return the content for `save`; None if the file contains it durably."""
        if self._version == self._saved_version:
            return None
        return Unsaved(self._version, self.entries)

    def save(self, unsaved: Unsaved) -> None:
        """Write the content, unless a later version has been written. Can run in a thread.

        The content is durable once the directory has been synced; then call `on_saved`.
        """
        with self._writing:
            if self._written_version < unsaved.version:
                temporary = self._path.with_name(self._path.name + ".tmp")
                self._files.write(temporary, encode_entries(unsaved.entries), sync=True)
                self._files.replace(temporary, self._path)
                self._written_version = unsaved.version

    def on_saved(self, unsaved: Unsaved) -> None:
        """Note that this version is durable."""
        self._saved_version = max(self._saved_version, unsaved.version)
