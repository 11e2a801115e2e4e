"""Creates, deletes and renames logs on disk for LeaderAndIsr and StopReplica.

All changes are durable before the response is sent. First, the directories of all partitions in the
request are renamed. Then, each log directory is synced once in a thread.
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
from barnabas.types import NO_TOPIC_ID, TopicPartition, may_be_same_topic, uuid_text

if TYPE_CHECKING:
    from barnabas.broker.partitions.directory_failure import DirectoryFailures
    from barnabas.broker.partitions.replicas import Replicas

_log = logging.getLogger(__name__)


_THREADS = 4
_FILES_PER_STEP = 16 * _THREADS
"""The number of logs that are created in one step."""
_KEPT_TOGETHER = 256
"""New logs are hidden from the cycle collector in groups of this size.

Otherwise, the collector would walk all logs each time their number has grown by a quarter. With
10,000 logs, this blocks the loop for 120 ms. A log's objects are not part of any cycle, so they are
still freed when the log is deleted.
"""


class LogChanges:
    """Changes logs for the controller, one request at a time."""

    __slots__ = ("_failures", "_keep_objects", "_replicas", "_store", "made")

    def __init__(
        self, replicas: Replicas, failures: DirectoryFailures, keep_objects: Callable[[], None]
    ) -> None:
        self._keep_objects = keep_objects
        self._failures = failures
        self._replicas = replicas
        self._store = replicas.store
        self.made: dict[TopicPartition, int] = {}
        """The logs created since the process started, each with the broker epoch at the time of its
        creation.
        """

    def set_strays_aside(self, request: LeaderAndIsr, broker_epoch: int) -> Steps[None]:
        """Rename logs whose topics were deleted and created again while this broker was away."""
        homes: dict[Path, None] = {}
        for state in request.partitions:
            name = state.topic_partition
            log = self._store.logs.get(name)
            # A log without a topic id was created before KIP-516. It gets the topic's id when it is
            # hosted.
            if log is None or may_be_same_topic(log.topic_id or NO_TOPIC_ID, state.topic_id):
                continue
            replica = self._replicas.get(name)
            if replica is not None:
                if self.made.get(name) == broker_epoch:
                    # The log was created in this registration, and a topic is never deleted unless
                    # all live brokers take part. The request is therefore an outdated one from an
                    # abandoned connection.
                    _log.error(
                        "%s: ignoring a LeaderAndIsr request for an earlier topic of the same name",
                        name,
                    )
                    continue
                self._failures.removal.remove(replica)
            _log.warning(
                "%s belongs to an earlier topic of the same name, whose id is %s; renaming its "
                "directory with the suffix -stray. The renamed directory is never opened; remove "
                "it if it is not needed",
                log.directory,
                uuid_text(log.topic_id or b""),
            )
            home = self._set_aside(name, is_stray=True)
            if home is not None:
                homes[home] = None
            yield None
        yield from self.sync_names(homes)

    def set_damaged_aside(self, request: LeaderAndIsr) -> Steps[None]:
        """Rename damaged logs, so that new ones start empty and are copied from the leaders.

        Because the new log starts empty, a log is renamed only if it belongs to another topic or if
        this broker is no longer in the ISR.
        """
        homes: dict[Path, None] = {}
        damaged, broker_id = self._store.damaged, self._replicas.view.broker_id
        for state in request.partitions if damaged else ():
            name, image = state.topic_partition, state.partition
            log = damaged.get(name)
            if log is None:
                continue
            is_other = not may_be_same_topic(log.topic_id or NO_TOPIC_ID, state.topic_id)
            has_leader = image.leader not in (NO_LEADER, broker_id)
            # While this broker is in the ISR, its log may contain records that no other broker has.
            # The log is kept, and the partition is not hosted.
            if not (is_other or (has_leader and broker_id not in image.isr)):
                continue
            _log.warning(
                "%s is damaged: renaming it with the suffix -stray and fetching its records "
                "again from broker %d",
                log.directory.path_of(name),
                image.leader,
            )
            home = self._set_aside(name, is_stray=True)
            if home is not None:
                # From now on, the partition can be hosted with a new log.
                self._replicas.forget_offline(name)
                homes[home] = None
            yield None
        yield from self.sync_names(homes)

    def lay_out(self, states: Sequence[PartitionState]) -> Steps[None]:
        """Create the files of all new logs before opening any of the logs.

        Several threads create the files, so that they wait for the disk at the same time.
        """
        offline = self._replicas.offline
        waiting = [each for each in states if each.topic_partition not in offline]
        for start in range(0, len(waiting), _FILES_PER_STEP):
            placed: list[NewLog] = []
            for state in waiting[start : start + _FILES_PER_STEP]:
                with suppress(OSError, InvalidTopic):  # the error recurs when the role is assigned
                    name, topic_id = state.topic_partition, state.topic_id
                    placed.append(self._store.place(name, topic_id, is_new=state.is_new))
            yield [partial(_lay_out, placed[each::_THREADS]) for each in range(_THREADS)]

    def keep(self, made_count: int) -> None:
        """Hide new logs from the garbage collector whenever enough of them have been created."""
        if made_count % _KEPT_TOGETHER == 0:
            self._keep_objects()

    def note_made(self) -> Steps[None]:
        """Record that these logs are new.

        They must be synced before anything is written to them.
        """
        try:
            yield self._store.topic_ids.write
        except DirectoryError as error:
            self._failures.on_error(error.directory, error)

    def delete(self, name: TopicPartition) -> Path | None:
        """Delete a log. Return its directory, or None if the disk failed."""
        # If a log with this name is created later, it is a different log.
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
        """Sync these directories after logs in them were renamed.

        If a directory fails, take it offline.
        """
        for path in directories:
            try:
                yield partial(self._store.directories.sync_names, path)
            except DirectoryError as error:
                self._failures.on_error(error.directory, error)


def _lay_out(placed: Sequence[NewLog]) -> None:
    """Create files.

    Disk errors are ignored here, because they occur again when the log is opened.
    """
    with suppress(OSError):
        for new in placed:
            new.lay_out()
