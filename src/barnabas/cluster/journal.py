"""The embedded store's journal and snapshot files: reading, appending, replacing.

    barnabas-metadata.journal      frames, one per commit, appended and forced to disk
    barnabas-metadata.snapshot     one frame: the whole tree as of some commit

    frame:  u32 length of the payload | u32 CRC-32 of the payload | payload        (big-endian)

Invariant: frames appended before a `sync` that returned are read back by the next `open`, whole or
not at all. A crash may leave a torn frame at the journal's end: it was never acknowledged, and is
cut off. The snapshot replaces its predecessor atomically and before the journal is emptied, so
for a moment the journal holds frames that the snapshot covers: a replay skips those.

They are plain files in the first log directory, because a real Kafka refuses to start on a
directory that it does not know and ignores such a file.

A writer holds a lock on the journal, so two processes never write one tree, regardless of log
directories. Reading needs no lock and may go on beside a writer.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from struct import Struct

from barnabas.disk_sync import sync_descriptor
from barnabas.errors import ConfigError, CorruptData

JOURNAL_NAME = "barnabas-metadata.journal"
SNAPSHOT_NAME = "barnabas-metadata.snapshot"

_HEADER = Struct(">II")


class Journal:
    """The files of one store, open for appending."""

    __slots__ = ("_directory", "_fd", "cut_bytes", "frames", "size_bytes", "snapshot")

    def __init__(self, directory: Path) -> None:
        """Lock and read both files.

        Raises OSError, ConfigError if another process has them, and CorruptData for a damaged
        snapshot.
        """
        self._directory = directory
        self._fd = os.open(directory / JOURNAL_NAME, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(self._fd, directory)
            (directory / f"{SNAPSHOT_NAME}.tmp").unlink(missing_ok=True)
            content = _read_all(self._fd)
            self.snapshot = _read_snapshot(directory)
            self.frames, self.size_bytes = _split(content)
            self.cut_bytes = len(content) - self.size_bytes
            if self.cut_bytes:
                os.ftruncate(self._fd, self.size_bytes)
            if not content:
                _sync_directory(directory)  # the file may be new
        except BaseException:
            os.close(self._fd)
            raise

    def append(self, payload: bytes) -> None:
        """Add a frame; it is on disk once a `sync` that begins later has returned."""
        frame = _frame(payload)
        _pwrite_all(self._fd, frame, self.size_bytes)
        self.size_bytes += len(frame)

    def sync(self) -> None:
        """Force appended frames to disk. Releases the GIL, so it suits a thread."""
        sync_descriptor(self._fd)

    def replace(self, snapshot: bytes) -> None:
        """Replace the journal by a snapshot of the whole tree."""
        temporary = self._directory / f"{SNAPSHOT_NAME}.tmp"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            _pwrite_all(fd, _frame(snapshot), 0)
            sync_descriptor(fd)
        finally:
            os.close(fd)
        temporary.replace(self._directory / SNAPSHOT_NAME)
        _sync_directory(self._directory)
        os.ftruncate(self._fd, 0)
        self.size_bytes = 0

    def close(self) -> None:
        os.close(self._fd)


def read_files(directory: Path) -> tuple[bytes | None, list[bytes]]:
    """The snapshot and the frames of a store that may be running; nothing is changed or locked.

    A frame that a writer is appending is ignored. Raises ConfigError where there is no store,
    OSError, and CorruptData for a damaged snapshot.
    """
    # The journal first: it is emptied only when a snapshot has all of it, so that one is found.
    try:
        content = (directory / JOURNAL_NAME).read_bytes()
    except FileNotFoundError:
        raise ConfigError(
            f"{directory} has no {JOURNAL_NAME}: it is not the first log directory of a broker "
            "with an embedded metadata store"
        ) from None
    snapshot = _read_snapshot(directory)
    return snapshot, _split(content)[0]


def _lock(fd: int, directory: Path) -> None:
    """Lock per open file, which also excludes a second store in one process."""
    import fcntl  # not on Windows

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigError(
            f"the metadata in {directory} is in use: stop the broker that runs on it, or read it "
            "without writing"
        ) from None


def _read_snapshot(directory: Path) -> bytes | None:
    path = directory / SNAPSHOT_NAME
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    frames, size_bytes = _split(content)
    if len(frames) != 1 or size_bytes != len(content):
        # It was complete before it got its name, so the disk is damaged.
        raise CorruptData(f"{path} is damaged; restore it from a backup")
    return frames[0]


def _frame(payload: bytes) -> bytes:
    return _HEADER.pack(len(payload), zlib.crc32(payload)) + payload


def _split(content: bytes) -> tuple[list[bytes], int]:
    """The payloads up to the first torn frame, and the position where that one starts."""
    payloads: list[bytes] = []
    position = 0
    while len(content) - position >= _HEADER.size:
        length, crc = _HEADER.unpack_from(content, position)
        start = position + _HEADER.size
        payload = content[start : start + length]
        if not length or len(payload) < length or zlib.crc32(payload) != crc:
            break
        payloads.append(payload)
        position = start + length
    return payloads, position


def _read_all(fd: int) -> bytes:
    size_bytes = os.fstat(fd).st_size
    parts = []
    position = 0
    while position < size_bytes:
        part = os.pread(fd, size_bytes - position, position)
        if not part:
            break
        parts.append(part)
        position += len(part)
    return b"".join(parts)


def _pwrite_all(fd: int, data: bytes, position: int) -> None:
    """Write all of it, though one call may write less."""
    left = memoryview(data)
    while left:
        written = os.pwrite(fd, left, position)
        position += written
        left = left[written:]


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY)
    try:
        sync_descriptor(fd)
    finally:
        os.close(fd)
