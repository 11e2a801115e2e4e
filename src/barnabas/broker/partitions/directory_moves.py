"""Moves replicas between this broker's log directories while they are served (KIP-113).

A task for each move carries out what `replication.directory_move` says, in turns of 64 KiB: reading
and flushing wait in threads, appending is what a follower does. As many moves are under way as
there are directories; more wait. A move goes on after a restart, with the first LeaderAndIsr.

The switch is one turn of the event loop, so that requests find the replica as before: what is
staged is copied too, and what waits, waits for offsets. The log is another object then: whoever
awaits something must look at `replica.log` again.

A target that fails ends the move alone, and takes its own directory offline; a source that fails
takes the replica offline, as ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from barnabas.broker.partitions.replica_listener import ReplicaListener
from barnabas.broker.runtime.disk_threads import run_in
from barnabas.config.topic_keys import LONG_MAX
from barnabas.errors import (
    CorruptData,
    InvalidTopic,
    KafkaStorageError,
    LogDirNotFound,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    ReplicaNotAvailable,
)
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
from barnabas.storage.cold import warming
from barnabas.storage.directory import DirectoryError, future_name_fits
from barnabas.storage.files import File

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica
    from barnabas.broker.partitions.replica_removal import ReplicaRemoval
    from barnabas.broker.partitions.throttles import Throttles
    from barnabas.clock import Random
    from barnabas.storage.log import Log
    from barnabas.types import FileSlice, TopicPartition

_log = logging.getLogger(__name__)

T = TypeVar("T")

_AGAIN_AFTER_S = 0.5
_CUT_SETTLES_WITHIN_S = 0.05
_LEFT_WITHIN_S = 10.0


class _GivenUp(Exception):
    """The move cannot be completed; the message says why."""


class DirectoryMoves(ReplicaListener):
    """The moves of a broker, from `alter` or a restart to their ends; `stop` holds them up."""

    def __init__(
        self,
        removal: ReplicaRemoval,
        listeners: Sequence[ReplicaListener],
        throttles: Throttles,
        random: Random,
    ) -> None:
        self._replicas = removal.replicas
        self._store = removal.replicas.store
        self._removal = removal
        self._listeners = listeners
        self._throttles = throttles
        self._random = random
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        self._leaving: set[TopicPartition] = set()  # have switched, which is not on disk yet
        self._stopping = asyncio.Event()
        self._turns = asyncio.Semaphore(max(1, len(self._store.online_directories)))

    @property
    def under_way(self) -> frozenset[TopicPartition]:
        """The partitions that are being moved, or have to wait for that."""
        return frozenset(self._tasks)

    async def stop(self) -> None:
        """Return when nothing is copied any more; a later start goes on with it."""
        self._stopping.set()
        for task in list(self._tasks.values()):
            await task

    # --- what is asked for -----------------------------------------------------------------------

    async def alter(self, name: TopicPartition, log_dir: str) -> None:
        """Begin to move a replica to a directory, or remember that for when it is created.

        Another move of it is given up; so is one from there, if it is there already. Raises
        InvalidTopic (the name is too long), LogDirNotFound, KafkaStorageError, ReplicaNotAvailable
        and UnknownTopicOrPartition. The controller's requests have to wait meanwhile.
        """
        if not future_name_fits(name):
            raise InvalidTopic(f"the name of {name.topic} is too long for a replica that moves")
        path, store = self._path(log_dir), self._store
        replica = self._replicas.get(name)
        if replica is None:
            if not self._replicas.is_offline(name) and name not in store.logs:
                store.prefer(name, path)
            try:
                replica = self._replicas.hosted(name)
            except NotLeaderOrFollower as error:
                raise ReplicaNotAvailable(f"{error}; it will be created in {log_dir}") from error
        target = store.futures.home(name)
        if target is not None and target.path != path:
            self._drop(name)
        if store.directory_of(name) == path:
            return
        if store.futures.get(name) is None:
            if store.failed_directories:
                raise KafkaStorageError("no replica is moved while a log directory is offline")
            await self._has_left(name)
            await self._begin(replica, path)
        self._go_on(name)

    def _path(self, log_dir: str) -> Path:
        """The directory of this absolute path, as DescribeLogDirs has it."""
        store = self._store
        for path in store.online_directories:
            if str(path.absolute()) == log_dir:
                return path
        if log_dir in (str(path.absolute()) for path in store.failed_directories):
            raise KafkaStorageError(f"the log directory {log_dir} is offline")
        raise LogDirNotFound(f"{log_dir} is not in log.dirs of this broker")

    async def _has_left(self, name: TopicPartition) -> None:
        """Return when the end of a move before is on disk: no other may begin, or a crash would
        leave it unclear which directory counts. KafkaStorageError if that takes too long."""
        if name in self._leaving:
            await asyncio.wait([self._tasks[name]], timeout=_LEFT_WITHIN_S)
        if name in self._leaving or self._store.futures.is_leaving(name):
            raise KafkaStorageError(f"{name} has just been moved, which is not on disk yet")

    async def _begin(self, replica: Replica, path: Path) -> None:
        name, store = replica.topic_partition, self._store
        unique = self._random.below(1 << 128).to_bytes(16)
        try:
            if not self._replicas.hosts(replica):
                raise KafkaStorageError(f"the log directory of {name} has just failed")
            new = store.place_future(name, path, unique)
            await self._in_lane(partial(store.lay_out_future, new))
            log = store.logs.get(name)
            if log is None or path not in store.online_directories:
                raise KafkaStorageError(f"a log directory of {name} has just failed")
            store.futures.open(new, log)
        except OSError as error:
            self._removal.directory_failed(path, error)
            raise KafkaStorageError(str(error)) from error
        _log.info("moving %s to %s", name, path)

    def _drop(self, name: TopicPartition) -> None:
        try:
            self._store.futures.drop(name)
        except DirectoryError as error:
            self._removal.directory_failed(error.directory, error)

    # --- roles -----------------------------------------------------------------------------------

    def leading(self, replica: Replica) -> None:
        self._go_on(replica.topic_partition)

    def following(self, replica: Replica, leader_id: int) -> None:
        self._go_on(replica.topic_partition)

    def _go_on(self, name: TopicPartition) -> None:
        """Have a task carry out the partition's move, if there is one."""
        if name not in self._tasks and self._store.futures.get(name) is not None:
            self._tasks[name] = asyncio.get_running_loop().create_task(self._run(name))

    # --- a move ----------------------------------------------------------------------------------

    async def _run(self, name: TopicPartition) -> None:
        try:
            while not self._stopping.is_set():
                future = self._store.futures.get(name)
                if future is None or self._replicas.get(name) is None:
                    return
                async with self._turns:
                    await self._move(name, future)
        finally:
            del self._tasks[name]

    async def _move(self, name: TopicPartition, future: Log) -> None:
        """Return when it is over, or has to begin again."""
        home = self._store.futures.home(name)
        if home is None:
            return
        last: Replica | None = None
        try:
            await self._align(name, future)
            move = DirectoryMove()
            while (replica := self._current(name, future)) is not None:
                last = replica
                await self._settle(future)
                current = Bounds(replica.log.log_start_offset, replica.log.log_end_offset)
                there = Bounds(future.log_start_offset, future.log_end_offset)
                await self._carry_out(move.next_step(current, there), move, replica, future)
                await asyncio.sleep(0)
        except OSError as error:
            if self._store.futures.get(name) is future:
                await self._failed(name, home.path, error)
        except (_GivenUp, CorruptData) as reason:
            _log.error("%s stays in its log directory: %s", name, reason)
            self._drop(name)
        finally:
            self._release(last)

    def _release(self, replica: Replica | None) -> None:
        """Let everything be acknowledged that waits for a flush of the future replica."""
        if replica is not None and replica.successor is not None:
            replica.successor = None
            replica.sync_ended()
            self._replicas.start_flush(replica)

    async def _failed(self, name: TopicPartition, target: Path, error: OSError) -> None:
        """The target's disk refused: it goes offline, unless descriptors are short."""
        self._removal.directory_failed(target, error)
        future = self._store.futures.get(name)
        if future is not None and future.is_failed:
            self._drop(name)
        await self._pause(_AGAIN_AFTER_S)

    def _current(self, name: TopicPartition, future: Log) -> Replica | None:
        """The replica, as long as it moves to this future one, and the broker runs."""
        if self._stopping.is_set() or self._store.futures.get(name) is not future:
            return None
        return self._replicas.get(name)

    async def _align(self, name: TopicPartition, future: Log) -> None:
        """Cut a future replica that was found at the start where it leaves the current one, which
        may have been cut, or lost its end, without the future one."""
        while (replica := self._current(name, future)) is not None:
            log = replica.log
            leaders = EpochEnd(*log.epoch_end_offset(future.latest_epoch))
            at = aligned_offset(future, leaders, replica.high_watermark)
            self._store.cut_future(name, min(at.offset, log.log_end_offset))
            await self._settle(future)
            if at.is_final or future.log_end_offset <= future.log_start_offset:
                return

    async def _settle(self, future: Log) -> None:
        """Have on disk what was cut, and know the producers there."""
        cut = future.unsettled
        if cut is not None:
            for _ in cut.learn():
                await asyncio.sleep(0)
            await self._in_lane(cut.make_durable)
            if cut.before_writes is not None:
                await self._in_lane(cut.before_writes)
            cut.has_become_durable()
            if future.unsettled is cut:
                future.settle()

    async def _carry_out(
        self, step: Step, move: DirectoryMove, replica: Replica, future: Log
    ) -> None:
        if type(step) is Copy:
            await self._copy(step.offset, move, replica, future)
        elif type(step) is StartAt:
            future.start_at(step.offset, settles=False)
            await self._settle(future)
        elif type(step) is RaiseStart:
            future.raise_log_start(step.offset)
            now_ms = self._replicas.clock.monotonic_ms()
            future.enforce_retention(now_ms, future.log_end_offset, None)
        elif type(step) is Flush:
            await self._in_lane(future.take_flush())
            move.flushed()
        elif type(step) is Prepare:
            await self._prepare(move, replica, future)
        elif replica.log.unsettled is not None:
            await self._pause(_CUT_SETTLES_WITHIN_S)
        else:
            name, source = replica.topic_partition, self._switch(move, replica, future)
            if source is not None:
                self._leaving.add(name)
                try:
                    await self._leave(name, source, future)
                finally:
                    self._leaving.discard(name)

    async def _prepare(self, move: DirectoryMove, replica: Replica, future: Log) -> None:
        """Flush it, and name it in the checkpoints.

        Where records are acknowledged when they are on disk, they have to be there from now on, so
        that the switch need not wait for it; and those from before as well.
        """
        config, acknowledged_to = replica.log.config, 0
        if min(config.flush_messages, config.flush_ms) < LONG_MAX and replica.successor is None:
            replica.successor = future
            acknowledged_to = replica.log.log_end_offset
        await self._in_lane(future.take_flush())
        replica.sync_ended()
        home = self._store.futures.home(replica.topic_partition)
        if home is not None:
            await self._in_lane(partial(self._store.checkpoint_directory, home.path))
        if future.recovery_point < acknowledged_to:
            move.flushed()  # once more, from there on
        else:
            move.prepared()

    async def _copy(self, offset: int, move: DirectoryMove, replica: Replica, future: Log) -> None:
        throttle, clock = self._throttles.moves, self._replicas.clock
        wait_ms = throttle.wait_ms(clock.monotonic_ms())
        if wait_ms > 0 and replica.successor is None:  # else acknowledgements would wait, too
            await self._pause(min(wait_ms / 1000, _AGAIN_AFTER_S))  # the rate may change
            return
        log, truncations = replica.log, replica.log.truncations
        if log.is_cold(offset, TURN_BYTES):
            await self._in_lane(warming(log, offset, TURN_BYTES))
        if future.config is not log.config:
            future.config = log.config
        end_offset = log.log_end_offset
        failure: Exception | None = None
        try:
            records = await self._read(log, offset)
        except (OSError, CorruptData, OffsetOutOfRange) as error:
            failure = error
        if (
            log.truncations != truncations
            or log.log_start_offset > offset
            or future.log_end_offset != offset
            or self._current(replica.topic_partition, future) is not replica
        ):
            return  # it has changed in the meantime: the next step sees how
        if isinstance(failure, OSError):
            replica.fail(failure)
            await self._pause(_AGAIN_AFTER_S)
        elif failure is not None:
            raise failure
        else:
            await self._begin_within(records, future)
            if log.truncations == truncations:
                self._append(records, future)
                throttle.record(len(records), clock.monotonic_ms())
                move.copied(len(records), reached_end=future.log_end_offset >= end_offset)

    async def _begin_within(self, records: bytes, future: Log) -> None:
        """If records of the first batch are deleted, the log has to begin in front of it, and then
        to start behind: `RaiseStart`."""
        is_empty = future.log_start_offset == future.log_end_offset
        if records and is_empty and read_header(records).base_offset < future.log_end_offset:
            future.start_at(read_header(records).base_offset, settles=False)
            await self._settle(future)

    async def _read(self, log: Log, offset: int) -> bytes:
        """The batches of one turn."""
        slices = log.read(offset, TURN_BYTES, log.log_end_offset)
        try:
            return await self._in_lane(partial(_bytes_of, slices))
        finally:
            for part in slices:
                part.release()

    def _append(self, records: bytes, future: Log) -> None:
        if not records:
            raise _GivenUp(f"no batch can be read at offset {future.log_end_offset}")
        future.append_as_follower(memoryview(records), self._replicas.clock.wall_ms())
        future.write_staged()

    def _switch(self, move: DirectoryMove, replica: Replica, future: Log) -> Path | None:
        """Copy the rest and switch, within this turn of the loop; the directory that was left, or
        None if there is too much for that, or the source's disk refuses."""
        log, name = replica.log, replica.topic_partition
        try:
            log.write_staged()
            records = _rest(log, future.log_end_offset)
        except OSError as error:
            replica.fail(error)
            return None
        if records:
            self._append(records, future)
        if future.log_end_offset < log.log_end_offset:
            move.copied(len(records), reached_end=False)
            return None
        source = self._store.directory_of(name)
        begin_offset = log.log_start_offset
        future.config = log.config
        replica.log = self._store.promote(name)
        self._release(replica)
        for listener in self._listeners:
            listener.moved(replica)
        if future.log_start_offset != begin_offset:
            replica.log_start_moved()
        return source

    async def _leave(self, name: TopicPartition, source: Path, log: Log) -> None:
        """Delete the replica that was left, once the other one has its name for good."""
        home = self._store.directory_of(name)
        while self._store.logs.get(name) is log:
            try:
                await self._in_lane(log.take_flush())
                self._store.futures.leave(name)
                await self._in_lane(partial(self._store.moved, name, source))
                _log.info("%s has been moved from %s to %s", name, source, home)
            except DirectoryError as error:
                self._removal.directory_failed(error.directory, error)
            except OSError as error:
                if self._store.logs.get(name) is log:
                    self._removal.directory_failed(home, error)
                if not self._stopping.is_set():  # there may be descriptors later
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
    """What can be read from there on in one turn; nothing at the log's end."""
    slices = log.read(offset, TURN_BYTES, log.log_end_offset)
    try:
        return _bytes_of(slices)
    finally:
        for part in slices:
            part.release()


def _bytes_of(slices: Sequence[FileSlice]) -> bytes:
    """Raises CorruptData where the file has lost its end."""
    found = []
    for part in slices:
        data = cast(File, part.file).pread(part.size, part.position)
        if len(data) < part.size:
            raise CorruptData(f"a segment has lost its end, from byte {part.position} on")
        found.append(data)
    return b"".join(found)
