"""The files of logs that are about to be made: on most disks what takes longest about them.

new = store.place(name, topic_id)     where it goes, decided once
new.lay_out()                         its files; in any thread, and beside those of others
store.make(name, topic_id, config)    the log; lays out what is not there yet
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
from barnabas.types import TopicPartition


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
        """Make the directory and what an empty log has in it, if they are not there; durable with
        the next sync of both. OSError."""
        if self.is_laid_out:
            return
        # Before its directory is there: from then on a crash may be survived by both.
        self._forget_namesake()
        self._files.make_directory(self.path)
        begin_without_gaps(self._files, self.path)
        write_topic_id(self._files, self.path, self.topic_id, sync=False)
        Segment.create(self._files, self.path, 0)
        self.is_laid_out = True


class Places:
    """Which directory each log goes to: the one with the fewest, those that are only placed
    included."""

    __slots__ = ("_files", "_forget_namesake", "_new", "hosted")

    def __init__(
        self, files: Files, forget_namesake: Callable[[LogDirectory, TopicPartition], None]
    ) -> None:
        """`forget_namesake`: takes an earlier log of this name out of the checkpoints, durably."""
        self._files = files
        self._forget_namesake = forget_namesake
        self._new: dict[TopicPartition, NewLog] = {}
        self.hosted = Counter[LogDirectory]()
        """How many logs each has, or is to have."""

    def place(
        self, name: TopicPartition, topic_id: bytes, directories: Sequence[LogDirectory]
    ) -> NewLog:
        """In one of these; where it was placed before, as long as that is one of them."""
        before = self._new.get(name)
        if before is not None and before.directory in directories:
            if before.topic_id == topic_id:
                return before
            directory = before.directory
        else:
            directory = min(directories, key=self.hosted.__getitem__)
            self.hosted[directory] += 1
        forget = partial(self._forget_namesake, directory, name)
        path = directory.path_of(name)
        new = self._new[name] = NewLog(self._files, directory, path, topic_id, forget)
        return new

    def made(self, name: TopicPartition) -> None:
        """It is a log now."""
        del self._new[name]
