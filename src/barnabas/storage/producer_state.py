"""Maintains a log's producer state and its snapshots.

`producers` detects duplicate batches; this module stores the producers' state on disk. It tracks
the offset of the newest snapshot, and the end offset of the last batch with a producer. A
truncation above that offset does not change the state.

A snapshot of many producers is written in a thread, so that it does not block the event loop. It
contains the state at the time it became due. It is renamed to its final name once complete, unless
a truncation below its offset has made it invalid. Until then, or if the broker dies, the same state
can be restored from the previous snapshot and the log.
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
"""The number of producers that can be written in two milliseconds."""


class ProducerState:
    """A log's producers, and their newest snapshot."""

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
        """The offset after the last batch with a producer, or 0."""
        self._files = files
        self._directory = directory
        self._durability = durability
        self._snapshot_offset = loaded.snapshot_offset
        self._due: _Due | None = None

    # --- the log changes -------------------------------------------------------------------------

    def clear(self) -> None:
        """Forget everything: the log is empty and begins at another offset."""
        self.producers, self.batches_end = Producers(), 0

    def end_at(self, offset: int) -> bool:
        """Note that the log was truncated to this offset.

        Returns whether batches with a producer were removed, in which case the producers at the new
        end must be found.
        """
        if offset >= self.batches_end:
            return False
        self.batches_end = offset
        return True

    def take_over(self, other: ProducerState) -> None:
        """Adopt the producers of a log with the same batches, replaced by this log."""
        self.producers, self.batches_end = other.producers, other.batches_end
        if len(self.producers):
            # do not skip the next snapshot: the last one may lack producers
            self._snapshot_offset = -1

    def on_renamed(self, directory: Path) -> None:
        """Use the directory's new name. No snapshot may be due."""
        self._directory = directory

    # --- snapshots -------------------------------------------------------------------------------

    def take_snapshot(self, offset: int, *, may_wait: bool = False) -> None:
        """Take a snapshot at the log end, `offset`. It is written at once or by `writing`.

        Raises OSError. Unless it `may_wait`, it replaces any unwritten snapshot.
        """
        is_unwritten = self._due is not None and not self._due.is_written
        if self._snapshot_offset >= offset and (may_wait or not is_unwritten):
            return
        self.void_snapshot()
        # A large snapshot can be written later: it only speeds up recovery.
        if may_wait and len(self.producers) > WRITTEN_AT_ONCE:
            path = snapshot_path(self._directory, offset)
            self._due = _Due(path, offset, self.producers.states())
        else:
            write_snapshot(self._files, self._directory, offset, self.producers)
            self._durability.on_snapshot_written(offset)
        self._snapshot_offset = offset

    def void_snapshot(self) -> None:
        """Drop any unwritten snapshot before the log is truncated."""
        if self._due is not None:
            with self._due.lock:
                self._due.is_void = True
            self._due = None

    def keep_snapshots(self, newest_offset: int) -> None:
        """Note the newest snapshot that remains after a truncation."""
        self._snapshot_offset = newest_offset

    def writing(self) -> list[Callable[[], None]]:
        """Return a list with a function that writes the due snapshot, or [] if none is due.

        The function can run in a thread. It raises OSError.
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
            # Without the lock, the loop could truncate the log between the check and the rename.
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
