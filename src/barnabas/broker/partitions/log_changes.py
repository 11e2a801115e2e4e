"""Changes on disk what LeaderAndIsr and StopReplica ask for: sets logs aside, makes, deletes them.

What is answered is durable: names are changed first, for all partitions of a request, and then each
log directory is synced once, in a thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.broker.runtime.steps import Steps
from barnabas.cluster.controller_requests import LeaderAndIsr, PartitionState
from barnabas.cluster.image import NO_LEADER
from barnabas.errors import InvalidTopic
from barnabas.storage.directory import DirectoryError
from barnabas.storage.new_log import NewLog
from barnabas.types import TopicPartition, uuid_text

if TYPE_CHECKING:
    from barnabas.broker.partitions.directory_failure import DirectoryFailures
    from barnabas.broker.partitions.replicas import Replicas

_log = logging.getLogger(__name__)


_THREADS = 4
_FILES_PER_STEP = 16 * _THREADS
"""The logs whose files are made in one step."""
_KEPT_TOGETHER = 256
"""After so many new logs the cycle collector need not look at them again: else it walks all of them
each time that they have grown by a quarter, 120 ms on the loop for 10,000. None of their objects is
part of a cycle, so what is deleted goes all the same."""


class LogChanges:
    """Used by one request of the controller at a time."""

    __slots__ = ("_failures", "_keep_objects", "_replicas", "_store", "made")

    def __init__(
        self, replicas: Replicas, failures: DirectoryFailures, keep_objects: Callable[[], None]
    ) -> None:
        self._keep_objects = keep_objects
        self._failures = failures
        self._replicas = replicas
        self._store = replicas.store
        self.made: dict[TopicPartition, int] = {}
        """Logs that were made in this life, and the broker epoch in which."""

    def set_strays_aside(self, request: LeaderAndIsr, broker_epoch: int) -> Steps[None]:
        """Rename logs of topics that were deleted, and made again, without this broker's notice."""
        homes: dict[Path, None] = {}
        for state in request.partitions:
            name = state.topic_partition
            log = self._store.logs.get(name)
            # A log without an id is from before KIP-516, and gets that of its topic when it is
            # hosted.
            if log is None or log.topic_id in (None, state.topic_id):
                continue
            replica = self._replicas.get(name)
            if replica is not None:
                if self.made.get(name) == broker_epoch:
                    # It was made for this registration, and no topic is deleted without its live
                    # brokers: the request is older, from a connection that was given up.
                    _log.error("%s: a LeaderAndIsr of another topic of that name is refused", name)
                    continue
                self._failures.removal.remove(replica)
            _log.warning(
                "%s belongs to another topic of that name, whose id is %s: its directory is set "
                "aside with the suffix -stray, and never opened; remove it if it is not needed",
                log.directory,
                uuid_text(log.topic_id or b""),
            )
            home = self._set_aside(name, is_stray=True)
            if home is not None:
                homes[home] = None
            yield None
        yield from self.sync_names(homes)

    def set_damaged_aside(self, request: LeaderAndIsr) -> Steps[None]:
        """Rename damaged logs that begin again, as those of another topic, or as copies of their
        leaders'. Only once the ISR does not count on this broker: the copy is empty at first."""
        homes: dict[Path, None] = {}
        damaged, broker_id = self._store.damaged, self._replicas.view.broker_id
        for state in request.partitions if damaged else ():
            name, image = state.topic_partition, state.partition
            log = damaged.get(name)
            if log is None:
                continue
            is_other = log.topic_id not in (None, state.topic_id)
            has_leader = image.leader not in (NO_LEADER, broker_id)
            # As long as the ISR counts on this broker its log may hold what no other has: then it
            # stays, and the partition is not hosted.
            if not (is_other or (has_leader and broker_id not in image.isr)):
                continue
            _log.warning(
                "%s is damaged: it is set aside with the suffix -stray, and its records are "
                "fetched again from broker %d",
                log.directory.path_of(name),
                image.leader,
            )
            home = self._set_aside(name, is_stray=True)
            if home is not None:
                # From now on the partition may be hosted, with a new log.
                self._replicas.forget_offline(name)
                homes[home] = None
            yield None
        yield from self.sync_names(homes)

    def lay_out(self, states: Sequence[PartitionState]) -> Steps[None]:
        """Have the files of logs that are about to be made there, all of them before any is: the
        disk is waited for by several threads at once."""
        offline = self._replicas.offline
        waiting = [each for each in states if each.topic_partition not in offline]
        for start in range(0, len(waiting), _FILES_PER_STEP):
            placed: list[NewLog] = []
            for state in waiting[start : start + _FILES_PER_STEP]:
                with suppress(OSError, InvalidTopic):  # either is met again with its role
                    name, topic_id = state.topic_partition, state.topic_id
                    placed.append(self._store.place(name, topic_id, is_new=state.is_new))
            yield [partial(_lay_out, placed[each::_THREADS]) for each in range(_THREADS)]

    def keep(self, made_count: int) -> None:
        """Exempt new logs from the cycle collector, each time that so many were made."""
        if made_count % _KEPT_TOGETHER == 0:
            self._keep_objects()

    def note_made(self) -> Steps[None]:
        """Have the logs that were just made on disk, before anything is written to them."""
        try:
            yield self._store.topic_ids.write
        except DirectoryError as error:
            self._failures.on_error(error.directory, error)

    def delete(self, name: TopicPartition) -> Path | None:
        """Delete a log; return where it lay, or None if the disk refuses: its directory failed."""
        # A log of that name that is made later is another one.
        self.made.pop(name, None)
        return self._set_aside(name)

    def _set_aside(self, name: TopicPartition, *, is_stray: bool = False) -> Path | None:
        try:
            return self._store.set_aside(name, is_stray=is_stray)
        except DirectoryError as error:
            self._replicas.mark_offline(name)
            self._failures.on_error(error.directory, error)
            return None

    def sync_names(self, directories: Iterable[Path]) -> Steps[None]:
        """Have what was set aside in these directories stay so. One that refuses has failed."""
        for path in directories:
            try:
                yield partial(self._store.directories.sync_names, path)
            except DirectoryError as error:
                self._failures.on_error(error.directory, error)


def _lay_out(placed: Sequence[NewLog]) -> None:
    """Make files as far as the disk allows; what fails is met again when the log is made."""
    with suppress(OSError):
        for new in placed:
            new.lay_out()
