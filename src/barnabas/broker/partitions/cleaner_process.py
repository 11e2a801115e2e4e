"""Runs the child process that compacts logs. It receives jobs and sends events.

The process is started for the first job, and ends when there are no more jobs. If it is killed,
only files with the suffix `.cleaned` are left behind. The event loop never waits for it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from barnabas.storage.compaction.job import Event, Failed, read_event
from barnabas.storage.python_child import start_child

if TYPE_CHECKING:
    from subprocess import Popen

_MODULE = "barnabas.storage.compaction"
_READ_BYTES = 64 * 1024

T = TypeVar("T")


class CleanerProcess:
    """Runs at most one process. `send` starts it."""

    def __init__(self) -> None:
        self._process: Popen[bytes] | None = None
        self._received: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._rest = b""

    @property
    def pid(self) -> int | None:
        """Return the id of the process, or None if it is not running."""
        return None if self._process is None else self._process.pid

    async def send(self, lines: Iterable[bytes]) -> None:
        """Send a job. Its lines are generated only when they are needed.

        Raises OSError, for example if the process has died.
        """
        if self._process is None:
            self._process = self._start()
        assert self._process.stdin is not None
        for line in lines:
            await _in_thread(self._process.stdin.write, line)
        await _in_thread(self._process.stdin.flush)

    def _start(self) -> Popen[bytes]:
        # The process identifies each key by a hash, which it computes with its own random secret.
        process = start_child(_MODULE, PYTHONHASHSEED="random")
        assert process.stdout is not None
        # The event loop reads from this pipe when data is available, and must never block on it.
        os.set_blocking(process.stdout.fileno(), False)
        self._received = asyncio.Queue()
        self._rest = b""
        asyncio.get_running_loop().add_reader(process.stdout.fileno(), self._readable, process)
        return process

    def _readable(self, process: Popen[bytes]) -> None:
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        data = os.read(descriptor, _READ_BYTES)
        # A line may arrive in several parts.
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._received.put_nowait(line)
        if not data:
            asyncio.get_running_loop().remove_reader(descriptor)
            self._received.put_nowait(None)

    async def event(self, timeout_s: float) -> Event | None:
        """Return the next event, or None if there is none before the timeout.

        If the process has ended, the pass has failed.
        """
        try:
            async with asyncio.timeout(timeout_s):
                line = await self._received.get()
        except TimeoutError:
            return None
        if line is not None:
            return read_event(line)
        status = await self._reap()
        return Failed(f"the cleaner process exited unexpectedly with status {status}", False)

    async def end(self) -> None:
        """Kill the process. After this returns, the process no longer touches any log."""
        if self._process is not None:
            # The process can be killed at any time, because its files have the suffix `.cleaned`
            # and are discarded.
            self._process.send_signal(signal.SIGKILL)
            await self._reap()

    async def _reap(self) -> int:
        process, self._process = self._process, None
        assert process is not None and process.stdin is not None and process.stdout is not None
        asyncio.get_running_loop().remove_reader(process.stdout.fileno())
        status = await _in_thread(process.wait)
        process.stdout.close()
        try:
            process.stdin.close()
        except BrokenPipeError:
            return status  # the process did not receive the last lines sent to it
        return status


async def _in_thread(action: Callable[..., T], *arguments: object) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, partial(action, *arguments))
