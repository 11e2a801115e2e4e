"""Reports log directories that have failed to the controller (ST-10, KIP-112)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica_removal import FailedDirectory
    from barnabas.storage.store import LogStore
    from barnabas.types import TopicPartition

Report = Callable[[Sequence["TopicPartition"]], Awaitable[None]]
"""Notifies the controller that this broker has lost these partitions."""


class FailedDirectoryReports:
    """Works from `start` to `close`. With the last directory the broker has failed."""

    __slots__ = ("_failed", "_logs", "_queue", "_report", "_tasks")

    def __init__(
        self,
        queue: asyncio.Queue[FailedDirectory],
        logs: LogStore,
        report: Report,
        failed: asyncio.Future[str],
    ) -> None:
        """`failed` gets the reason why this broker cannot go on."""
        self._queue = queue
        self._logs = logs
        self._report = report
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._begin(self._run())

    def close(self) -> None:
        """Report nothing any more."""
        for task in list(self._tasks):
            task.cancel()

    async def _run(self) -> None:
        while True:
            directory = await self._queue.get()
            if self._logs.online_directories:
                # Beside the next one: a store that does not answer may take a while.
                self._begin(self._report(directory.partitions))
            elif not self._failed.done():
                self._failed.set_result(
                    f"no log directory is left, the last one was {directory.path}: see the log "
                    "above, repair the disk and start again"
                )

    def _begin(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
