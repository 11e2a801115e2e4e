"""Creates the files of new logs. On most disks, this is the slowest step of creating a log.

    new = store.place(name, topic_id)     chooses the directory, once
    new.lay_out()                         creates the files; may run in parallel in threads
    store.make(name, topic_id, config)    returns the log, and creates any missing files
    store.topic_ids.write()               writes the topic ids of all new logs to disk with one sync

Nothing may be written to a log before its topic id is on disk. Otherwise, after a power failure, it
could be unknown to which topic of that name the records belong.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.storage.damaged_logs import DamagedLogs
from barnabas.storage.directory import DirectoryError, LogDirectory
from barnabas.storage.files import Files
from barnabas.storage.offset_checkpoints import OffsetCheckpoints
from barnabas.topic_name import check_directory_name
from barnabas.types import NO_TOPIC_ID, TopicPartition

if TYPE_CHECKING:
    from barnabas.storage.future_logs import FutureLogs
    from barnabas.storage.log import Log

_MOST_PREFERRED = 10_000


class NewLog:
    """The place that was chosen for the log of one partition."""

    __slots__ = ("_files", "_forget_namesake", "directory", "is_laid_out", "path", "topic_id")

    def __init__(
        self,
        files: Files,
        directory: LogDirectory,
        path: Path,
        topic_id: bytes,
        forget_namesake: Callable[[], None],
    ) -> None:
        self._files = files
        self.directory = directory
        self.path = path
        self.topic_id = topic_id
        self._forget_namesake = forget_namesake
        self.is_laid_out = False

    def lay_out(self) -> None:
        """Create the directory and the files of an empty log if they do not exist.

        The files are durable when both directories have been synced. Raises OSError.
        """
        if self.is_laid_out:
            return
        # Import this with the first log.
        from barnabas.storage.gaps import begin_without_gaps
        from barnabas.storage.partition_metadata import write_topic_id
        from barnabas.storage.segment import Segment

        # Do this before the directory is created. Otherwise, a crash could leave the new directory
        # together with the old checkpoint entries.
        self._forget_namesake()
        self._files.make_directory(self.path)
        begin_without_gaps(self._files, self.path)
        if self.topic_id != NO_TOPIC_ID:
            write_topic_id(self._files, self.path, self.topic_id, sync=False)
        Segment.create(self._files, self.path, 0)
        self.is_laid_out = True


class Places:
    """Chooses the log directories for new logs.

    If AlterReplicaLogDirs has requested a directory for a log, the log is placed there. Otherwise,
    it is placed in the directory that has the fewest logs, counting those that were placed but not
    created yet.
    """

    __slots__ = ("_files", "_forget_namesake", "_new", "_preferred", "hosted")

    def __init__(
        self, files: Files, forget_namesake: Callable[[LogDirectory, TopicPartition], None]
    ) -> None:
        """`forget_namesake` durably removes an old log of the same name from the checkpoints."""
        self._files = files
        self._forget_namesake = forget_namesake
        self._new: dict[TopicPartition, NewLog] = {}
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        self.hosted = Counter[LogDirectory]()
        """The number of logs in each directory, including those that were placed but not created
        yet.
        """

    def place(
        self, name: TopicPartition, topic_id: bytes, directories: Sequence[LogDirectory]
    ) -> NewLog:
        """Choose one of these directories for a log. If the log was already placed in one of them,
        it stays there.

        Raises InvalidTopic if no directory can have that name.
        """
        # A damaged request or znode may contain a name with a slash, which would lead out of the
        # directory.
        check_directory_name(name)
        before = self._new.get(name)
        if before is not None and before.directory in directories:
            # A thread may already have created files in this place.
            if before.topic_id == topic_id:
                return before
            directory = before.directory
        else:
            preferred = self._preferred.pop(name, None)
            if preferred is not None and preferred in directories:
                directory = preferred
            else:
                directory = min(directories, key=self.hosted.__getitem__)
            self.hosted[directory] += 1
        forget = partial(self._forget_namesake, directory, name)
        path = directory.path_of(name)
        new = self._new[name] = NewLog(self._files, directory, path, topic_id, forget)
        return new

    def prefer(self, name: TopicPartition, directory: LogDirectory) -> None:
        """Remember in which directory a log is to be created.

        If too many logs are waiting to be created, the oldest request is forgotten.
        """
        self._preferred.pop(name, None)
        self._preferred[name] = directory
        if len(self._preferred) > _MOST_PREFERRED:
            del self._preferred[next(iter(self._preferred))]

    def forget(self, name: TopicPartition) -> None:
        """Forget the place of a log after the log has been created."""
        del self._new[name]


class NewTopicIds:
    """Stores the topic ids of new logs until they are in the files that `topic_ids` manages."""

    __slots__ = ("_checkpoints", "_damaged", "_files", "_futures", "_logs", "_made", "_noting")

    def __init__(
        self,
        files: Files,
        logs: Mapping[TopicPartition, Log],
        futures: FutureLogs,
        damaged: DamagedLogs,
        checkpoints: OffsetCheckpoints,
    ) -> None:
        self._files = files
        self._logs = logs
        self._futures = futures
        self._damaged = damaged
        self._checkpoints = checkpoints
        self._made: dict[LogDirectory, dict[TopicPartition, bytes]] = {}
        self._noting = threading.Lock()

    def add(self, name: TopicPartition, directory: LogDirectory, topic_id: bytes) -> None:
        """Add a new log, whose id the next `write` stores."""
        if topic_id != NO_TOPIC_ID:
            self._made.setdefault(directory, {})[name] = topic_id

    def write(self) -> None:
        """Durably write the topic ids of the logs that were created since the last call.

        The ids stay in `.barnabas_topic_ids` until the files of the logs themselves are durable.
        This may run in a thread. Raises DirectoryError.
        """
        with self._noting:
            # If another log is created while this thread waits, leave it to the next call.
            made, self._made = self._made, {}
            for directory, ids in made.items():
                # Keep the id of a damaged log in this file, because the log's own files cannot be
                # trusted.
                known = self._damaged.topic_ids_in(directory) | {
                    name: log.topic_id
                    for name in self._checkpoints.names_in(directory)
                    if (log := self._logs.get(name)) is not None and log.topic_id is not None
                }
                try:
                    directory.topic_ids.add(ids, known)
                except OSError as cause:
                    raise DirectoryError(directory.path, cause) from cause

    def give(self, name: TopicPartition, topic_id: bytes) -> None:
        """Write a topic id for a log that was created before Kafka had topic ids (KIP-516). Raises
        OSError.
        """
        # only old logs need this
        from barnabas.storage.partition_metadata import write_topic_id

        log = self._logs[name]
        for each in filter(None, (log, self._futures.get(name))):
            write_topic_id(self._files, each.directory, topic_id)
            each.topic_id = topic_id
