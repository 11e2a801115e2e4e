"""Finds holes in files, which are runs of NULs that no program wrote.

If a log is truncated while a program has it open without append mode, the program continues writing
at its old position and leaves a hole before its next line. A crash can also leave holes.
"""

from __future__ import annotations

import errno
import os
from typing import Final

AT_START_BYTES: Final = 4
"""A shorter run at the start of a line counts as text, because UTF-16 and UTF-32 text may contain
up to three NULs there."""
WITHIN_BYTES: Final = 4096
"""A run of at least this length (a file system block) is a hole even in the middle of a line. A
shorter run counts as text.
"""
START: Final = b"\0" * AT_START_BYTES
_SEEK_DATA: Final[int | None] = getattr(os, "SEEK_DATA", None)
_READ_BYTES: Final = 1 << 20


def next_data(fd: int, position: int) -> int:
    """Return the position of the next data at or after a position, or the end of the file if only a
    hole follows."""
    if _SEEK_DATA is None:
        return position
    before = os.lseek(fd, 0, os.SEEK_CUR)
    try:
        return os.lseek(fd, position, _SEEK_DATA)
    except OSError as error:
        # ENXIO: the rest of the file is a hole.
        if error.errno != errno.ENXIO:  # not supported by this file system
            return position
        return max(position, os.fstat(fd).st_size)
    finally:
        os.lseek(fd, before, os.SEEK_SET)  # restores the position for its reader


def data_start(fd: int) -> int:
    """Return the size of the hole at the start of a file."""
    at = 0
    while True:
        read = os.pread(fd, _READ_BYTES, at)
        rest = read.lstrip(b"\0")
        at += len(read) - len(rest)
        if rest or not read:
            return at if at >= AT_START_BYTES else 0
        at = next_data(fd, at)
