"""Moves one replica to another log directory.

The move may have begun before the broker was restarted.

The mover carries out the decisions of `replication.directory_move` in steps of 64 KiB. Data is read
and flushed in threads, and appended in the same way as on a follower.

The switch takes place in one turn of the event loop. Requests do not notice it, because staged data
is copied as well and the offsets for which requests are waiting stay valid. However, the log is now
another object, so code must read `replica.log` again after an await.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from barnabas.broker.runtime.disk_threads import run_in
from barnabas.config.topic_keys import LONG_MAX
from barnabas.errors import CorruptData, OffsetOutOfRange
from barnabas.records.batch import read_header
from barnabas.replication.directory_move import (
    TURN_BYTES,
    Bounds,
    Copy,
    DirectoryMove,
    Flush,
    Prepare,
    RaiseStart,
    StartAt,
    Step,
)
from barnabas.replication.follower import EpochEnd, aligned_offset
from barnabas.storage.cold_lookups import warming
from barnabas.storage.directory import DirectoryError
from barnabas.storage.files import File

if TYPE_CHECKING:
    from barnabas.broker.partitions.mover_parts import MoverParts
    from barnabas.broker.partitions.replica import Replica
    from barnabas.storage.log import Log
    from barnabas.types import FileSlice, TopicPartition

_log = logging.getLogger(__name__)

T = TypeVar("T")

_AGAIN_AFTER_S = 0.5
_CUT_SETTLES_WITHIN_S = 0.05


class _GivenUp(Exception):
    """Raised with the reason if the move cannot be completed."""


class ReplicaMover:
    """Replaces the replica of one partition with its future replica. A mover can be used only
    once.
    """

    __slots__ = (
        "_failures",
        "_future",
        "_leaving",
        "_listeners",
        "_move",
        "_name",
        "_replicas",
        "_stopping",
        "_store",
        "_throttles",
    )

    def __init__(self, parts: MoverParts, name: TopicPartition, future: Log) -> None:
        self._failures, self._listeners, self._throttles, self._stopping, self._leaving = parts
        self._replicas = parts.failures.removal.replicas
        self._store = self._replicas.store
        self._name = name
        self._future = future
        self._move = DirectoryMove()

    async def run(self) -> None:
        """Run until the move is complete, has been given up, or must be restarted with a
        new mover.
        """
        name, future = self._name, self._future
        home = self._store.futures.home(name)
        if home is None:
            return
        last: Replica | None = None
        try:
            await self._align()
            while (replica := self._current()) is not None:
                last = replica
                await self._settle()
                current = Bounds(replica.log.log_start_offset, replica.log.log_end_offset)
                there = Bounds(future.log_start_offset, future.log_end_offset)
                await self._carry_out(self._move.next_step(current, there), replica)
                await asyncio.sleep(0)
        except OSError as error:
            if self._store.futures.get(name) is future:
                await self._on_target_error(home.path, error)
        except (_GivenUp, CorruptData) as reason:
            _log.error("%s stays in its current log directory: %s", name, reason)
            self._drop()
        finally:
            self._release(last)

    def _drop(self) -> None:
        try:
            self._store.futures.drop(self._name)
        except DirectoryError as error:
            self._failures.on_error(error.directory, error)

    def _release(self, replica: Replica | None) -> None:
        """Release all acknowledgements that are waiting for a flush of the future replica."""
        if replica is not None and replica.successor is not None:
            replica.successor = None
            replica.sync_ended()
            self._replicas.start_flush(replica)

    async def _on_target_error(self, target: Path, error: OSError) -> None:
        """Take the target offline after a disk error, unless the error was only a lack of file
        descriptors.
        """
        self._failures.on_error(target, error)
        # A lack of file descriptors does not mean that the target has failed. The move is retried.
        if self._future.health.is_failed and self._store.futures.get(self._name) is self._future:
            self._drop()
        await self._pause(_AGAIN_AFTER_S)

    def _current(self) -> Replica | None:
        """Return the replica as long as it is moving to this future replica and the broker is
        running.
        """
        if self._stopping.is_set() or self._store.futures.get(self._name) is not self._future:
            return None
        return self._replicas.get(self._name)

    async def _align(self) -> None:
        """Truncate a future replica that was found at startup to the point where it diverges from
        the current replica.

        The current replica may have been truncated or may have lost its end, while the future
        replica was not affected.
        """
        future = self._future
        while (replica := self._current()) is not None:
            log = replica.log
            leaders = EpochEnd(*log.epoch_end_offset(future.latest_epoch))
            # Truncate by leader epochs, in the same way as a follower aligns with its leader
            # (RE-10).
            at = aligned_offset(future, leaders, replica.high_watermark)
            self._store.moves.cut(self._name, min(at.offset, log.log_end_offset))
            await self._settle()
            if at.is_final or future.log_end_offset <= future.log_start_offset:
                return

    async def _settle(self) -> None:
        """Sync the future replica after it was truncated, and load its producers."""
        future = self._future
        cut = future.unsettled
        if cut is not None:
            for _ in cut.learn():
                await asyncio.sleep(0)
            await self._in_lane(cut.make_durable)
            if cut.before_writes is not None:
                await self._in_lane(cut.before_writes)
            cut.on_durable()
            if future.unsettled is cut:
                future.settle()

    async def _carry_out(self, step: Step, replica: Replica) -> None:
        future = self._future
        if type(step) is Copy:
            await self._copy(step.offset, replica)
        elif type(step) is StartAt:
            future.start_at(step.offset, settles=False)
            await self._settle()
        elif type(step) is RaiseStart:
            future.raise_log_start(step.offset)
            now_ms = self._replicas.clock.monotonic_ms()
            future.enforce_retention(now_ms, future.log_end_offset, None)
        elif type(step) is Flush:
            await self._in_lane(future.take_flush())
            self._move.on_flushed()
        elif type(step) is Prepare:
            await self._prepare(replica)
        elif replica.log.unsettled is not None:
            await self._pause(_CUT_SETTLES_WITHIN_S)
        else:
            source = self._switch(replica)
            if source is not None:
                self._leaving.add(self._name)
                try:
                    await self._leave(source)
                finally:
                    self._leaving.discard(self._name)

    async def _prepare(self, replica: Replica) -> None:
        """Flush the future replica, and add it to the checkpoints.

        If the topic acknowledges records only after they are flushed, all its records must be on
        the target disk before the switch, including records copied earlier. Otherwise, the switch
        would have to wait for a flush.
        """
        future, config, acknowledged_to = self._future, replica.log.config, 0
        # Only topics with flush settings guarantee that acknowledged records are on disk.
        if min(config.flush_messages, config.flush_ms) < LONG_MAX and replica.successor is None:
            replica.successor = future
            acknowledged_to = replica.log.log_end_offset
        await self._in_lane(future.take_flush())
        replica.sync_ended()
        home = self._store.futures.home(self._name)
        if home is not None:
            await self._in_lane(partial(self._store.moves.checkpoint, home.path))
        if future.recovery_point < acknowledged_to:
            self._move.on_flushed()  # flush again, from that point on
        else:
            self._move.on_prepared()

    async def _copy(self, offset: int, replica: Replica) -> None:
        throttle, clock = self._throttles.moves, self._replicas.clock
        wait_ms = throttle.wait_ms(clock.monotonic_ms())
        if wait_ms > 0 and replica.successor is None:  # otherwise acknowledgements would wait too
            await self._pause(min(wait_ms / 1000, _AGAIN_AFTER_S))  # the configured rate can change
            return
        future, log, truncations = self._future, replica.log, replica.log.truncations
        if log.is_cold(offset, TURN_BYTES):
            await self._in_lane(warming(log, offset, TURN_BYTES))
        # The topic's settings may have changed, and the copy must roll and index in the same way as
        # the original.
        if future.config is not log.config:
            future.config = log.config
        end_offset = log.log_end_offset
        failure: Exception | None = None
        try:
            records = await self._read(log, offset)
        except (OSError, CorruptData, OffsetOutOfRange) as error:
            failure = error
        if (
            # The replica may have been truncated, deleted or moved while it was read.
            log.truncations != truncations
            or log.log_start_offset > offset
            or future.log_end_offset != offset
            or self._current() is not replica
        ):
            return  # the replica has changed; the next step handles this
        if isinstance(failure, OSError):
            # The source disk has failed, so the replica goes offline and the move ends.
            replica.fail(failure)
            await self._pause(_AGAIN_AFTER_S)
        elif failure is not None:
            raise failure
        else:
            await self._begin_within(records)
            if log.truncations == truncations:
                self._append(records, end_offset)
                throttle.record(len(records), clock.monotonic_ms())
                self._move.on_copied(len(records), reached_end=future.log_end_offset >= end_offset)

    async def _begin_within(self, records: bytes) -> None:
        """If some records of the first batch have been deleted, start the log at the base offset of
        the batch.

        `RaiseStart` then raises the log start past the deleted records.
        """
        future = self._future
        is_empty = future.log_start_offset == future.log_end_offset
        if records and is_empty and read_header(records).base_offset < future.log_end_offset:
            future.start_at(read_header(records).base_offset, settles=False)
            await self._settle()

    async def _read(self, log: Log, offset: int) -> bytes:
        """Read the batches that are copied in one turn."""
        slices = log.read(offset, TURN_BYTES, log.log_end_offset)
        try:
            return await self._in_lane(partial(_bytes_of, slices))
        finally:
            for part in slices:
                part.release()

    def _append(self, records: bytes, end_offset: int) -> None:
        future = self._future
        if not records:
            raise _GivenUp(f"no batch can be read at offset {future.log_end_offset}")
        wall_ms = self._replicas.clock.wall_ms()
        future.append_as_follower(memoryview(records), wall_ms, end_offset)
        future.write_staged()

    def _switch(self, replica: Replica) -> Path | None:
        """Copy the remaining records and switch to the new log, all in this turn of the loop.

        Returns the old directory, or None if there is still too much to copy or the source disk
        fails.
        """
        log, future, name = replica.log, self._future, self._name
        try:
            log.write_staged()
            records = _rest(log, future.log_end_offset)
        except OSError as error:
            replica.fail(error)
            return None
        if records:
            self._append(records, log.log_end_offset)
        if future.log_end_offset < log.log_end_offset:
            self._move.on_copied(len(records), reached_end=False)
            return None
        source = self._store.directory_of(name)
        begin_offset = log.log_start_offset
        future.config = log.config
        # The replica now uses the new log, but on disk, the switch is not complete until `_leave`
        # has run. After a crash before that, both logs are found at startup and the move continues.
        replica.log = self._store.moves.promote(name)
        self._release(replica)
        for listener in self._listeners:
            listener.on_moved(replica)
        if future.log_start_offset != begin_offset:
            replica.log_start_moved()
        return source

    async def _leave(self, source: Path) -> None:
        """Delete the old replica after the new one has been given its final name."""
        name, log = self._name, self._future
        home = self._store.directory_of(name)
        while self._store.logs.get(name) is log:
            try:
                await self._in_lane(log.take_flush())
                self._store.futures.leave(name)
                await self._in_lane(partial(self._store.moves.complete, name, source))
                _log.info("%s has been moved from %s to %s", name, source, home)
            except DirectoryError as error:
                self._failures.on_error(error.directory, error)
            except OSError as error:
                if self._store.logs.get(name) is log:
                    self._failures.on_error(home, error)
                if not self._stopping.is_set():  # retry later, when descriptors may be available
                    await self._pause(_AGAIN_AFTER_S)
                    continue
            return

    # --- waiting ---------------------------------------------------------------------------------

    async def _pause(self, wait_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._stopping.wait()

    async def _in_lane(self, action: Callable[[], T]) -> T:
        return await run_in(self._replicas.threads.background, action)


def _rest(log: Log, offset: int) -> bytes:
    """Read from `offset` as many records as one step may copy, or nothing at the log end."""
    slices = log.read(offset, TURN_BYTES, log.log_end_offset)
    try:
        return _bytes_of(slices)
    finally:
        for part in slices:
            part.release()


def _bytes_of(slices: Sequence[FileSlice]) -> bytes:
    """Read the slices. Raises CorruptData if the file is truncated."""
    found = []
    for part in slices:
        data = cast(File, part.file).pread(part.size, part.position)
        if len(data) < part.size:
            raise CorruptData(f"a segment is truncated from byte {part.position}")
        found.append(data)
    return b"".join(found)
