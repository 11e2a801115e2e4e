"""Memory of a worker process: what is freed is kept for the next fetch.

A fetch comes, is decoded and goes, some megabytes each time in half a dozen arrays. glibc gives
blocks of that size back to the system at once and gets them anew, zeroed, page by page: a third of
all CPU time of a reading task, measured. Told to keep them, it does so for as long as the worker
lives, which costs at most what one fetch needed.
"""

from __future__ import annotations

import ctypes
import sys

# mallopt(3). Both have to be set: a block below the first is of the heap, and the heap's end is
# not given back before that much is free there.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_TRIM_BYTES = 256 * 1024 * 1024
_MMAP_BYTES = 32 * 1024 * 1024  # the most that glibc takes


def keep_freed_memory() -> None:
    """Set this process's allocator so, where it is glibc's; elsewhere do nothing."""
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
        if mallopt is not None:
            mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)
            mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)
