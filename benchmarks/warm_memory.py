"""Memory that is there before the clock starts: a broker must not pay for the hypervisor.

A virtual machine that reports its free pages to the host (virtio's free page reporting) has no
memory behind them. The first process to touch such a page is charged some 10 us of system time, so
40 us for every 16 KiB that a broker writes into the page cache: ten times what the writing costs,
and 2.4 CPU seconds per GB. Whether it strikes depends on what else ran lately; no figure is worth
anything while it does.

So before each measurement the free memory is filled with clean page cache, the holes of a sparse
file. New pages then come from reclaiming those, and the host has them already. Nothing is written,
and the memory stays free for any process. A gigabyte costs two seconds the first time, so the file
is kept (it occupies nothing): as long as it is, so is what is cached of it, and the next run finds
memory that is warm. On a machine without free page reporting nothing is done.
"""

from __future__ import annotations

import os
import random
import re
from pathlib import Path
from types import TracebackType

_REPORTING = Path("/sys/module/page_reporting")
_LEAVE_FREE_BYTES = 300 << 20
_STEP_BYTES = 1 << 20
_CHECK_EVERY_STEPS = 64
_SPARSE_BYTES = 1 << 42  # holes: it occupies nothing
_LIMIT_BYTES = 64 << 30  # where others give back as fast as this takes


class WarmMemory:
    """`with WarmMemory() as memory:` and `memory.fill()` before each measurement."""

    def __init__(self, *, wanted: bool = True) -> None:
        self._file: int | None = None
        self._buffer = bytearray(_STEP_BYTES)
        # Somewhere else in every run: what an earlier one has read may still be cached.
        self._position = random.randrange(_SPARSE_BYTES // _STEP_BYTES) * _STEP_BYTES
        if wanted and _REPORTING.is_dir():
            cache = Path(os.environ.get("BARNABAS_CACHE") or Path.home() / ".cache" / "barnabas")
            cache.mkdir(parents=True, exist_ok=True)
            self._file = os.open(cache / "warm-memory.sparse", os.O_RDWR | os.O_CREAT, 0o600)
            os.ftruncate(self._file, _SPARSE_BYTES)

    def __enter__(self) -> WarmMemory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            os.close(self._file)

    @property
    def state(self) -> str:
        """For the heading of a table."""
        return "memory as it is" if self._file is None else "free memory filled before each row"

    def fill(self) -> None:
        """Leave little free memory; returns at once where there is little."""
        if self._file is None:
            return
        left_bytes = _LIMIT_BYTES
        while _free_bytes() > _LEAVE_FREE_BYTES and left_bytes > 0:
            for _ in range(_CHECK_EVERY_STEPS):
                os.preadv(self._file, [self._buffer], self._position)
                self._position = (self._position + _STEP_BYTES) % _SPARSE_BYTES
            left_bytes -= _CHECK_EVERY_STEPS * _STEP_BYTES


def _free_bytes() -> int:
    found = re.search(r"MemFree:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    return int(found.group(1)) * 1024 if found else 0
