"""Runs the log cleaner at regular intervals until the broker stops.

The cleaner itself (`log_cleaner`) is not loaded until its first run, so that it does not delay
startup.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.partitions.cleaner_parts import CleanerParts
    from barnabas.broker.partitions.log_cleaner import LogCleaner

_log = logging.getLogger(__name__)

_SHORTEST_BACKOFF_MS = 100  # regardless of the configured interval


class CleanerSchedule:
    """Runs the cleaner, from `start` until `stop`, unless `log.cleaner.enable` is false."""

    def __init__(self, parts: CleanerParts) -> None:
        self._parts = parts
        self._config = parts.config
        self._task: asyncio.Task[None] | None = None
        self.cleaner: LogCleaner | None = None
        """The cleaner. It is created for the first run."""

    def start(self) -> None:
        if self._config.bool("log.cleaner.enable"):
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop cleaning.

        When this returns, no child process is running and no log is being touched.
        """
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        await self._back_off()
        from barnabas.broker.partitions.log_cleaner import LogCleaner

        cleaner = self.cleaner = LogCleaner(self._parts)
        try:
            while True:
                try:
                    # As in Kafka, clean until no log is due, and only then wait again.
                    while await cleaner.clean_once():
                        pass
                except Exception:
                    # This is either a bug in Barnabas or an unreadable line from the child process.
                    # Keep the schedule running, because otherwise compacted logs would grow until
                    # the broker restarts.
                    _log.exception("selecting a log to compact failed")
                await cleaner.end()
                await self._back_off()
        finally:
            await cleaner.end()

    async def _back_off(self) -> None:
        backoff_ms = max(self._config.int("log.cleaner.backoff.ms"), _SHORTEST_BACKOFF_MS)
        await asyncio.sleep(backoff_ms / 1000)
