"""Removes the positions of files that have been gone for a while.

A file is gone if no look at its log finds it or, if its log is no longer watched, if no file in its
directory has its inode. Each new file has a different inode or time of birth, so the `file.id` of
its records differs from that of any forgotten file. A file without a time of birth is therefore
never forgotten.
"""

from __future__ import annotations

import os
from pathlib import Path

from barnabas_collector.file_progress import FileProgress
from barnabas_collector.positions import Positions

EVERY_S = 60.0
RETENTION_S = 7 * 86_400.0


class Forgetting:
    """Checks every minute whether there are positions to remove."""

    def __init__(self, positions: Positions, retention_s: float) -> None:
        self._positions = positions
        self._retention_s = retention_s
        self._next_at_s = 0.0

    def is_due(self, now_s: float) -> bool:
        """Return whether a check is due, and schedule the next. `now_s` is a monotonic time."""
        if now_s < self._next_at_s:
            return False
        self._next_at_s = now_s + min(EVERY_S, self._retention_s)
        return True

    def sweep(self, now_s: int, present: set[str], watched: set[str]) -> None:
        """Forget files that have been gone for a long time.

        `now_s` is the time in seconds since 1970. `present` contains the files found by the last
        looks at the `watched` logs.
        """
        inodes = _Inodes()
        for file in self._positions.files:
            if file.file_id in present or not file.born_ns:
                continue
            # No look has compared the file's text, so it is enough that the file's inode is in the
            # directory.
            if file.path not in watched and file.inode in inodes[Path(file.path).parent]:
                if file.gone_s:
                    self._positions.save(file._replace(gone_s=0))
            # The file was not missing before, or the clock was ahead. In both cases, its absence
            # starts now.
            elif not 0 < file.gone_s <= now_s:
                self._positions.save(file._replace(gone_s=now_s))
            elif now_s - file.gone_s >= self._retention_s:
                self._forget(file, watched)

    def _forget(self, file: FileProgress, watched: set[str]) -> None:
        self._positions.forget(file.file_id)
        # Without the record of its first look, a log's rotated files would be passed over if the
        # log reappears. Keep the record while any of the files may exist.
        has_others = bool(self._positions.candidates(file.path, ()))
        if not has_others and file.path not in watched and not os.path.lexists(file.path):
            self._positions.forget_log(file.path)


class _Inodes(dict[Path, set[int]]):
    """Lists the inodes of each directory once per round.

    A directory that cannot be listed is assumed to contain every inode.
    """

    def __missing__(self, directory: Path) -> set[int]:
        try:
            with os.scandir(directory) as entries:
                found = {entry.inode() for entry in entries}
        except (FileNotFoundError, NotADirectoryError):
            found = set()
        except OSError:  # the directory's files may still exist
            found = _Everything()
        self[directory] = found
        return found


class _Everything(set[int]):
    def __contains__(self, _: object) -> bool:
        return True
