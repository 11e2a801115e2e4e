"""Truncates many logs of a broker while waiting for the disk only once.

When a follower's logs have diverged, it truncates them on the event loop by calling `begin` for
every partition in a response. The other steps are slow or have to wait for the disk, so they are
done for all of these logs together:

    begin    on the loop: moves the log end immediately, even for readers
    learn    on the loop, in steps: reads the log to find the producers at the new end
    settle   in a thread: cuts and syncs the files, and lowers the checkpoints that exceed the logs,
             once for each directory

If something is written to a log before these steps are complete, the write first completes the
log's truncation (`Log.settle`). Otherwise, removed records might reappear before the new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from barnabas.storage.directory import LogDirectory
from barnabas.storage.future_logs import FutureLogs
from barnabas.storage.offset_checkpoints import OffsetCheckpoints
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.storage.log import Log
    from barnabas.storage.truncation import Cut


class LogTruncations:
    """Truncates the logs of a store, including their future replicas and their checkpoints."""

    __slots__ = ("_checkpoints", "_futures", "_homes", "_logs")

    def __init__(
        self,
        logs: Mapping[TopicPartition, Log],
        homes: Mapping[TopicPartition, LogDirectory],
        futures: FutureLogs,
        checkpoints: OffsetCheckpoints,
    ) -> None:
        self._logs = logs
        self._homes = homes
        self._futures = futures
        self._checkpoints = checkpoints

    def truncate(self, name: TopicPartition, offset: int) -> None:
        """Truncate a log, and lower the checkpoints that are now above its end."""
        self.begin(name, offset)
        self._logs[name].settle()

    def start_at(self, name: TopicPartition, offset: int) -> None:
        """Empty a log and restart it at an offset, in the same way as `truncate`."""
        self.begin_start_at(name, offset)
        self._logs[name].settle()

    def begin(self, name: TopicPartition, offset: int) -> None:
        """Truncate a log in memory only. `learn` and `settle` do the slow part of the work."""
        log = self._logs[name]
        log.truncate(offset, settles=False)
        self._futures.cut(name, log.log_end_offset, self._checkpoints.lower)
        self._lower_checkpoints(name)

    def begin_start_at(self, name: TopicPartition, offset: int) -> None:
        """Empty a log and restart it at an offset, in the same way as `begin`."""
        self._logs[name].start_at(offset, settles=False)
        # The future replica contains only records that the current one has lost, so remove all of
        # them.
        self._futures.cut(name, offset, self._checkpoints.lower, is_all=True)
        self._lower_checkpoints(name)

    def _lower_checkpoints(self, name: TopicPartition) -> None:
        """Lower the high watermark immediately. The files are written before the next append."""
        log, high_watermarks = self._logs[name], self._checkpoints.high_watermarks
        if high_watermarks.get(name, 0) > log.log_end_offset:
            high_watermarks[name] = log.log_end_offset
        if log.unsettled is not None:
            log.unsettled.before_writes = partial(
                self._checkpoints.lower, self._homes[name], (name,)
            )

    def learn(self, name: TopicPartition) -> Iterator[None]:
        """Find the producers of a truncated log. This runs in steps."""
        log = self._logs.get(name)
        if log is not None and log.unsettled is not None:
            yield from log.unsettled.learn()

    def settle(self, names: Iterable[TopicPartition]) -> list[tuple[Log, OSError]]:
        """Complete all truncations on disk, and return the logs that have failed.

        This may run in a thread. Raises DirectoryError.
        """
        failed: list[tuple[Log, OSError]] = []
        done: dict[LogDirectory, dict[TopicPartition, Cut]] = {}
        for name in names:
            log, home = self._logs.get(name), self._homes.get(name)
            if log is None or home is None or log.unsettled is None:
                continue  # the log was deleted, or an append has settled it
            cut = log.unsettled
            try:
                cut.make_durable()
            except OSError as error:
                if log.health.is_failed:
                    continue  # the log was deleted, or its producers are known
                log.health.on_error(error)
                failed.append((log, error))
            else:
                done.setdefault(home, {})[name] = cut
        for home, cuts in done.items():
            self._checkpoints.lower(home, tuple(cuts))
            for cut in cuts.values():
                cut.on_durable()
        return failed
