"""Disks and batches for the tests of the log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from barnabas.config import LogConfig
from barnabas.records.batch import TRANSACTIONAL
from barnabas.records.crc32c import crc32c
from barnabas.records.record import BatchBuilder, Record, iterate_records
from barnabas.storage.append_result import AppendResult
from barnabas.storage.files import Bytes, File, OsFiles
from barnabas.storage.loading import Start
from barnabas.storage.log import Log
from barnabas.storage.recovery import open_log
from barnabas.types import TopicPartition

NAME = TopicPartition("t", 0)
T0 = 1700000000000

CLEAN = Start(is_clean=True)
CRASHED = Start(is_clean=False)


def batch(
    count: int = 1,
    size: int = 10,
    *,
    timestamp: int = T0,
    step_ms: int = 0,
    producer: tuple[int, int, int] | None = None,
    codec: int = 0,
    is_transactional: bool = False,
) -> bytearray:
    """What a client sends: `count` records of `size` bytes; producer is (id, epoch, sequence)."""
    builder = BatchBuilder(codec, *(producer or (-1, -1, -1)))
    for i in range(count):
        builder.append(timestamp + i * step_ms, None, bytes(size))
    raw = bytearray(builder.build())
    if is_transactional:
        make_transactional(raw)
    return raw


def make_transactional(raw: bytearray) -> None:
    """Mark a batch as part of a transaction."""
    raw[22] |= TRANSACTIONAL
    raw[17:21] = crc32c(memoryview(raw)[21:]).to_bytes(4, "big")


def append(log: Log, records: bytearray, *, epoch: int = 0, now_ms: int = T0) -> AppendResult:
    """One batch in one turn of the event loop: staged, then written."""
    result = log.append(memoryview(records), epoch, now_ms)
    log.write_staged()
    return result


def open_at(
    directory: Path,
    config: LogConfig | None = None,
    start: Start = CLEAN,
    files: OsFiles | None = None,
) -> Log:
    return open_log(files or QuickFiles(), directory, NAME, config or LogConfig(), start)


def read(log: Log, offset: int, max_bytes: int = 1 << 30, end_offset: int | None = None) -> bytes:
    """The bytes that a fetch would send; the slices are given back."""
    end = log.log_end_offset if end_offset is None else end_offset
    slices = log.read(offset, max_bytes, end)
    raw = b"".join(each.read() for each in slices)
    for each in slices:
        each.release()
    return raw


def records(log: Log) -> list[Record]:
    return list(iterate_records(read(log, log.log_start_offset)))


class QuickFiles(OsFiles):
    """A disk on which nothing needs to be waited for."""

    __slots__ = ()

    def sync(self, path: Path) -> None:
        path.stat()  # FileNotFoundError, as the real one

    def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        super().write(path, data)


class WatchedFiles(QuickFiles):
    """Counts what is read and synced, and breaks on request."""

    __slots__ = ("bytes_read", "room_bytes", "synced", "unsyncable", "written")

    def __init__(self) -> None:
        self.bytes_read: dict[str, int] = {}
        self.written: list[tuple[str, int, int]] = []
        """Name, position and size of each write to an open file."""
        self.synced: list[str] = []
        self.room_bytes: int | None = None
        """How much more an open file may take before the disk is full; None: it never is."""
        self.unsyncable = False

    def open(self, path: Path, *, create: bool = False) -> File:
        return WatchedFile(self, path.name, super().open(path, create=create))

    def read(self, path: Path) -> bytes:
        data = super().read(path)
        self._count(path.name, len(data))
        return data

    def sync(self, path: Path) -> None:
        if self.unsyncable:
            raise OSError(5, "Input/output error")
        super().sync(path)
        self.synced.append(path.name)

    def _count(self, name: str, size: int) -> None:
        self.bytes_read[name] = self.bytes_read.get(name, 0) + size


class WatchedFile:
    """A file of the disk above."""

    def __init__(self, disk: WatchedFiles, name: str, file: File) -> None:
        self._disk = disk
        self._name = name
        self._file = file
        self.acquire, self.release, self.fileno = file.acquire, file.release, file.fileno
        self.truncate, self.size = file.truncate, file.size
        self.is_cached, self.warm = file.is_cached, file.warm

    def pread(self, size: int, position: int) -> bytes:
        data = self._file.pread(size, position)
        self._disk._count(self._name, len(data))
        return data

    def write(self, position: int, data: Bytes) -> None:
        room = self._disk.room_bytes
        if room is not None and room < len(data):
            self._file.write(position, memoryview(data)[:room])
            raise OSError(28, "No space left on device")
        self._file.write(position, data)
        self._disk.written.append((self._name, position, len(data)))

    def writev(self, position: int, buffers: Sequence[Bytes]) -> None:
        self.write(position, b"".join(buffers))
