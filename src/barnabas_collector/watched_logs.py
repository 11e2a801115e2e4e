"""Watches a collector's logs, and schedules its looks at them.

A look costs a tenth of a millisecond. Growing logs are therefore looked at often. Idle logs are
looked at less and less often, and only if their status (one system call) has changed. All idle logs
are checked at the same time, four times a second, so that the collector can sleep in between.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from barnabas.counted import counted
from barnabas.errors import ConfigError
from barnabas_collector.known_files import KnownFiles
from barnabas_collector.listings import Listings
from barnabas_collector.log_paths import LogPaths
from barnabas_collector.record_joiner import IsStart
from barnabas_collector.rotated_log import QUIET_S, Portion, RotatedLog

_log = logging.getLogger(__name__)

SHORTEST_S: Final = 0.01
LONGEST_S: Final = 1.0
"""The longest time between two looks.

For fewer than a thousand logs, it is one millisecond per log, but at least 50 milliseconds.
"""
_SLOWER: Final = 1.5
_LIST_EVERY_S: Final = 1.0
_LOOK_EVERY_S: Final = 30.0  # applies even to logs that seem unchanged
_TOGETHER_S: Final = 0.25
_MOST_SHOWN: Final = 20
_MOST_OPEN: Final = 256  # the maximum number of idle logs whose files stay open

Status = tuple[int, ...]


class WatchedLogs:
    """Holds the watched logs. Call `close` at the end. `now_s` is a monotonic time."""

    def __init__(
        self,
        paths: LogPaths,
        files: KnownFiles,
        *,
        quiet_s: float = QUIET_S,
        is_start: IsStart | None = None,
        from_end: bool = False,
    ) -> None:
        """Reading starts at the beginning of each file that exists at a collector's first look or,
        with `from_end`, at its end.
        """
        self._paths = paths
        self._listings = Listings()
        self._files = files
        self._quiet_s = quiet_s
        self._is_start = is_start
        self._watched: dict[Path, _Watched] = {}
        self._due: list[tuple[float, int, _Watched]] = []  # a heap
        self._numbers = itertools.count()
        self._unreadable: dict[Path, str] = {}
        self._left: list[Path] = []  # rotated files that are not sent and have not been logged
        self._binary: set[Path] = set()  # files that are not sent because they are not text
        self._list_at_s = 0.0
        self._starts_at_end = from_end and not files.has_looked
        self._too_old: set[Path] = set()  # logs that are ignored because of their age

    def __len__(self) -> int:
        return len(self._watched)

    @property
    def unreadable(self) -> dict[Path, str]:
        """The logs that cannot be read, each with the reason."""
        return self._unreadable

    @property
    def open_files(self) -> int:
        """The number of open files."""
        return sum(each.log.open_files for each in self._watched.values())

    @property
    def lag_bytes(self) -> int:
        """The number of unread bytes found by the last looks."""
        return sum(each.log.lag_bytes for each in self._watched.values())

    def left_out(self) -> dict[str, int]:
        """Count the files that are not sent, grouped by reason."""
        return {
            "binary": len(self._binary),
            "old": len(self._too_old),
            "unreadable": len(self._unreadable),
        }

    def portions(self, now_s: float, *, is_last_look: bool = False) -> Iterator[Portion]:
        """Yield the unsent lines of all logs that are due.

        The caller must process each portion before asking for the next one.
        """
        if is_last_look or now_s >= self._list_at_s:
            self._list()
            self._list_at_s = now_s + _LIST_EVERY_S
        changed_ns = _ChangedDirectories()
        binary: set[Path] = set()
        for watched in self._due_by(math.inf if is_last_look else now_s):
            if is_last_look or watched.is_worth_a_look(now_s, changed_ns, self._longest_s):
                try:
                    yield from watched.portions(
                        now_s,
                        self._longest_s,
                        is_last_look=is_last_look,
                        starts_at_end=self._starts_at_end,
                    )
                except ConfigError as error:
                    # The log is listed and tried again within a second.
                    self._complain(watched.path, error)
                    watched.log.close()
                    del self._watched[watched.path]
                    continue
                self._unreadable.pop(watched.path, None)
                left, watched.log.left = watched.log.left, []
                self._left += left
                binary |= watched.log.binary
                # File descriptors are scarce, but a rotated file must stay open as long as programs
                # may write to it, because it may be compressed or removed.
                if len(self._watched) > _MOST_OPEN and not watched.log.holds_rotated:
                    watched.log.close()
            heapq.heappush(self._due, (watched.due_at_s, next(self._numbers), watched))
        self._log_left()
        self._log_binary(binary)
        if self._starts_at_end:
            self._starts_at_end = False
            # Record this even without any log, so that the next run treats any log that it finds as
            # new.
            self._files.end_first_look()

    def _log_left(self) -> None:
        """Log, once per round, the rotated files that were passed over by the first look at their
        log.
        """
        if not self._left:
            return
        shown = self._left[0]
        mark = min(at for at, character in enumerate(shown.name) if at and character in "._-")
        _log.warning(
            "not sending %s from before the first scan of their logs, such as %s; to send them "
            "too, name them: '%s*'",
            counted(len(self._left), "rotated file"),
            shown,
            shown.with_name(shown.name[:mark]),
        )
        self._left = []

    def _log_binary(self, found: set[Path]) -> None:
        """Log each binary file once."""
        new = sorted(found - self._binary)
        if new:
            shown = ", ".join(map(str, new[:_MOST_SHOWN]))
            _log.warning(
                "not sending %s: %s%s; to send one as lines, name it",
                counted(len(new), "binary file"),
                shown,
                ", ..." if len(new) > _MOST_SHOWN else "",
            )
            self._binary.update(new)

    def present(self) -> tuple[set[str], set[str]]:
        """Return the ids of the files found by the latest looks, and the logs that these looks
        covered.
        """
        files: set[str] = set()
        logs: set[str] = set()
        for watched in self._watched.values():
            if watched.log.file_ids is not None:
                files.update(watched.log.file_ids)
                logs.add(watched.log.path)
        return files, logs

    def pause_s(self, now_s: float) -> float:
        """Return the time until the next look at any log is due."""
        due_at_s = self._due[0][0] if self._due else self._list_at_s
        return max(0.0, min(due_at_s, self._list_at_s) - now_s)

    def _due_by(self, now_s: float) -> list[_Watched]:
        due = []
        while self._due and self._due[0][0] <= now_s:
            due.append(heapq.heappop(self._due)[2])
        return due

    def close(self) -> None:
        for watched in self._watched.values():
            watched.log.close()
        self._watched.clear()
        self._due.clear()

    @property
    def _longest_s(self) -> float:
        return min(LONGEST_S, max(0.05, len(self._watched) * 0.001))

    def _list(self) -> None:
        paths = self._paths.paths()
        self._drop_gone(set(paths))
        for path in paths:
            if path in self._watched or self._is_too_old(path):
                continue
            try:
                log = RotatedLog(
                    path,
                    self._files,
                    quiet_s=self._quiet_s,
                    is_start=self._is_start,
                    listings=self._listings,
                    choice=self._paths,
                )
            except ConfigError as error:
                self._complain(path, error)
            else:
                watched = self._watched[path] = _Watched(path, log)
                heapq.heappush(self._due, (watched.due_at_s, next(self._numbers), watched))
        self._log_too_old()

    def _is_too_old(self, path: Path) -> bool:
        """Return whether a log is ignored because of its age. This is safe only if no line of the
        log has been sent."""
        if not self._paths.is_too_old(path):
            self._too_old.discard(path)
            return False
        if path not in self._too_old:
            if self._files.knows(str(path.resolve())):
                return False
            self._too_old.add(path)
        return True

    def _log_too_old(self) -> None:
        """At the first listing, log the number of logs that are ignored because of their age."""
        if self._too_old and not self._list_at_s:
            shown = min(self._too_old)
            _log.warning(
                "ignoring %s that had not been written for longer than --ignore-older allows,"
                " such as %s",
                counted(len(self._too_old), "file"),
                shown,
            )

    def _drop_gone(self, listed: set[Path]) -> None:
        """Stop watching logs that are no longer listed and that have no files left."""
        gone = {
            path
            for path, watched in self._watched.items()
            if path not in listed and watched.log.is_empty
        }
        for path in gone:
            self._watched.pop(path).log.close()
        if gone:
            self._due = [each for each in self._due if each[2].path not in gone]
            heapq.heapify(self._due)

    def _complain(self, path: Path, error: ConfigError) -> None:
        if self._unreadable.get(path) != str(error):
            self._unreadable[path] = str(error)
            _log.warning("%s", error)


class _ChangedDirectories(dict[Path, int]):
    """Holds the modification time of each directory, which is read once per round."""

    def __missing__(self, directory: Path) -> int:
        found = self[directory] = directory.stat().st_mtime_ns
        return found


class _Watched:
    """Holds a log and the time of its next look."""

    __slots__ = ("_directory", "_interval_s", "_look_at_s", "_status", "due_at_s", "log", "path")

    def __init__(self, path: Path, log: RotatedLog) -> None:
        self.path = path
        self.log = log
        self._directory = path.parent
        self._status: Status = ()  # the status before the last look
        self._interval_s = SHORTEST_S
        self._look_at_s = 0.0
        self.due_at_s = 0.0

    def is_worth_a_look(
        self, now_s: float, changed_ns: _ChangedDirectories, longest_s: float
    ) -> bool:
        if now_s >= self._look_at_s or not self.log.is_settled:
            return True
        if self._now(changed_ns) != self._status:
            return True
        self._rest(now_s, longest_s)
        return False

    def portions(
        self, now_s: float, longest_s: float, *, is_last_look: bool, starts_at_end: bool
    ) -> Iterator[Portion]:
        # Store the status from before the look, because a change during the look requires another
        # one.
        before = self._now(_ChangedDirectories())
        has_grown = False
        for portion in self.log.portions(is_last_look=is_last_look, starts_at_end=starts_at_end):
            has_grown = True
            yield portion
        self._status = before
        self._look_at_s = now_s + _LOOK_EVERY_S
        if has_grown:
            self._interval_s = SHORTEST_S
            self.due_at_s = now_s + SHORTEST_S
        else:
            self._rest(now_s, longest_s)

    def _rest(self, now_s: float, longest_s: float) -> None:
        self._interval_s = min(longest_s, self._interval_s * _SLOWER)
        self.due_at_s = now_s + self._interval_s
        # Make all idle logs due at the same times, so that the process rarely wakes up.
        if self._interval_s > _TOGETHER_S:
            self.due_at_s = math.ceil(self.due_at_s / _TOGETHER_S) * _TOGETHER_S

    def _now(self, changed_ns: _ChangedDirectories) -> Status:
        try:
            file, directory_ns = self.path.stat(), changed_ns[self._directory]
        except OSError:
            return ()
        return file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns, directory_ns
