"""Reads blocks of bytes from a file, a pipe or a terminal, without a thread.

Ctrl-C could not end a thread blocked in `read` on a terminal, so the loop itself waits for pipes
and terminals. Files are always ready, and are read directly.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from types import TracebackType

_BLOCK_BYTES = 1024 * 1024


class Input:
    """Reads standard input (`path` is None or "-") or a file. Raises OSError if it cannot be
    read."""

    def __init__(self, path: str | None) -> None:
        self._owned = path is not None and path != "-"
        self.name = path if self._owned and path is not None else "standard input"
        if self._owned:
            assert path is not None
            self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        else:
            self._descriptor = sys.stdin.fileno()
        about = os.fstat(self._descriptor)
        self.is_terminal = os.isatty(self._descriptor)
        self.size_bytes = about.st_size if stat.S_ISREG(about.st_mode) else None
        self._must_wait = (
            self.is_terminal or stat.S_ISFIFO(about.st_mode) or stat.S_ISSOCK(about.st_mode)
        )

    def __enter__(self) -> Input:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._owned:
            os.close(self._descriptor)

    async def read(self) -> bytes:
        """Return up to a megabyte of the next bytes, or b"" at the end."""
        if self._must_wait:
            await self._readable()
        return os.read(self._descriptor, _BLOCK_BYTES)

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not ready.done():
                ready.set_result(None)

        loop.add_reader(self._descriptor, wake)
        try:
            await ready
        finally:
            loop.remove_reader(self._descriptor)
