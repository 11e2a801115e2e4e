"""Configures the memory of a worker process: the allocator and the garbage collector.

Each fetch, a few megabytes in half a dozen arrays, is received, decoded and freed. glibc returns
blocks of that size to the system immediately and gets them back page by page, zeroed. In a
measurement, this took a third of a reading task's CPU time. With `keep_freed_memory`, glibc keeps
the blocks as long as the worker lives, which costs at most the memory of one fetch.

Spark collects Python's garbage after each task. With PySpark, Arrow, NumPy and Polars loaded, a
collection took 75 ms in a measurement, longer than a small task, and the process cannot begin
another task until it is done. `settle_objects` leaves only newer objects to the collector.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import sys

# mallopt(3). Both must be set: a block below the mmap threshold is on the heap, and the heap's end
# is returned only when more of it is free than the trim threshold.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_TRIM_BYTES = 256 * 1024 * 1024
_MMAP_BYTES = 32 * 1024 * 1024  # the most that glibc accepts


def keep_freed_memory() -> None:
    """Configure this process's allocator if it is glibc's."""
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
        if mallopt is not None:
            mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)
            mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)


@functools.cache
def settle_objects(kind: str) -> None:
    """Exempt the objects of this process from further garbage collections.

    Call this at the end of a task. By then, the first task of a kind has loaded everything that
    later ones need; later calls do nothing. Garbage is collected first.
    """
    gc.collect()
    gc.freeze()
