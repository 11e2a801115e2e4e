"""Runs a broker's periodic work, which consists of checkpoints, flushes, removals and ISR checks.

The intervals are the same as in Kafka. High watermarks are checkpointed every
`replica.high.watermark.checkpoint.interval.ms`, and recovery points every
`log.flush.offset.checkpoint.interval.ms`. Deleted partitions are removed within
`log.segment.delete.delay.ms`. Producers that have been idle for a day expire within ten minutes.
Retention runs every `log.retention.check.interval.ms`. The ISR check runs twice within
`replica.lag.time.max.ms`.

Each duty has its own task and waits for the disk in a thread, so a slow disk does not delay the
other duties or the ISR checks. These duties could conflict:

    two writers of one checkpoint       the log store lets only one write at a time
    two removals of one deleted log     one duty does all removals, in consecutive rounds
    a removal and a recreated log       the name of a deleted log includes its topic id
    a sync and deleted files            `Durability` knows which are no longer needed
    any duty and closing the logs       `stop` returns when no round is running
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.configs.current_config import CurrentConfig
from barnabas.broker.partitions.directory_failure import DirectoryFailures
from barnabas.broker.partitions.replicas import Replicas
from barnabas.broker.runtime.disk_threads import run_in
from barnabas.broker.runtime.watched_clock import WatchedClock
from barnabas.config.topic_keys import LONG_MAX
from barnabas.errors import CorruptData
from barnabas.storage.directory import DirectoryError
from barnabas.storage.files import Files
from barnabas.storage.seen_time import write_seen_ms
from barnabas.storage.store import LogStore

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica
    from barnabas.storage.log import Log
    from barnabas.storage.retention import Removal

_log = logging.getLogger(__name__)

_FLUSH_BY_AGE_EVERY_MS = 1000  # Kafka checks only if it is configured to
_SHORTEST_INTERVAL_MS = 100  # regardless of the configured interval


class _Round:
    """A duty, and the interval at which it runs."""

    __slots__ = ("action", "key", "longest_ms", "name", "times")

    def __init__(
        self,
        name: str,
        key: str,
        action: Callable[[], Awaitable[None]],
        longest_ms: int = LONG_MAX,
        times: int = 1,
    ) -> None:
        """`times` is the number of rounds within the configured interval."""
        self.name = name
        self.key = key
        self.action = action
        self.longest_ms = longest_ms
        self.times = times

    def interval_ms(self, config: CurrentConfig) -> int:
        interval_ms = min(config.int(self.key) // self.times, self.longest_ms)
        return max(interval_ms, _SHORTEST_INTERVAL_MS)


class Housekeeping:
    """Runs the duties, from `start` until `stop`.

    If a round fails, the failure is logged, and the next round follows after the usual interval.
    """

    def __init__(
        self,
        config: CurrentConfig,
        clock: WatchedClock,
        logs: LogStore,
        replicas: Replicas,
        failures: DirectoryFailures,
        files: Files,
    ) -> None:
        self._config = config
        self._clock = clock
        self._files = files
        self._logs = logs
        self._replicas = replicas
        self._failures = failures
        self._rounds = [
            _Round(
                "checkpointing high watermarks",
                "replica.high.watermark.checkpoint.interval.ms",
                self._checkpoint_high_watermarks,
            ),
            _Round(
                "flushing rolled segments",
                "log.flush.offset.checkpoint.interval.ms",
                self._flush_rolled,
            ),
            _Round(
                "checkpointing recovery points",
                "log.flush.offset.checkpoint.interval.ms",
                self._checkpoint_recovery_points,
            ),
            _Round(
                "flushing logs by age",
                "log.flush.scheduler.interval.ms",
                self._flush_by_age,
                _FLUSH_BY_AGE_EVERY_MS,
            ),
            _Round("checking ISRs", "replica.lag.time.max.ms", self._check_isr, times=2),
            _Round("retention", "log.retention.check.interval.ms", self._enforce_retention),
            _Round(
                "removing deleted files",
                "log.segment.delete.delay.ms",
                self._purge_deleted,
            ),
            _Round(
                "expiring producer ids",
                "producer.id.expiration.check.interval.ms",
                self._expire_producers,
            ),
        ]
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._run(each)) for each in self._rounds]

    async def stop(self) -> None:
        """Stop all rounds, and return when none of them is running."""
        self._stopping.set()
        for task in self._tasks:
            await task

    async def _run(self, duty: _Round) -> None:
        # The config is read in each round, so a dynamic change applies from the next round on.
        while not await self._stops_within(duty.interval_ms(self._config)):
            try:
                await duty.action()
            # The error contains the directory that failed. Only this directory goes offline.
            except DirectoryError as error:
                self._failures.on_error(error.directory, error)
            except OSError as error:
                if not self._replicas.is_short_of_descriptors(error):
                    _log.error("%s failed: %s", duty.name, error)
            except Exception:
                # This is either a bug in Barnabas or a damaged file that may be gone in the next
                # round.
                _log.exception("%s failed", duty.name)

    async def _stops_within(self, wait_ms: int) -> bool:
        try:
            async with asyncio.timeout(wait_ms / 1000):
                await self._stopping.wait()
        except TimeoutError:
            return self._stopping.is_set()
        return True

    async def _checkpoint_high_watermarks(self) -> None:
        # Read the high watermarks before the thread starts. A log that is truncated or deleted in
        # the meantime must not get its old high watermark back.
        self._logs.high_watermarks.update(self._replicas.high_watermarks())
        await self._in_lane(lambda: self._logs.checkpoint_high_watermarks({}))

    async def _flush_rolled(self) -> None:
        for replica in self._hosted():
            # Rolled segments do not change. Once they are on disk, the recovery point moves past
            # them, so they do not have to be scanned when the broker starts after a crash (ST-8).
            for flush in replica.log.take_unflushed():
                await self._run_guarded(replica, flush)

    async def _checkpoint_recovery_points(self) -> None:
        await self._in_lane(self._logs.checkpoint_recovery_points)
        wall_ms = self._clock.trusted_wall_ms()
        if wall_ms is not None:
            # Write the time even if nothing else has changed, because the clock is compared with it
            # at the next start.
            directories = self._logs.directories.online
            await self._in_lane(partial(write_seen_ms, self._files, directories, wall_ms))

    async def _flush_by_age(self) -> None:
        """Flush the logs whose `flush.ms` has passed (ST-10).

        (`flush.messages` takes effect on append.)
        """
        now_ms = self._clock.monotonic_ms()
        for replica in self._hosted():
            if replica.log.config.flush_ms < LONG_MAX and replica.log.due_flush(now_ms):
                self._replicas.start_flush(replica)

    async def _check_isr(self) -> None:
        """Remove followers that lag behind from the ISRs, twice per `replica.lag.time.max.ms`
        (RE-8).
        """
        self._replicas.check_isr(self._clock.monotonic_ms())

    async def _enforce_retention(self) -> None:
        for replica in self._hosted():
            if replica.log.unsettled is not None:
                # The log has just been truncated and is being synced by a thread. Another sync
                # would block the event loop, so the log is flushed in the next round.
                continue
            try:
                log, now_ms = replica.log, self._clock.monotonic_ms()
                wall_ms = self._clock.trusted_wall_ms()
                # While the wall clock is not trusted, nothing is removed by age. Removal by size
                # and by log start continues (ST-6).
                removal = log.enforce_retention(now_ms, replica.high_watermark, wall_ms)
                if removal.segments:
                    # Followers learn the new log start from their next response. Readers below it
                    # get OFFSET_OUT_OF_RANGE.
                    replica.log_start_moved()
                    self._report(removal, log)
            except OSError as error:
                replica.fail(error)
            except CorruptData as error:
                _log.error("cannot delete old segments of %s: %s", replica.topic_partition, error)
            await asyncio.sleep(0)  # a thousand partitions must not keep a client waiting

    def _report(self, removal: Removal, log: Log) -> None:
        from barnabas.broker.partitions.log_events import retention_event  # rarely needed

        self._replicas.events.add_routine(retention_event(removal, log), _log)

    async def _purge_deleted(self) -> None:
        await self._in_lane(self._logs.directories.purge_deleted)
        now_ms = self._clock.monotonic_ms()
        for replica in self._hosted():
            if replica.log.has_discarded:
                await self._run_guarded(replica, partial(replica.log.remove_discarded, now_ms))
            replica.log.rest()

    async def _expire_producers(self) -> None:
        expiration_ms = self._config.int("producer.id.expiration.ms")
        for replica in self._hosted():
            wall_ms = self._clock.trusted_wall_ms()
            if wall_ms is None:
                return
            # A log may have a hundred thousand producers, so they are checked in slices.
            for _ in replica.log.expire_producers(wall_ms - expiration_ms):
                await asyncio.sleep(0)

    async def _run_guarded(self, replica: Replica, action: Callable[[], object]) -> None:
        """Run an action in a thread. If the disk fails, take its directory offline."""
        try:
            await self._in_lane(action)
        except OSError as error:
            replica.fail(error)

    async def _in_lane(self, action: Callable[[], object]) -> None:
        await run_in(self._replicas.threads.background, action)

    def _hosted(self) -> Iterator[Replica]:
        """Yield all replicas, except any that are deleted or replaced before their turn comes."""
        for replica in list(self._replicas):
            if self._replicas.hosts(replica):
                yield replica
