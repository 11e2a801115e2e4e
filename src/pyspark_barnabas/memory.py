"""Configures the memory allocator and the garbage collector of a worker process.

Each fetch consists of a few megabytes in half a dozen arrays, which are received, decoded and
freed. glibc immediately returns blocks of this size to the system, and the system then hands them
out again page by page, zeroed. In a measurement, this took a third of the CPU time of a reading
task. After `keep_freed_memory`, glibc keeps the blocks until the worker exits, which costs at most
the memory of one fetch.

Spark runs Python's garbage collector after each task. With PySpark, Arrow, NumPy and Polars loaded,
a collection took 75 ms in a measurement. This is longer than a small task takes, and the process
cannot begin its next task until the collection is done. After `settle_objects`, the collector
examines only objects created since then.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import sys

# mallopt(3). Both must be set, because a block below the mmap threshold is on the heap, and the
# heap's end is returned only when more of it is free than the trim threshold.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_TRIM_BYTES = 256 * 1024 * 1024
_MMAP_BYTES = 32 * 1024 * 1024  # the most that glibc accepts


def keep_freed_memory() -> None:
    """Configure the allocator of this process if it is the one in glibc."""
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
        if mallopt is not None:
            mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)
            mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)


@functools.cache
def settle_objects(kind: str) -> None:
    """Exempt the objects of this process from further garbage collections.

    Call this at the end of a task. At the end of the first task of a kind, everything that later
    tasks of this kind need has been loaded, so later calls do nothing. Garbage is collected first.
    """
    gc.collect()
    gc.freeze()
