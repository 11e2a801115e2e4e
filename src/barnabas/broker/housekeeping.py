"""The broker's clockwork: checkpoints, and the flush of rolled segments, beside the requests.

Kafka's rhythm: the high watermark every `replica.high.watermark.checkpoint.interval.ms`, the
recovery point every `log.flush.offset.checkpoint.interval.ms`. fsync goes to a thread; the files
that are written atomically are small and stay on the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from barnabas.broker.replicas import Replicas
from barnabas.config import BrokerConfig
from barnabas.storage.store import LogStore

_log = logging.getLogger(__name__)


class Housekeeping:
    """Runs until `stop`; a failed round is logged and tried again at the next."""

    def __init__(self, config: BrokerConfig, logs: LogStore, replicas: Replicas) -> None:
        self._logs = logs
        self._replicas = replicas
        self._rounds: list[tuple[str, int, Callable[[], None]]] = [
            (
                "high watermark checkpoint",
                config.int("replica.high.watermark.checkpoint.interval.ms"),
                replicas.checkpoint_high_watermarks,
            ),
        ]
        self._purge_interval_ms = config.int("log.segment.delete.delay.ms")
        self._flush_interval_ms = config.int("log.flush.offset.checkpoint.interval.ms")
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        for name, interval_ms, action in self._rounds:
            self._tasks.append(loop.create_task(self._repeat(name, interval_ms, action)))
        self._tasks.append(loop.create_task(self._flush_rolled()))
        self._tasks.append(loop.create_task(self._purge_deleted()))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        self._tasks = []

    async def _repeat(self, name: str, interval_ms: int, action: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(interval_ms / 1000)
            try:
                action()
            except OSError as error:
                _log.error("%s failed: %s", name, error)

    async def _flush_rolled(self) -> None:
        """fsync what has rolled, in a thread, then move the recovery points."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._flush_interval_ms / 1000)
            try:
                for replica in list(self._replicas):
                    for flush in replica.log.take_unflushed():
                        await loop.run_in_executor(None, flush)
                self._logs.checkpoint_recovery_points()
            except OSError as error:
                _log.error("flush of rolled segments failed: %s", error)

    async def _purge_deleted(self) -> None:
        """Remove the bytes of deleted partitions, in a thread; their names were free at once."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._purge_interval_ms / 1000)
            try:
                await loop.run_in_executor(None, self._logs.purge_deleted)
            except OSError as error:
                _log.error("removal of deleted partitions failed: %s", error)
