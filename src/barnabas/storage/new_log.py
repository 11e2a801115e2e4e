"""Creation of the files of new logs, which on most disks takes longest of all.

new = store.place(name, topic_id)     chooses the directory, once
new.lay_out()                         creates the files; in any thread, and in parallel
store.make(name, topic_id, config)    the log; creates files that do not exist yet
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from barnabas.storage.directory import LogDirectory
from barnabas.storage.files import Files
from barnabas.storage.gaps import begin_without_gaps
from barnabas.storage.partition_metadata import write_topic_id
from barnabas.storage.segment import Segment
from barnabas.topic_name import check_directory_name
from barnabas.types import TopicPartition

_MOST_PREFERRED = 10_000


class NewLog:
    """A place for one partition."""

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
        """Create the directory and files of an empty log, if they do not exist; durable with the
        next sync of both. OSError."""
        if self.is_laid_out:
            return
        # Before its directory exists: from then on both may survive a crash.
        self._forget_namesake()
        self._files.make_directory(self.path)
        begin_without_gaps(self._files, self.path)
        write_topic_id(self._files, self.path, self.topic_id, sync=False)
        Segment.create(self._files, self.path, 0)
        self.is_laid_out = True


class Places:
    """The choice of a log's directory: the one that was wished for (AlterReplicaLogDirs), else the
    one with the fewest logs, including placed ones."""

    __slots__ = ("_files", "_forget_namesake", "_new", "_preferred", "hosted")

    def __init__(
        self, files: Files, forget_namesake: Callable[[LogDirectory, TopicPartition], None]
    ) -> None:
        """`forget_namesake`: removes an earlier log of this name from the checkpoints, durably."""
        self._files = files
        self._forget_namesake = forget_namesake
        self._new: dict[TopicPartition, NewLog] = {}
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        self.hosted = Counter[LogDirectory]()
        """The number of logs of each, including placed ones."""

    def place(
        self, name: TopicPartition, topic_id: bytes, directories: Sequence[LogDirectory]
    ) -> NewLog:
        """Place a log in one of these; where it was placed before, if that is one of them.

        Raises InvalidTopic for a name that no directory may have.
        """
        check_directory_name(name)
        before = self._new.get(name)
        if before is not None and before.directory in directories:
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
        """Place the log there, once it is created; the oldest of too many wishes are forgotten."""
        self._preferred.pop(name, None)
        self._preferred[name] = directory
        if len(self._preferred) > _MOST_PREFERRED:
            del self._preferred[next(iter(self._preferred))]

    def made(self, name: TopicPartition) -> None:
        """The log has been created."""
        del self._new[name]
