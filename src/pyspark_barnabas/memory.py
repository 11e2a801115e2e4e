"""Keeps the freed memory of a worker process for the next fetch.

A fetch is received, decoded and freed, each time a few megabytes in half a dozen arrays. glibc
returns blocks of that size to the system immediately and gets them again, zeroed, page by page: as
measured, this takes a third of a reading task's CPU time. With this setting glibc keeps the blocks
as long as the worker lives, which costs at most the memory of one fetch.
"""

from __future__ import annotations

import ctypes
import sys

# mallopt(3). Both must be set: a block below the mmap threshold is on the heap, and the heap's end
# is returned only when the trim threshold of it is free.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_TRIM_BYTES = 256 * 1024 * 1024
_MMAP_BYTES = 32 * 1024 * 1024  # the most that glibc accepts


def keep_freed_memory() -> None:
    """Configure this process's allocator if it is glibc's; otherwise do nothing."""
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
        if mallopt is not None:
            mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)
            mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)
