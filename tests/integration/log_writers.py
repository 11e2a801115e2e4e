"""A program that writes a log to a disk that may be full, and the ways in which it is rotated.

A full disk takes the beginning of a line. The program then either writes the rest later or goes on
with its next line, as real ones do; both end up in the file, and so the bytes of each file count.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import itertools
import os
import random
import time
from collections import Counter
from pathlib import Path

MOST_ROTATED = 99
_TIME = "%Y-%m-%dT%H:%M:%S"


class LogWriter:
    """Writes numbered lines to one log."""

    def __init__(self, log: Path, chance: random.Random, *, is_timed: bool) -> None:
        self.log = log
        self.refused = 0  # writes that the disk did not take at all
        self._chance = chance
        self._is_timed = is_timed
        self._numbers = itertools.count()
        self._files: list[bytearray] = []  # the bytes of each file, also of truncated ones
        self._rest = b""
        self._fd = self._open()

    def write(self, lines: int) -> None:
        for _ in range(lines):
            if not self._rest:
                time_shown = time.strftime(_TIME) if self._is_timed else "-"
                text = f"{self.log.stem} {time_shown} line {next(self._numbers)} "
                self._rest = f"{text}{'x' * self._chance.randrange(200)}\n".encode()
            try:
                taken = os.write(self._fd, self._rest)
            except OSError as error:
                assert error.errno == errno.ENOSPC, error
                self.refused += 1
                return
            self._files[-1] += self._rest[:taken]
            is_given_up = self._chance.random() < 0.5
            self._rest = b"" if is_given_up else self._rest[taken:]

    def rotate(self) -> None:
        """Rename and create, at once or late, or copy and truncate; compress the one before the
        last (logrotate's `delaycompress`)."""
        if self._chance.random() < 0.5:
            self._shift()
            self.log.rename(self._rotated(1))
            if self._chance.random() < 0.5:
                self.write(self._chance.randrange(20))  # to the renamed file
            os.close(self._fd)
            self._fd = self._open()
        else:
            self._copy_and_truncate()
        self._compress(self._rotated(2))

    def lines(self) -> Counter[bytes]:
        """Return what each file has, or had when it was truncated."""
        return Counter(
            line for content in self._files for line in bytes(content).split(b"\n") if line
        )

    def finish(self) -> None:
        """Write the rest of the last line."""
        if self._rest:
            self.write(1)

    def close(self) -> None:
        os.close(self._fd)

    def _open(self) -> int:
        self._files.append(bytearray())
        return os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def _copy_and_truncate(self) -> None:
        self._shift()
        # As logrotate does: without a whole copy, nothing is truncated.
        if _is_written(self._rotated(1), self.log.read_bytes()):
            os.ftruncate(self._fd, 0)
            self._files.append(bytearray())

    def _compress(self, path: Path) -> None:
        packed = path.with_name(f"{path.name}.gz")
        if path.exists() and _is_written(packed, gzip.compress(path.read_bytes())):
            path.unlink()

    def _rotated(self, number: int, end: str = "") -> Path:
        return self.log.with_name(f"{self.log.name}.{number}{end}")

    def _shift(self) -> None:
        for number in range(MOST_ROTATED, 0, -1):
            for end in ("", ".gz"):
                path = self._rotated(number, end)
                if path.exists():
                    path.rename(self._rotated(number + 1, end))


def _is_written(path: Path, content: bytes) -> bool:
    """Return whether the disk took a new file; otherwise, the file is removed."""
    try:
        path.write_bytes(content)
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        return False
    return True
