"""A log's file, held open: its bytes, or the text of a file compressed by gzip."""

from __future__ import annotations

import fcntl
import gzip
import os
import signal
import time
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from barnabas.collector.fingerprint import BEGINNING_BYTES
from barnabas.errors import ConfigError

DAMAGED = (gzip.BadGzipFile, zlib.error)
_GZIP = b"\x1f\x8b\x08"


class LogFile:
    """Holds a file open, even if it is renamed; `close` it."""

    def __init__(self, path: Path) -> None:
        """Open it. Raises `ConfigError` with the reason if it cannot be read."""
        # Unbuffered: a buffer could return bytes that the file no longer has.
        self.path = path  # by which it was opened
        self._file = open_log(path)
        status = os.fstat(self._file.fileno())
        self.device, self.inode = status.st_dev, status.st_ino
        self.is_compressed = os.pread(self._file.fileno(), len(_GZIP), 0) == _GZIP
        age_s = max(0.0, time.time() - status.st_mtime)
        self._changed_at_s = time.monotonic() - age_s
        self._size_bytes = status.st_size

    @property
    def text(self) -> BinaryIO:
        """The text, for reading from any position. Raises EOFError while a compressed file is
        incomplete."""
        if not self.is_compressed:
            return self._file
        self._file.seek(0)
        return cast(BinaryIO, gzip.GzipFile(fileobj=self._file))

    def size_bytes(self) -> int:
        """The present size of the file, compressed or not."""
        size_bytes = os.fstat(self._file.fileno()).st_size
        if size_bytes != self._size_bytes:
            self._size_bytes, self._changed_at_s = size_bytes, time.monotonic()
        return size_bytes

    def quiet_s(self) -> float:
        """How long nothing was written, as far as `size_bytes` has shown."""
        return time.monotonic() - self._changed_at_s

    def beginning(self) -> bytes:
        """The beginning of the text; b"" for a compressed file that is incomplete or damaged."""
        if not self.is_compressed:
            return os.pread(self._file.fileno(), BEGINNING_BYTES, 0)
        try:
            return self.text.read(BEGINNING_BYTES)
        except (EOFError, *DAMAGED):
            return b""

    def begins(self, beginning: bytes) -> bool:
        """Whether it still begins so: it was not truncated, as a compressed file never is."""
        return self.is_compressed or self.beginning().startswith(beginning)

    def check(self) -> None:
        """Raises `ConfigError` if it is compressed and nothing of it can be decompressed."""
        try:
            self.text.read(1)
        except (EOFError, *DAMAGED) as error:
            raise ConfigError(f"cannot read {self.path}: {error}") from None

    def has_no_writer(self) -> bool:
        """Whether no process certainly has the file open for writing.

        A lease proves it: Linux grants a read lease only then, and only to the file's owner.
        """
        try:
            fd = self._file.fileno()
            # A process that opens the file meanwhile sends us a signal, one that is ignored.
            fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except (AttributeError, OSError):  # not on Linux; a writer, not ours, or no leases here
            return False
        return True

    def close(self) -> None:
        self._file.close()


def open_log(path: Path) -> BinaryIO:
    """The file, for reading its bytes. Raises `ConfigError` with the reason if unreadable."""
    try:
        return path.open("rb", buffering=0)
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: OSError) -> ConfigError:
    """The error with a readable reason."""
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
