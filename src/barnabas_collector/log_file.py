"""Reads the bytes of a log file, or its text if the file is compressed, and its creation time.

The creation time (birth) distinguishes a file from a later file with the same inode.
"""

from __future__ import annotations

import ctypes
import fcntl
import io
import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO, Final, TypeVar, cast

from barnabas.errors import ConfigError
from barnabas_collector.file_holes import START, data_start, next_data
from barnabas_collector.fingerprint import BEGINNING_BYTES
from barnabas_collector.line_cutter import MAX_LINE_BYTES
from barnabas_collector.packed_text import MAGIC_BYTES, DamagedText, PackedText, unpacking
from barnabas_collector.text_extent import DAMAGED, INCOMPLETE, Extent, extent_of

T = TypeVar("T")
Inode = tuple[int, int]
"""Device and inode."""

_MISSING: Final = Extent(-3)
# statx(2), in <linux/stat.h>:
_AT_EMPTY_PATH: Final = 0x1000
_STATX_BTIME: Final = 0x800
_STATX_BYTES: Final = 256
_MASK: Final = Struct("=I")
_BIRTH: Final = Struct("=qI")  # seconds, nanoseconds
_BIRTH_AT: Final = 80


class LogFile:
    """Holds a file open even if it is renamed. Call `close` at the end."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises `ConfigError` with the reason if it cannot be read."""
        # Open the file unbuffered, because a buffer could return bytes that are no longer in the
        # file.
        self.path = path  # the path by which the file was opened
        self._file = open_log(path)
        status = os.fstat(self._file.fileno())
        self.device, self.inode = status.st_dev, status.st_ino
        self.born_ns = _born_ns(self._file.fileno())
        self._unpack = unpacking(os.pread(self._file.fileno(), MAGIC_BYTES, 0))
        # Read the wall clock only when opening the file, so that later changes to the clock have no
        # effect. A file with a future time counts as just written.
        age_s = max(0.0, time.time() - status.st_mtime)
        self._changed_at_s = time.monotonic() - age_s
        self._size_bytes = status.st_size

    @property
    def is_compressed(self) -> bool:
        return self._unpack is not None

    @property
    def text(self) -> BinaryIO:
        """Open the text for reading from any position.

        Raises EOFError if a compressed file is incomplete, and `DamagedText` if it is damaged.
        """
        if self._unpack is None:
            return self._file
        return cast(BinaryIO, PackedText(self._file, self._unpack))

    def size_bytes(self) -> int:
        """Return the current size of the file, compressed or not."""
        size_bytes = os.fstat(self._file.fileno()).st_size
        if size_bytes != self._size_bytes:
            self._size_bytes, self._changed_at_s = size_bytes, time.monotonic()
        return size_bytes

    def quiet_s(self) -> float:
        """Return the time since the last write, as observed by the calls of `size_bytes`."""
        return time.monotonic() - self._changed_at_s

    def beginning(self) -> bytes:
        """Return the beginning of the text, without adjacent holes. Return b"" if a compressed file
        is incomplete or damaged."""
        if self._unpack is not None:
            return self._packed_beginning()
        fd = self._file.fileno()
        beginning = os.pread(fd, BEGINNING_BYTES, 0)
        if beginning.startswith(START):
            beginning = os.pread(fd, BEGINNING_BYTES, data_start(fd))
        return beginning.rstrip(b"\0")  # NULs at the end may be a hole that will be filled

    def _packed_beginning(self) -> bytes:
        try:
            text = self.text
            beginning = text.read(BEGINNING_BYTES)
            while beginning.startswith(START):
                rest = beginning.lstrip(b"\0")
                more = text.read(BEGINNING_BYTES - len(rest))
                if not more:
                    return rest
                beginning = rest + more
        except (EOFError, DamagedText):
            return b""
        return beginning.rstrip(b"\0")

    def begins(self, beginning: bytes) -> bool:
        """Return whether the file still has this beginning.

        This is true unless the file has been truncated. A compressed file is never truncated.
        """
        return self.is_compressed or self.beginning().startswith(beginning)

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Read bytes of an uncompressed file."""
        return os.pread(self._file.fileno(), size_bytes, position)

    def next_data(self, position: int) -> int:
        return next_data(self._file.fileno(), position)

    def ends(self, extent: Extent) -> bool:
        """Return whether the text at the extent's last bytes matches the extent."""
        if self.is_compressed:
            # Compare only the size and the tail, because the checksum may be unknown.
            return self._unpacked_extent(extent.size_bytes)[::2] == extent[::2]
        return extent.is_end_in(self)

    def holds(self, extent: Extent) -> bool:
        """Return whether the text begins with the whole extent."""
        # This extent was saved by a version that did not hash everything that was sent, so only the
        # tail can be compared.
        if extent.checksum is None:
            return self.ends(extent)
        if self.is_compressed:
            return self._unpacked_extent(extent.size_bytes) == extent
        return extent.is_end_in(self) and Extent().grown(self, extent.size_bytes) == extent

    def whole(self) -> Extent:
        """Return the extent of the text up to its current end. Only the tail is hashed."""
        if self.is_compressed:
            return self._unpacked_extent(None)._replace(checksum=None)
        return Extent(checksum=None).grown(self, self.size_bytes())

    def _unpacked_extent(self, size_bytes: int | None) -> Extent:
        try:
            return extent_of(self.text.read, size_bytes)
        except EOFError:
            return Extent(INCOMPLETE)
        except DamagedText:
            return Extent(DAMAGED)

    def check(self) -> None:
        """Raise `ConfigError` if the file is compressed and no part of it can be decompressed."""
        try:
            self.text.read(1)
        except (EOFError, DamagedText) as error:
            raise ConfigError(f"cannot read {self.path}: {error}") from None

    def end_of_lines(self) -> int:
        """Return the position after the last line feed of an uncompressed file, or the end of the
        file if its last line is too long to be sent whole."""
        size_bytes = self.size_bytes()
        start = max(0, size_bytes - MAX_LINE_BYTES)
        feed = self.read_at(start, size_bytes - start).rfind(b"\n")
        return start + feed + 1 if feed >= 0 or not start else size_bytes

    def has_no_writer(self) -> bool:
        """Return True only if it is certain that no process has the file open for writing.

        A read lease proves this, because Linux grants one only in this case, and only to the file's
        owner.
        """
        try:
            fd = self._file.fileno()
            # If a process opens the file in the meantime, the kernel sends this signal, which is
            # ignored by default.
            fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except (AttributeError, OSError):  # not Linux; a writer; not the owner; unsupported
            return False
        return True

    def close(self) -> None:
        self._file.close()


def open_log(path: Path) -> BinaryIO:
    """Open a file for reading bytes. Raises `ConfigError` with the reason if it is unreadable."""
    try:
        file = io.FileIO(path, opener=_open_at_once)
    except OSError as error:
        raise unreadable(path, error) from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ConfigError(f"cannot read {path}: it is not a regular file; name `-` to read a pipe")
    return file


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without blocking. A pipe without a writer would otherwise block the collection of
    all logs.
    """
    return os.open(path, flags | os.O_NONBLOCK)


def unreadable(path: Path, error: OSError) -> ConfigError:
    """Return the error with a human-readable reason."""
    match error:
        case FileNotFoundError():
            why = "there is no such file"
        case PermissionError():
            why = "you have no permission to read it"
        case IsADirectoryError():
            why = "it is a directory; name a file in it"
        case _:
            why = error.strerror or str(error)
    return ConfigError(f"cannot read {path}: {why}")


def _born_ns(fd: int) -> int:
    """Return the time when an open file was created, or 0 if the system does not record it."""
    if _STATX is None:
        return int(getattr(os.fstat(fd), "st_birthtime", 0) * 1_000_000_000)
    found = ctypes.create_string_buffer(_STATX_BYTES)
    if _STATX(fd, b"", _AT_EMPTY_PATH, _STATX_BTIME, found):
        return 0
    (mask,) = _MASK.unpack_from(found, 0)
    # The mask shows the fields that this file system fills in. NFS and some FUSE file systems have
    # no birth time.
    if not mask & _STATX_BTIME:
        return 0
    seconds, nanoseconds = _BIRTH.unpack_from(found, _BIRTH_AT)
    return int(seconds * 1_000_000_000 + nanoseconds)


def _statx() -> Any:
    """Return the C library's statx(2), which not every Python version provides."""
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), "statx", None)


_STATX: Final = _statx()


class FileText:
    """Gives access to the text of a found file, which is reopened if necessary. Implements `Text`.

    `is_fixed` means that the file no longer changes, so its answers are cached.
    """

    def __init__(
        self, path: Path, inode: Inode, held: Mapping[Inode, LogFile], *, is_fixed: bool
    ) -> None:
        self.path = path
        self._inode = inode
        self._held = held
        self._answers: dict[tuple[str, Extent], object] | None = {} if is_fixed else None

    def ends(self, extent: Extent) -> bool:
        return self._answer("ends", extent, lambda file: file.ends(extent), default=False)

    def holds(self, extent: Extent) -> bool:
        return self._answer("holds", extent, lambda file: file.holds(extent), default=False)

    def whole(self) -> Extent:
        return self._answer("whole", _MISSING, LogFile.whole, default=_MISSING)

    def _answer(self, what: str, extent: Extent, ask: Callable[[LogFile], T], *, default: T) -> T:
        if self._answers is not None and (what, extent) in self._answers:
            return cast(T, self._answers[what, extent])
        with self._open() as file:
            if file is None:
                # Do not cache this answer, because the next look corrects the path if the file was
                # renamed.
                return default
            answer = ask(file)
        if self._answers is not None:
            self._answers[what, extent] = answer
        return answer

    @contextmanager
    def _open(self) -> Iterator[LogFile | None]:
        """Yield the open file, or None if the file was removed or replaced after it was found."""
        if (held := self._held.get(self._inode)) is not None:
            yield held
            return
        try:
            file = LogFile(self.path)
        except ConfigError:
            yield None
            return
        try:
            yield file if (file.device, file.inode) == self._inode else None
        finally:
            file.close()
