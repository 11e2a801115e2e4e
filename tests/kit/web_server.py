"""A web server that logs, and the ways in which its log is rotated: real files, every line unique.

It writes to the file that it has open, whatever that is called by now, until it is asked to reload.
"""

from __future__ import annotations

import gzip
import itertools
import shutil
from pathlib import Path
from typing import BinaryIO

_KEPT = 99


class WebServer:
    """The server and its log `access.log` in a directory. Each file begins with `header`."""

    def __init__(self, directory: Path, header: bytes) -> None:
        self.log = directory / "access.log"
        self.written: list[bytes] = []  # every line that was finished
        self._header = header
        self._numbers = itertools.count()
        self._unfinished = b""
        self._is_copying = False
        self._file = self._open()

    @property
    def is_late(self) -> bool:
        """Whether it writes to a file that is not the one at the log's path."""
        if not self.log.exists():
            return True
        return not self.log.samefile(f"/proc/self/fd/{self._file.fileno()}")

    def write(self, lines: int) -> None:
        """Whole lines; of one that is not finished the rest first."""
        self.finish()
        for _ in range(lines):
            self._begin()
            self.finish()

    def write_half_a_line(self) -> None:
        self.finish()
        self._begin()

    def finish(self) -> None:
        if self._unfinished:
            self._file.write(b" end\n")
            self.written.append(self._unfinished + b" end")
            self._unfinished = b""

    def rename(self, *, is_recreated: bool) -> None:
        """logrotate's `create` and `nocreate`; the server notices later, by `reload`."""
        if self._is_copying:
            self.copy_and_truncate()
        if self.log.exists():
            self._shift()
            self.log.rename(self._rotated(1))
        if is_recreated:
            self.log.touch()

    def reload(self) -> None:
        self.finish()
        self._file.close()
        self._file = self._open()

    def copy_and_truncate(self) -> None:
        """Nothing is written between the two steps: that would be lost to everybody."""
        self.finish()
        if not self.is_late:
            if not self._is_copying:
                self._shift()
            shutil.copyfile(self.log, self._rotated(1))
            self._file.truncate(0)
            self._file.write(self._header)
            self._is_copying = False

    def copy_under_way(self) -> None:
        """The first half of a copy, which the next `copy_and_truncate` completes."""
        if not self.is_late and not self._is_copying:
            self._shift()
            content = self.log.read_bytes()
            self._rotated(1).write_bytes(content[: len(content) // 2])
            self._is_copying = True

    def compress(self, number: int) -> None:
        """Not what the server still writes to: that is what `delaycompress` is for."""
        path = self._rotated(number)
        if self._is_copying and number == 1:
            return
        if path.exists() and not path.samefile(f"/proc/self/fd/{self._file.fileno()}"):
            with gzip.open(f"{path}.gz", "wb") as file:
                file.write(path.read_bytes())
            path.unlink()

    def close(self) -> None:
        self._file.close()

    def _begin(self) -> None:
        number = next(self._numbers)
        self._unfinished = b"192.0.2.%d - - line %d" % (number % 7, number)
        self._file.write(self._unfinished)

    def _open(self) -> BinaryIO:
        file = self.log.open("ab", buffering=0)
        if not self.log.stat().st_size:
            file.write(self._header)
        return file

    def _rotated(self, number: int) -> Path:
        return self.log.with_name(f"access.log.{number}")

    def _shift(self) -> None:
        for number in range(_KEPT, 0, -1):
            for end in ("", ".gz"):
                old = self._rotated(number)
                path = old.with_name(old.name + end)
                if path.exists():
                    new = self._rotated(number + 1)
                    path.rename(new.with_name(new.name + end))
