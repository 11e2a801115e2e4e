"""Maintains the producer state of a log and the snapshots of that state.

`producers` detects duplicate batches, and this module stores the state on disk. This module also
tracks the offset of the newest snapshot and the end offset of the last batch from a producer with
an id. If the log is truncated above that end offset, the state does not change.

A snapshot of many producers is written in a thread, so that it does not block the event loop. It
contains the state from the time at which it became due. When it is complete, it is renamed to its
final name, unless the log has been truncated below its offset in the meantime. Until it is renamed,
or if the broker dies, the same state can be restored from the previous snapshot and the log.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock

from barnabas.storage.durability import Durability
from barnabas.storage.files import Files
from barnabas.storage.leftovers import TEMPORARY
from barnabas.storage.loaded_log import LoadedLog
from barnabas.storage.producers import Producers
from barnabas.storage.snapshot import encode_states, snapshot_path, write_snapshot

WRITTEN_AT_ONCE = 10_000
"""This number of producers can be written in about two milliseconds."""


class ProducerState:
    """Tracks the producers of a log and the newest snapshot of their state."""

    __slots__ = (
        "_directory",
        "_due",
        "_durability",
        "_files",
        "_snapshot_offset",
        "batches_end",
        "producers",
    )

    def __init__(
        self, files: Files, directory: Path, durability: Durability, loaded: LoadedLog
    ) -> None:
        self.producers = loaded.producers
        self.batches_end = loaded.producers_end
        """The offset after the last batch from a producer with an id, or 0 if there is none."""
        self._files = files
        self._directory = directory
        self._durability = durability
        self._snapshot_offset = loaded.snapshot_offset
        self._due: _Due | None = None

    # --- the log changes -------------------------------------------------------------------------

    def clear(self) -> None:
        """Clear the state, because the log has been emptied and restarted at another offset."""
        self.producers, self.batches_end = Producers(), 0

    def end_at(self, offset: int) -> bool:
        """Record that the log was truncated to this offset.

        Returns whether the truncation has removed batches from producers with an id. If so, the
        producers at the new log end must be found.
        """
        if offset >= self.batches_end:
            return False
        self.batches_end = offset
        return True

    def take_over(self, other: ProducerState) -> None:
        """Copy the producers of a log with the same batches, which this log replaces."""
        self.producers, self.batches_end = other.producers, other.batches_end
        if len(self.producers):
            # write the next snapshot, because the last one may lack producers
            self._snapshot_offset = -1

    def on_renamed(self, directory: Path) -> None:
        """Switch to the new name of the directory. No snapshot may be due at this time."""
        self._directory = directory

    # --- snapshots -------------------------------------------------------------------------------

    def take_snapshot(self, offset: int, *, may_wait: bool = False) -> None:
        """Take a snapshot at `offset`, the log end. Either this call or `writing` writes it to
        disk.

        Raises OSError. Unless `may_wait` is set, an older snapshot that has not been written yet is
        dropped.
        """
        is_unwritten = self._due is not None and not self._due.is_written
        if self._snapshot_offset >= offset and (may_wait or not is_unwritten):
            return
        self.void_snapshot()
        # A large snapshot can be written later, because it only makes recovery faster.
        if may_wait and len(self.producers) > WRITTEN_AT_ONCE:
            path = snapshot_path(self._directory, offset)
            self._due = _Due(path, offset, self.producers.states())
        else:
            write_snapshot(self._files, self._directory, offset, self.producers)
            self._durability.on_snapshot_written(offset)
        self._snapshot_offset = offset

    def void_snapshot(self) -> None:
        """Drop any snapshot that has not been written yet, before the log is truncated."""
        if self._due is not None:
            with self._due.lock:
                self._due.is_void = True
            self._due = None

    def keep_snapshots(self, newest_offset: int) -> None:
        """Update the offset of the newest snapshot after a truncation has removed snapshots."""
        self._snapshot_offset = newest_offset

    def writing(self) -> list[Callable[[], None]]:
        """Return a list that contains a function to write the snapshot that is due, or [] if none
        is due.

        The function may run in a thread, and may raise OSError.
        """
        due = self._due
        if due is None or due.is_begun:
            return []
        due.is_begun = True
        return [lambda: self._write(due)]

    def _write(self, due: _Due) -> None:
        temporary = due.path.with_name(due.path.name + TEMPORARY)
        try:
            self._files.write(temporary, encode_states(due.states), sync=True)
            due.states = []
            # Without the lock, the event loop could truncate the log between this check and the
            # rename.
            with due.lock:
                if due.is_void:
                    self._files.remove(temporary)
                else:
                    self._files.replace(temporary, due.path)
                    self._durability.on_snapshot_written(due.offset)
                    due.is_written = True
        except FileNotFoundError:
            return  # the log has been deleted


class _Due:
    __slots__ = ("is_begun", "is_void", "is_written", "lock", "offset", "path", "states")

    def __init__(self, path: Path, offset: int, states: list[bytes]) -> None:
        self.path = path
        self.offset = offset
        self.states = states
        self.lock = Lock()
        self.is_begun = self.is_void = self.is_written = False
