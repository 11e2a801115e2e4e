"""Manages the files of a log: the file at its path, the files next to it, and open files that no
longer have a name.

A file is held open until it has been replaced *and* nothing has been written to it for `quiet_s`,
because servers write to the old file until they open the new one, and for a while afterwards.
In the meantime, the file may be renamed, compressed or removed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from barnabas.errors import ConfigError
from barnabas_collector.listings import Listings
from barnabas_collector.log_file import FileText, Inode, LogFile, unreadable
from barnabas_collector.recognition import Found

_MOST_HELD = 64
_LOOKS = 10
_ABANDONED_S = 3600.0
_log = logging.getLogger(__name__)

Stat = tuple[int, int, int, int]


class Choice(Protocol):
    """Answers queries about the arguments given by the user."""

    def is_named(self, path: Path) -> bool:
        """Return whether an argument names this rotated file itself rather than only
        its directory.
        """
        ...

    def is_literal(self, path: Path) -> bool:
        """Return whether an argument names this file itself rather than a directory or
        a pattern.
        """
        ...


class LogDirectory:
    """Finds the files of a log, and keeps files open that may still change. Call `close` at the
    end.
    """

    def __init__(
        self,
        path: Path,
        quiet_s: float,
        listings: Listings | None = None,
        choice: Choice | None = None,
    ) -> None:
        self._listings = listings or Listings()
        self._path = path
        self.live = path.resolve()  # if the log is a link, it may lead elsewhere at the next look
        self.link: Path | None = None  # the log's path if it is a link
        self.refusal: ConfigError | None = None  # why the last look could not read the live file
        self._quiet_s = quiet_s
        self._held: dict[Inode, LogFile] = {}
        self._paths: dict[Inode, Path] = {}  # the paths at the last look
        self._quiet: dict[Path, tuple[Stat, Found]] = {}  # files that need not be opened again
        self._packed: dict[object, FileText] = {}  # compressed files, by status
        self._choice = choice
        self._unreadable: set[Path] = set()

    def look(self) -> list[Found]:
        """Return the files, oldest first. Files without a name come first and the live file last.

        If the live file exists but cannot be read, `refusal` contains the reason, and the other
        files are still returned.
        """
        self._listings.held[self._path] = self._held
        for _ in range(_LOOKS):
            self.live, self.link = self._path.resolve(), _link(self._path)
            before = self._rotated_files()
            found = self._found(before)
            if self._rotated_files() == before:
                break  # otherwise, files were renamed in between, and one may have been missed
        return found

    def _rotated_files(self) -> dict[Path, tuple[int, bool]]:
        """Return the rotated files, oldest first, each with its inode and whether it is named after
        the link.

        Files next to a link also count, because the link may have replaced a file, or may lead to
        the newest of several dated files.
        """
        found: dict[Path, tuple[int, bool]] = {}
        for log in (self.link, self.live):
            if log is not None:
                for name, inode in self._listings.rotated_files(log).items():
                    found[log.with_name(name)] = (inode, log is self.link)
        found.pop(self.live, None)
        return found

    def open(self, found: Found) -> LogFile | None:
        """Open a file found by the last look, or return None if the file has been removed since."""
        inode = (found.device, found.inode)
        if inode not in self._held:
            try:
                file = LogFile(self._paths[inode])
            except ConfigError:
                return None
            # Another file was moved to this path after the look.
            if (file.device, file.inode) != inode:
                file.close()
                return None
            self._held[inode] = file
        return self._held[inode]

    def path(self, found: Found) -> Path:
        """Return the path at which the last look found the file."""
        return self._paths[found.device, found.inode]

    def is_literal(self, found: Found) -> bool:
        """Return whether the user named the file itself."""
        return self._choice is None or self._choice.is_literal(self.path(found))

    def is_quiet(self, found: Found) -> bool:
        """Return whether nothing has been written to the file for `quiet_s`."""
        file = self._held.get((found.device, found.inode))
        if file is None:
            return True
        file.size_bytes()  # it may have grown since the look
        return file.quiet_s() >= self._quiet_s

    def is_abandoned(self, found: Found) -> bool:
        """Return whether it is certain that no process is writing to the file, or nothing has been
        written to it for a long time."""
        file = self._held.get((found.device, found.inode))
        return file is None or file.quiet_s() >= _ABANDONED_S or file.has_no_writer()

    def has_been_truncated(self, found: list[Found]) -> bool:
        """Return whether the live file found by this look has been truncated since."""
        live = found[-1] if found and found[-1].is_live else None
        # A compressed file is never truncated, and the size of its text is unknown.
        if live is None or live.size_bytes is None:
            return False
        file = self._held.get((live.device, live.inode))
        if file is None:
            return False
        # Since the truncation, the file may have grown beyond its old size.
        return file.size_bytes() < live.size_bytes or not file.begins(live.beginning)

    def release(self, found: Found) -> None:
        """Close the file if it is open."""
        if file := self._held.pop((found.device, found.inode), None):
            file.close()

    @property
    def open_files(self) -> int:
        return len(self._held)

    @property
    def holds_rotated(self) -> bool:
        return any(self._paths.get(inode) != self.live for inode in self._held)

    def close(self) -> None:
        for file in self._held.values():
            file.close()
        self._held.clear()
        self._listings.held.pop(self._path, None)

    def held_anywhere(self, inode: int) -> LogFile | None:
        """Return the open file with this inode if it is held by any log that shares
        the listings.
        """
        for held in self._listings.held.values():
            for (_, number), file in held.items():
                if number == inode:
                    return file
        return None

    def _found(self, paths: Mapping[Path, tuple[int, bool]]) -> list[Found]:
        self._paths.clear()
        self.refusal = None
        # Find the live file first. If it has been truncated, its copy is then complete.
        live = self._find(self.live)
        rotated = [
            file._replace(is_by_link=is_by_link)
            for path, (_, is_by_link) in paths.items()
            if (file := self._find(path)) is not None
        ]
        self._quiet = {path: self._quiet[path] for path in paths if path in self._quiet}
        self._unreadable.intersection_update(paths)
        if len(self._packed) > len(paths) + _MOST_HELD:
            self._packed.clear()
        # These are open files without a name in this directory. They were removed, or moved to
        # another directory.
        gone = [
            self._found_as(file.path, file, ())._replace(is_listed=False)
            for inode, file in self._held.items()
            if inode not in self._paths
        ]
        listed = {(file.device, file.inode): file for file in rotated}
        if live is None:
            return [*gone, *listed.values()]
        listed.pop((live.device, live.inode), None)  # renamed while we looked, or a link
        return [*gone, *listed.values(), live._replace(is_live=True)]

    def _find(self, path: Path) -> Found | None:
        try:
            stat = _stat(path)
            file = self._held.get(stat[:2])
            # Do not open a quiet file whose size and time are unchanged. This matters for thousands
            # of rotated files.
            if file is None and path in self._quiet and self._quiet[path][0] == stat:
                found = self._quiet[path][1]
            else:
                found = self._shown(path, file or LogFile(path), stat)
        except (FileNotFoundError, NotADirectoryError):
            return None  # it was renamed after the listing, or has not been recreated
        except OSError as error:  # about a directory on the path
            self._report(path, unreadable(path, error))
            return None
        except ConfigError as error:
            self._report(path, error)
            return None
        self._paths[found.device, found.inode] = path
        return found

    def _report(self, path: Path, error: ConfigError) -> None:
        """Keep the error if it concerns the path of the log itself. Errors of any other file are
        logged once.
        """
        if path == self.live and not _is_missing(path):
            self.refusal = error
        elif path not in self._unreadable:
            self._unreadable.add(path)
            _log.warning("%s", error)

    def _shown(self, path: Path, file: LogFile, stat: Stat) -> Found:
        found = self._found_as(path, file, stat)
        inode = (file.device, file.inode)
        if self._held.get(inode, file) is not file:
            file.close()  # it was renamed to this path since `stat`
        elif path == self.live or file.quiet_s() < self._quiet_s:
            self._held[inode] = file
            # Close the file that has been open longest, except for the live file. A closed file is
            # lost if it is removed before it is read.
            if len(self._held) > _MOST_HELD:
                oldest = next(each for each in self._held if self._paths.get(each) != self.live)
                self._held.pop(oldest).close()
        elif inode not in self._held:
            file.close()
            # Otherwise, the file was replaced between `stat` and `open`, and the status belongs to
            # another file.
            if inode == stat[:2]:
                self._quiet[path] = (stat, found)
        return found

    def _found_as(self, path: Path, file: LogFile, stat: Stat | tuple[()]) -> Found:
        size_bytes = file.size_bytes()
        is_quiet = file.quiet_s() >= self._quiet_s
        inode = (file.device, file.inode)
        text = self._packed.get(stat)
        if text is None:
            is_fixed = is_quiet or file.is_compressed
            text = FileText(path, inode, self._held, is_fixed=is_fixed)
        # A text that is identified by its status keeps its cached answers when its file is renamed.
        text.path = path
        if file.is_compressed and stat:
            self._packed[stat] = text  # it will be queried again, which costs more than a look
        return Found(
            *inode,
            None if file.is_compressed else size_bytes,
            file.beginning(),
            born_ns=file.born_ns,
            is_quiet=is_quiet,
            is_named=self._choice is not None and self._choice.is_named(path),
            text=text,
        )


def _link(path: Path) -> Path | None:
    """Return the link's own path, or None if the path is not a link."""
    # This is False if a directory on the path may not be searched. The look at the log reports
    # that.
    is_link = os.path.islink(path)  # noqa: PTH114
    return path.parent.resolve() / path.name if is_link else None


def _stat(path: Path) -> Stat:
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _is_missing(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:  # it may exist
        return False
    return False
