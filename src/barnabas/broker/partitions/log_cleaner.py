"""Selects the dirtiest log, has it cleaned, and replaces segments with the cleaned ones (ST-7).

The work is done in a child process (`storage.compaction`), because a busy Python thread would delay
every request by milliseconds. This process only renames the files when segments are replaced. With
`inline`, a thread does the work in small steps. This mode is meant for the simulator and for small
tests.

A pass is aborted if its log is truncated, deleted, moved or taken offline, because the files are
then no longer those that were cleaned. A log that is being moved to another directory is not
cleaned, because the copy could then contain a record but not the tombstone that deleted it. A
corrupt log is reported once and skipped from then on, while the other logs are still cleaned.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.configs.current_config import CurrentConfig
from barnabas.broker.partitions.cleaner_process import CleanerProcess
from barnabas.broker.partitions.log_events import compaction_event
from barnabas.broker.runtime.disk_threads import run_in
from barnabas.counted import counted
from barnabas.errors import CorruptData
from barnabas.records.record import DEFAULT_LIMIT_BYTES
from barnabas.storage.cleaner import (
    Checkpoints,
    Cleanable,
    Limits,
    dirtiest,
    examine,
    is_compacted,
    job_of,
    last_records,
)
from barnabas.storage.compaction.job import (
    Event,
    Failed,
    Finished,
    Job,
    LastRecord,
    Producers,
    Progress,
    Replacement,
    job_lines,
)
from barnabas.storage.leftovers import discard_cleaned
from barnabas.storage.log import Log
from barnabas.storage.roll_rule import is_overdue
from barnabas.storage.segment import Segment
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.partitions.cleaner_parts import CleanerParts
    from barnabas.broker.partitions.replica import Replica

_log = logging.getLogger(__name__)

T = TypeVar("T")

_LOOK_EVERY_S = 0.2  # interval at which to check that a log being cleaned is still the same log
_PRODUCERS_PER_STEP = 1000


class LogCleaner:
    """Cleans one broker's logs, one at a time."""

    def __init__(self, parts: CleanerParts) -> None:
        self._config = parts.config
        self._clock = parts.clock
        self._replicas = parts.replicas
        self._failures = parts.failures
        self._files = parts.files
        self._inline = parts.inline
        self._checkpoints = Checkpoints(parts.files)
        self._process = CleanerProcess()
        self._uncleanable: dict[TopicPartition, Log] = {}
        self._logged: dict[TopicPartition, str] = {}

    async def _in_lane(self, action: Callable[[], T]) -> T:
        return await run_in(self._replicas.threads.background, action)

    async def end(self) -> None:
        """End the child process. The next pass starts a new process."""
        await self._process.end()

    async def clean_once(self) -> bool:
        """Clean the dirtiest log that is due, and return whether there was one.

        While the age of tombstones and records is not known, no log is cleaned.
        """
        wall_ms = self._clock.trusted_wall_ms()
        chosen = None if wall_ms is None else await self._choose(wall_ms)
        is_done = False
        if wall_ms is not None and chosen is not None:
            try:
                is_done = await self._clean(*chosen, wall_ms)
            except CorruptData as error:
                self._leave_alone(chosen[1].log, str(error))
            except OSError as error:
                chosen[0].fail(error)
        await self._save()
        return is_done

    async def _choose(self, wall_ms: int) -> tuple[Replica, Cleanable] | None:
        store = self._replicas.store
        for name, log in list(store.logs.items()):
            if name not in store.logs:
                continue  # because its directory has just failed
            directory = store.directory_of(name)
            try:
                self._checkpoints.recall(log, directory)
            except OSError as error:
                self._failures.on_error(directory, error)
        found: dict[Log, tuple[Replica, Cleanable]] = {}
        for replica in list(self._replicas):
            log = replica.log
            if not self._replicas.hosts(replica) or not is_compacted(log):
                continue
            name = log.topic_partition
            # Compare the log objects. By now, the name may refer to a different log.
            if self._uncleanable.get(name) is log or name in self._replicas.store.futures.logs:
                continue
            try:
                if log.unsettled is None and is_overdue(log.segments[-1], log.config, wall_ms):
                    log.roll()  # roll the active segment if the maximum compaction lag requires it
                stable_offset = replica.last_stable_offset
                found[log] = replica, examine(log, stable_offset, wall_ms)
            except CorruptData as error:
                self._leave_alone(log, str(error))
            except OSError as error:
                replica.fail(error)
            await asyncio.sleep(0)  # a thousand partitions must not keep a client waiting
        # As in Kafka, take the log with the largest share of dirty bytes among the logs that are
        # due (ST-7).
        chosen = dirtiest(cleanable for _, cleanable in found.values())
        return None if chosen is None else found[chosen.log]

    async def _save(self) -> None:
        """Write the cleaner's offsets to disk if any have changed."""
        store = self._replicas.store
        for directory in store.directories.online:
            logs = [
                log for name, log in store.logs.items() if store.directory_of(name) == directory
            ]
            offsets = self._checkpoints.offsets_to_write(directory, logs)
            if offsets is not None:
                try:
                    await self._in_lane(partial(self._checkpoints.write, directory, offsets))
                except OSError as error:
                    self._failures.on_error(directory, error)

    # --- one pass --------------------------------------------------------------------------------

    async def _clean(self, replica: Replica, cleanable: Cleanable, wall_ms: int) -> bool:
        """Run one pass, and return whether it was completed.

        Raises OSError if the directory failed.
        """
        log, truncations = cleanable.log, cleanable.log.truncations

        def is_same() -> bool:
            is_moving = log.topic_partition in self._replicas.store.futures.logs
            return not log.health.is_failed and log.truncations == truncations and not is_moving

        if not is_same():
            return False  # because the log was deleted after it was chosen
        began_ms = self._clock.monotonic_ms()
        job = job_of(cleanable, _limits(self._config), wall_ms)
        # Allow the gaps before any file is replaced. Otherwise, after a crash, compacted offsets
        # would be mistaken for lost ones at startup.
        if not await self._allow_gaps(log, job.end_offset, is_same):
            return False
        producers = await _last_records(log, job.end_offset)
        segments = {each.base_offset: each for each in cleanable.sources}
        async with aclosing(self._events(job, producers, is_same)) as events:
            async for event in events:
                if isinstance(event, Replacement):
                    if not await self._swap(log, [segments[i] for i in event.replaced], event):
                        break
                elif isinstance(event, Finished):
                    await self._in_lane(lambda: self._files.sync(log.directory))
                    if not is_same():
                        break
                    # The files have their final names, so the checkpoint may include the log.
                    log.first_dirty_offset = event.first_dirty_offset
                    self._report(cleanable, job, event, self._clock.monotonic_ms() - began_ms)
                    return True
                elif isinstance(event, Failed):
                    self._on_failure(log, event)
        return False

    async def _allow_gaps(self, log: Log, end_offset: int, is_same: Callable[[], bool]) -> bool:
        """Store the offset below which any gaps in the log come from compaction and not from lost
        data.

        Returns False if the log has changed since then.
        """
        if end_offset > log.gaps.end:
            for flush in log.take_unflushed():
                await self._in_lane(flush)
            await self._in_lane(partial(log.gaps.prepare, end_offset))
            if not is_same():
                return False
            log.gaps.extend(end_offset)
            await self._in_lane(lambda: self._files.sync(log.directory))
        return is_same()

    async def _swap(self, log: Log, replaced: list[Segment], new: Replacement) -> bool:
        # Retention may have deleted the segments while the child process was working.
        if not log.swaps.begin(replaced, new.sizes):
            return False
        # The new segments must be on disk before any old segment is deleted.
        await self._in_lane(lambda: self._files.sync(log.directory))
        return log.finish_swap(self._clock.monotonic_ms())

    async def _events(
        self, job: Job, producers: Producers, is_same: Callable[[], bool]
    ) -> AsyncGenerator[Event, None]:
        """Yield a pass's events as long as the log has not changed, and clean up afterwards."""
        is_over = False
        steps = self._inline_steps if self._inline else self._process_steps
        try:
            async with aclosing(steps(job, producers)) as events:
                async for event in events:
                    if not is_same():
                        return
                    is_over = isinstance(event, Finished | Failed)
                    yield event
                    if is_over or not is_same():
                        return
        finally:
            if not is_over:
                await self._process.end()
            if is_same():
                await self._in_lane(lambda: discard_cleaned(self._files, Path(job.directory)))

    async def _process_steps(self, job: Job, producers: Producers) -> AsyncGenerator[Event, None]:
        try:
            await self._process.send(job_lines(job, producers))
        except OSError as error:
            await self._process.end()
            why = f"cannot start the cleaner process: {error}"
            if isinstance(error, BrokenPipeError):
                why = "the cleaner process exited before it read its job"
            yield Failed(why, is_corrupt=False)
            return
        while True:
            event = await self._process.event(_LOOK_EVERY_S)
            # Yield even if there is no event, so that the caller checks whether the log has
            # changed.
            yield Progress(0) if event is None else event

    async def _inline_steps(self, job: Job, producers: Producers) -> AsyncGenerator[Event, None]:
        from barnabas.storage.compaction.compaction import (
            Compaction,
        )  # otherwise, only the child process needs it

        steps = Compaction(self._files, Path(job.directory), job, producers).run()
        try:
            while (event := await self._in_lane(partial(next, steps, None))) is not None:
                yield event
        except CorruptData as error:
            yield Failed(str(error), is_corrupt=True)
        except OSError as error:
            yield Failed(str(error), is_corrupt=False)

    # --- logging ---------------------------------------------------------------------------------

    def _report(self, cleanable: Cleanable, job: Job, event: Finished, took_ms: int) -> None:
        log = cleanable.log
        self._logged.pop(log.topic_partition, None)
        self._replicas.events.add_routine(compaction_event(cleanable, event, took_ms), _log)
        if event.unopened_batches:
            _log.warning(
                "%s: could not compact %s, which would decompress to more than %d MiB each; the "
                "tombstones after them are kept too",
                log.topic_partition,
                counted(event.unopened_batches, "batch", "batches"),
                DEFAULT_LIMIT_BYTES >> 20,
            )
        if event.first_dirty_offset < job.end_offset:
            _log.info(
                "%s has more keys than fit into log.cleaner.dedupe.buffer.size; the next pass "
                "compacts the rest",
                log.topic_partition,
            )

    def _on_failure(self, log: Log, event: Failed) -> None:
        # A damaged batch stays damaged, but other errors, such as a killed child process, do not
        # recur.
        if event.is_corrupt:
            self._leave_alone(log, event.reason)
        elif not log.health.is_failed and self._logged.get(log.topic_partition) != event.reason:
            self._logged[log.topic_partition] = event.reason
            _log.warning(
                "compacting %s failed and will be retried: %s", log.topic_partition, event.reason
            )

    def _leave_alone(self, log: Log, reason: str) -> None:
        if log.health.is_failed:
            return  # because another log may have this name now
        self._uncleanable = {
            name: each for name, each in self._uncleanable.items() if not each.health.is_failed
        }
        self._uncleanable[log.topic_partition] = log
        _log.error(
            "cannot compact %s, which keeps all its records until the broker restarts: %s",
            log.topic_partition,
            reason,
        )


def _limits(config: CurrentConfig) -> Limits:
    buffer_bytes = config.int("log.cleaner.dedupe.buffer.size")
    load_factor = config.value.value("log.cleaner.io.buffer.load.factor")
    bytes_per_second = config.value.value("log.cleaner.io.max.bytes.per.second")
    assert isinstance(load_factor, float) and isinstance(bytes_per_second, float)
    return Limits(
        buffer_bytes=buffer_bytes,
        read_bytes=max(config.int("log.cleaner.io.buffer.size") // 2, 1),
        bytes_per_second=max(bytes_per_second, 1.0),
        load_factor=min(max(load_factor, 0.1), 1.0),
    )


async def _last_records(log: Log, end_offset: int) -> dict[int, LastRecord]:
    """Collect the last record of each producer.

    This is done in slices, because there may be 100,000 producers.
    """
    producers = log.producers
    ids = producers.ids()
    found: dict[int, LastRecord] = {}
    for first in range(0, len(ids), _PRODUCERS_PER_STEP):
        some = ((each, producers.get(each)) for each in ids[first : first + _PRODUCERS_PER_STEP])
        found.update(last_records(some, end_offset))
        await asyncio.sleep(0)
    return found
