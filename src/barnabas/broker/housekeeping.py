"""The broker's clockwork: checkpoints, flushes and removals, beside the requests.

Kafka's rhythm: the high watermark every `replica.high.watermark.checkpoint.interval.ms`, the
recovery point every `log.flush.offset.checkpoint.interval.ms`, deleted partitions removed within
`log.segment.delete.delay.ms`, idle producers forgotten within ten minutes of their day.

Whatever waits for a disk does so in a thread. One round at a time, and `stop` waits for the one
under way: the log store is never asked for two things at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from barnabas.broker.replicas import Replicas
from barnabas.clock import Clock
from barnabas.config import BrokerConfig
from barnabas.storage.recovery import PRODUCER_EXPIRATION_MS
from barnabas.storage.store import LogStore

_log = logging.getLogger(__name__)

_EXPIRE_PRODUCERS_EVERY_MS = 10 * 60 * 1000
_SHORTEST_INTERVAL_MS = 100  # whatever is configured


class _Round:
    """Something to do again and again."""

    __slots__ = ("action", "due_ms", "interval_ms", "name")

    def __init__(self, name: str, interval_ms: int, action: Callable[[], Awaitable[None]]) -> None:
        self.name = name
        self.interval_ms = max(interval_ms, _SHORTEST_INTERVAL_MS)
        self.action = action
        self.due_ms = 0


class Housekeeping:
    """Runs from `start` to `stop`; a round that fails is logged, and tried again at its time."""

    def __init__(
        self, config: BrokerConfig, clock: Clock, logs: LogStore, replicas: Replicas
    ) -> None:
        self._clock = clock
        self._logs = logs
        self._replicas = replicas
        self._rounds = [
            _Round(
                "checkpoint of high watermarks",
                config.int("replica.high.watermark.checkpoint.interval.ms"),
                self._checkpoint_high_watermarks,
            ),
            _Round(
                "flush of rolled segments",
                config.int("log.flush.offset.checkpoint.interval.ms"),
                self._flush_rolled,
            ),
            _Round(
                "removal of deleted partitions",
                config.int("log.segment.delete.delay.ms"),
                self._purge_deleted,
            ),
            _Round("expiry of producers", _EXPIRE_PRODUCERS_EVERY_MS, self._expire_producers),
        ]
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Return when no round is under way any more, and none will be."""
        self._stopping.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        now_ms = self._clock.now_ms()
        for each in self._rounds:
            each.due_ms = now_ms + each.interval_ms
        while True:
            next_round = min(self._rounds, key=lambda each: each.due_ms)
            if await self._stops_within(next_round.due_ms - self._clock.now_ms()):
                return
            try:
                await next_round.action()
            except OSError as error:
                _log.error("%s failed: %s", next_round.name, error)
            next_round.due_ms = self._clock.now_ms() + next_round.interval_ms

    async def _stops_within(self, wait_ms: int) -> bool:
        try:
            async with asyncio.timeout(max(0, wait_ms) / 1000):
                await self._stopping.wait()
        except TimeoutError:
            return self._stopping.is_set()
        return True

    async def _checkpoint_high_watermarks(self) -> None:
        high_watermarks = self._replicas.high_watermarks()
        await _in_thread(lambda: self._logs.checkpoint_high_watermarks(high_watermarks))

    async def _flush_rolled(self) -> None:
        for replica in list(self._replicas):
            for flush in replica.log.take_unflushed():
                await _in_thread(flush)
        await _in_thread(self._logs.checkpoint_recovery_points)

    async def _purge_deleted(self) -> None:
        await _in_thread(self._logs.purge_deleted)

    async def _expire_producers(self) -> None:
        before_ms = self._clock.now_ms() - PRODUCER_EXPIRATION_MS
        for replica in list(self._replicas):
            replica.log.expire_producers(before_ms)
            await asyncio.sleep(0)  # a thousand partitions are no reason to keep a client waiting


async def _in_thread(action: Callable[[], None]) -> None:
    await asyncio.get_running_loop().run_in_executor(None, action)
