"""The logs of one life of a simulated broker, with those parts of a `LogStore` that its shells use.

All logs are in one log directory, which can fail; there is another one without logs, because a
broker ends when its last directory fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from simulation.disk import Disk, SimLog

if TYPE_CHECKING:
    from barnabas.config import LogConfig
    from barnabas.types import TopicPartition
    from simulation.sim_broker import SimBroker

DIRECTORY = SimLog.directory
_OTHER = Path("another simulated disk")
_NO_LOGS: Mapping[TopicPartition, SimLog] = MappingProxyType({})


class LogStore:
    """Creates and deletes logs, and fails them all together."""

    __slots__ = ("_broker", "_disk", "directories", "high_watermarks", "topic_ids", "truncations")

    damaged: Mapping[TopicPartition, object] = MappingProxyType({})

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker
        disk = self._disk = broker.disk
        self.directories = _Directories(disk)
        self.topic_ids = _TopicIds()
        self.truncations = _Truncations(broker)
        self.high_watermarks = disk.high_watermarks
        for name, log in disk.logs.items():
            # Lower it immediately, because the log may be longer after the next crash, with
            # uncommitted records.
            found = min(disk.high_watermarks.get(name, 0), log.log_end_offset)
            disk.high_watermarks[name] = max(log.log_start_offset, found)

    @property
    def logs(self) -> Mapping[TopicPartition, SimLog]:
        return _NO_LOGS if self._disk.has_failed else self._disk.logs

    def directory_of(self, name: TopicPartition) -> Path:
        return DIRECTORY

    def place(self, name: TopicPartition, topic_id: bytes, *, is_new: bool) -> _NewLog:
        self._check()
        return _NewLog()

    def make(
        self, name: TopicPartition, topic_id: bytes, config: LogConfig, *, is_new: bool
    ) -> SimLog:
        """Create a log. Raises OSError if the disk has failed, because the log may exist there."""
        self._check()
        log = self._broker.cluster.machines.log(name, topic_id, self._disk)
        log.config = config
        self._disk.logs[name] = log
        return log

    def _check(self) -> None:
        if self._disk.has_failed:
            raise OSError("the disk has failed")

    def set_aside(self, name: TopicPartition, *, is_stray: bool = False) -> Path:
        """Delete a log."""
        if is_stray:
            text = "broker {} sets another {} aside"
            self._broker.cluster.world.tell(text, self._broker.broker_id, name)
        del self._disk.logs[name]
        self._disk.high_watermarks.pop(name, None)
        return DIRECTORY

    def fail_directory(self, directory: Path, error: OSError) -> Sequence[TopicPartition]:
        self._disk.has_failed = True
        text = "broker {} loses its log directory: {}"
        self._broker.cluster.world.tell(text, self._broker.broker_id, error)
        return list(self._disk.logs)


class _NewLog:
    """A place for a log."""

    __slots__ = ()

    def lay_out(self) -> None:
        """Do nothing, because there are no files."""


class _TopicIds:
    """The ids of new logs, which are on disk with their logs."""

    __slots__ = ()

    def write(self) -> None:
        """Do nothing, because they are already there."""


class _Directories:
    """The log directories."""

    __slots__ = ("_disk",)

    failed: Sequence[object] = ()

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    @property
    def online(self) -> Sequence[Path]:
        return (_OTHER,) if self._disk.has_failed else (_OTHER, DIRECTORY)

    def sync_names(self, directory: Path) -> None:
        """Do nothing, because deleted logs do not return."""


class _Truncations:
    """Cuts logs, and lowers their checkpoints, because records that replace the removed ones after
    the next crash must not be taken for committed."""

    __slots__ = ("_broker",)

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker

    def begin(self, name: TopicPartition, offset: int) -> None:
        replica = self._broker.replica(name)
        gone = replica.log.truncate(offset)
        self._lower(name, replica.log)
        self._broker.cluster.checks.truncated(replica, offset, gone)

    def begin_start_at(self, name: TopicPartition, offset: int) -> None:
        replica = self._broker.replica(name)
        replica.log.start_at(offset)
        self._lower(name, replica.log)
        self._broker.cluster.checks.started_at(replica, offset)

    def _lower(self, name: TopicPartition, log: SimLog) -> None:
        checkpointed = self._broker.disk.high_watermarks
        checkpointed[name] = min(checkpointed.get(name, 0), log.log_end_offset)
