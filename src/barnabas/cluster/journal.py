"""The embedded store's two files, and everything that is done to them.

    barnabas-metadata.journal      frames, one per commit, appended and forced to disk
    barnabas-metadata.snapshot     one frame: the whole tree as of some commit

    frame:  u32 length of the payload | u32 CRC-32 of the payload | payload        (big-endian)

Invariant: what `sync` has returned for is read back by the next `open`, a frame whole or not at
all. A crash may leave a torn frame at the journal's end: it was never acknowledged, and is cut.
The snapshot replaces its predecessor atomically and before the journal is emptied, so for a moment
the journal holds frames that the snapshot covers: whoever replays it skips those.

They are plain files in the first log directory, because a real Kafka refuses to start on a
directory that it does not know and ignores such a file.

Whoever opens them for writing holds a lock on the journal, so two processes never write one tree,
whatever they know of log directories. Reading needs no lock and may go on beside a writer.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from struct import Struct

from barnabas.errors import ConfigError, CorruptData

JOURNAL_NAME = "barnabas-metadata.journal"
SNAPSHOT_NAME = "barnabas-metadata.snapshot"

_HEADER = Struct(">II")


class Journal:
    """The files of one store, open for appending."""

    __slots__ = ("_directory", "_fd", "cut_bytes", "frames", "size_bytes", "snapshot")

    def __init__(self, directory: Path) -> None:
        """Lock and read both files.

        Raises OSError, ConfigError if another process has them, and CorruptData for a snapshot
        that is damaged.
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
        """Force what was appended to disk. Releases the GIL, so it can be a thread's work."""
        os.fsync(self._fd)

    def replace(self, snapshot: bytes) -> None:
        """Put the whole tree in place of the journal."""
        temporary = self._directory / f"{SNAPSHOT_NAME}.tmp"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            _pwrite_all(fd, _frame(snapshot), 0)
            os.fsync(fd)
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

    What a writer is about to append counts as not yet there. Raises ConfigError where there is no
    store, OSError, and CorruptData for a snapshot that is damaged.
    """
    # The journal first: it is emptied only when a snapshot has all of it, so that one is found.
    try:
        content = (directory / JOURNAL_NAME).read_bytes()
    except FileNotFoundError:
        raise ConfigError(
            f"{directory} has no {JOURNAL_NAME}: it is not the first log directory of a broker "
            "that keeps its metadata itself"
        ) from None
    snapshot = _read_snapshot(directory)
    return snapshot, _split(content)[0]


def _lock(fd: int, directory: Path) -> None:
    """Taken per open file: it also keeps two stores of one process apart, and ends with it."""
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
        # It was complete before it got its name, so this is no crash but a damaged disk.
        raise CorruptData(f"{path} is damaged; restore it from a backup")
    return frames[0]


def _frame(payload: bytes) -> bytes:
    return _HEADER.pack(len(payload), zlib.crc32(payload)) + payload


def _split(content: bytes) -> tuple[list[bytes], int]:
    """The payloads up to the first frame that is torn, and the position where that one starts."""
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
        os.fsync(fd)
    finally:
        os.close(fd)
