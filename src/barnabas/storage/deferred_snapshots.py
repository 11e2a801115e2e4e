"""Snapshots of many producers, written in a thread so that the loop does not pause.

A snapshot is written as of the time that it was due. It gets its name when it is complete, and
never once it is void, which may happen at any time: its offset may have been truncated, and the
records written there next are another history. Until it exists, or if the broker dies before, the
previous one and the log have the same state.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock

from barnabas.storage.durability import Durability
from barnabas.storage.files import Files
from barnabas.storage.leftovers import TEMPORARY
from barnabas.storage.producers import Producers
from barnabas.storage.snapshot import encode_states, snapshot_path, write_snapshot

WRITTEN_AT_ONCE = 10_000
"""How many producers take two milliseconds."""


class DeferredSnapshots:
    """The newest snapshot of one log, while it is not written."""

    __slots__ = ("_directory", "_due", "_durability", "_files")

    def __init__(self, files: Files, directory: Path, durability: Durability) -> None:
        self._files = files
        self._directory = directory
        self._durability = durability
        self._due: _Due | None = None

    def take(self, offset: int, producers: Producers, *, may_wait: bool) -> None:
        """Write the producers as of this offset, now, or when `writing` is called. OSError."""
        self.void()
        if may_wait and len(producers) > WRITTEN_AT_ONCE:
            self._due = _Due(snapshot_path(self._directory, offset), offset, producers.states())
        else:
            write_snapshot(self._files, self._directory, offset, producers)
            self._durability.snapshot_written(offset)

    def moved(self, directory: Path) -> None:
        """The directory has another name now; nothing may be due."""
        self._directory = directory

    @property
    def is_due(self) -> bool:
        """Whether one is not yet written."""
        return self._due is not None and not self._due.is_written

    def void(self) -> None:
        """Drop what is not written yet."""
        if self._due is not None:
            with self._due.lock:
                self._due.is_void = True
            self._due = None

    def writing(self) -> list[Callable[[], None]]:
        """The call that writes the one that is due, if one is; it suits a thread. OSError."""
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
            with due.lock:
                if due.is_void:
                    self._files.remove(temporary)
                else:
                    self._files.replace(temporary, due.path)
                    self._durability.snapshot_written(due.offset)
                    due.is_written = True
        except FileNotFoundError:
            return  # the log was deleted in the meantime


class _Due:
    __slots__ = ("is_begun", "is_void", "is_written", "lock", "offset", "path", "states")

    def __init__(self, path: Path, offset: int, states: list[bytes]) -> None:
        self.path = path
        self.offset = offset
        self.states = states
        self.lock = Lock()
        self.is_begun = self.is_void = self.is_written = False
