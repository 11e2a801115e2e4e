"""What our ZooKeeper server has decided: the transactions that its journal has on disk.

A transaction that is on disk survives every crash, and no client has seen it before. So it counts
as decided when it is synced, or when a restarted server finds it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from barnabas.cluster.journal_disk import LockedFile
from barnabas.cluster.journal_frames import read_frames
from barnabas.zookeeper.jute import JuteReader
from barnabas.zookeeper.tree import Effect
from simulation.whole.files import SimFiles
from simulation.whole.journals import SimJournals


class Written(NamedTuple):
    """A transaction of the journal."""

    zxid: int
    effects: tuple[Effect, ...]


OnSynced = Callable[[Written], object]


class WatchedJournals(SimJournals):
    """The disk of a server, which reports each transaction that is on it."""

    __slots__ = ("_on_synced",)

    def __init__(self, files: SimFiles, on_synced: OnSynced) -> None:
        super().__init__(files)
        self._on_synced = on_synced

    def open_locked(self, path: Path) -> LockedFile:
        return _WatchedFile(super().open_locked(path), self._on_synced)


class _WatchedFile:
    __slots__ = ("_file", "_on_synced", "_unsynced")

    def __init__(self, file: LockedFile, on_synced: OnSynced) -> None:
        self._file = file
        self._on_synced = on_synced
        self._unsynced = b""

    def read(self) -> bytes:
        self._unsynced = self._file.read()
        return self._unsynced

    def write(self, position: int, data: bytes) -> None:
        self._file.write(position, data)
        self._unsynced += data

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def sync(self) -> None:
        self._file.sync()
        content, self._unsynced = self._unsynced, b""
        for frame in read_frames(content).whole:
            if not frame.is_seal:
                for written in _transactions(frame.payload):
                    self._on_synced(written)

    def close(self) -> None:
        self._file.close()


def _transactions(batch: bytes) -> list[Written]:
    reader = JuteReader(batch)
    reader.i64()
    found = []
    while reader.left:
        zxid, _, count = reader.i64(), reader.i64(), reader.i32()
        found.append(Written(zxid, tuple(_effect(reader) for _ in range(count))))
    return found


def _effect(reader: JuteReader) -> Effect:
    kind, path, data, acl = reader.i32(), reader.string(), reader.buffer(), tuple(reader.acls())
    return Effect(kind, path, data, acl, reader.i64(), reader.i32())
