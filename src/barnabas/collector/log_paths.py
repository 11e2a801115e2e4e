"""The logs that the arguments name: files, all files of a directory, or those of a pattern.

A rotated file beside its log is a part of that log, not a log of its own. In a directory, names
with a leading dot are ignored.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from barnabas.collector.listings import is_settled
from barnabas.collector.siblings import log_names

_MAGIC = re.compile(r"[*?\[]")


class LogPaths:
    """Looks again at each call of `paths`, and lists only directories that have changed."""

    def __init__(self, given: Sequence[str]) -> None:
        self._given = [Path(each).absolute() for each in given]
        self._listed: dict[Path, tuple[int, list[Path]]] = {}  # by directory; when it had changed

    def paths(self) -> list[Path]:
        """The paths in the order of the arguments, each once."""
        found: dict[Path, None] = {}
        for each in self._given:
            if os.path.isdir(each):  # noqa: PTH112  # false where it may not be asked
                found.update(dict.fromkeys(self._in_directory(each)))
            elif _MAGIC.search(str(each)) and not os.path.exists(each):  # noqa: PTH110  # as above
                found.update(dict.fromkeys(_fitting(str(each))))
            else:
                found[each] = None
        return list(found)

    def _in_directory(self, directory: Path) -> list[Path]:
        try:
            changed_ns = directory.stat().st_mtime_ns
            before = self._listed.get(directory)
            if before is not None and before[0] == changed_ns:
                return before[1]
            with os.scandir(directory) as entries:
                names = [each.name for each in entries if each.is_file() and each.name[0] != "."]
        except OSError:  # removed or unreadable: until it is back
            return []
        paths = [directory / name for name in sorted(_logs(names))]
        if is_settled(changed_ns):
            self._listed[directory] = (changed_ns, paths)
        return paths


def _fitting(pattern: str) -> list[Path]:
    by_directory: dict[Path, list[str]] = {}
    for path in map(Path, sorted(glob.glob(pattern, recursive=True))):  # noqa: PTH207  # absolute
        if os.path.isfile(path):  # noqa: PTH113  # as above
            by_directory.setdefault(path.parent, []).append(path.name)
    return [where / name for where, names in by_directory.items() for name in sorted(_logs(names))]


def _logs(names: Iterable[str]) -> list[str]:
    there = set(names)
    return [name for name in there if not any(log in there for log in log_names(name))]
