"""When a file was created, by which an inode that was given to another file is recognised."""

from __future__ import annotations

import ctypes
import os
import sys
from struct import Struct
from typing import Any, Final

_AT_EMPTY_PATH: Final = 0x1000
_STATX_BTIME: Final = 0x800
_STATX_BYTES: Final = 256
_MASK: Final = Struct("=I")
_BIRTH: Final = Struct("=qI")  # seconds, nanoseconds
_BIRTH_AT: Final = 80


def born_ns(fd: int) -> int:
    """The time at which an open file was created; 0 where the system or file system has none."""
    if _STATX is None:
        return int(getattr(os.fstat(fd), "st_birthtime", 0) * 1_000_000_000)
    found = ctypes.create_string_buffer(_STATX_BYTES)
    if _STATX(fd, b"", _AT_EMPTY_PATH, _STATX_BTIME, found):
        return 0
    (mask,) = _MASK.unpack_from(found, 0)
    if not mask & _STATX_BTIME:
        return 0
    seconds, nanoseconds = _BIRTH.unpack_from(found, _BIRTH_AT)
    return int(seconds * 1_000_000_000 + nanoseconds)


def _statx() -> Any:
    """statx(2) of the C library; Python's own is not in all versions."""
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), "statx", None)


_STATX: Final = _statx()
