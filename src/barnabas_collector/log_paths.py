"""Finds the logs that the arguments name: files, all files of a directory, or those matching a
pattern.

A rotated file next to its log is part of that log, not a log in itself, even if an argument names
it; a named rotated file is sent even if it existed before the first look at its log. In a
directory, names with a leading dot are ignored.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from barnabas_collector.listings import is_settled
from barnabas_collector.siblings import log_names

_MAGIC = re.compile(r"[*?\[]")


class LogPaths:
    """Looks again at each call of `paths`, listing only directories that have changed."""

    def __init__(self, given: Sequence[str]) -> None:
        self._given = [Path(each).absolute() for each in given]
        self._listed: dict[Path, tuple[int, list[Path]]] = {}  # by directory; when it had changed
        self._named: set[Path] = set()  # rotated files, at the last look
        self._literal: set[Path] = set()  # likewise: files that are arguments themselves

    def is_named(self, path: Path) -> bool:
        """Return whether an argument names this rotated file, and not only its directory or its
        log."""
        return path in self._named

    def is_literal(self, path: Path) -> bool:
        """Return whether an argument is this file itself, and not a directory or a pattern."""
        return path in self._literal

    def paths(self) -> list[Path]:
        """Return the paths in the order of the arguments, each once."""
        found: dict[Path, None] = {}
        named: set[Path] = set()
        literal: set[Path] = set()
        for each in self._given:
            if os.path.isdir(each):  # noqa: PTH112  # false if permission is denied
                found.update(dict.fromkeys(self._in_directory(each)))
            # A file that has such a character in its name is meant literally.
            elif _MAGIC.search(str(each)) and not os.path.exists(each):  # noqa: PTH110  # as above
                logs, rotated = _fitting(str(each))
                found.update(dict.fromkeys(logs))
                named.update(rotated)
            else:
                found[each] = None
                literal.add(each.resolve())
        rotated = [
            each
            for each in found
            if any(each.with_name(log) in found for log in log_names(each.name))
        ]
        for each in rotated:
            if os.path.exists(each):  # noqa: PTH110  # else it is reported as missing
                del found[each]
                named.add(each)
        self._named = _resolve(named)
        self._literal = literal
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


def _fitting(pattern: str) -> tuple[list[Path], list[Path]]:
    """Return the logs that match a pattern, and the matching rotated files of these logs."""
    by_directory: dict[Path, list[str]] = {}
    for path in map(Path, sorted(glob.glob(pattern, recursive=True))):  # noqa: PTH207  # absolute
        if os.path.isfile(path):  # noqa: PTH113  # as above
            by_directory.setdefault(path.parent, []).append(path.name)
    found: list[Path] = []
    rotated: list[Path] = []
    for where, names in by_directory.items():
        logs = set(_logs(names))
        found += [where / name for name in sorted(logs)]
        rotated += [where / name for name in names if name not in logs]
    return found, rotated


def _resolve(paths: Iterable[Path]) -> set[Path]:
    """Return the paths with links in their directories followed, resolving each directory once."""
    directories: dict[Path, Path] = {}
    found = set()
    for path in paths:
        if path.parent not in directories:
            directories[path.parent] = path.parent.resolve()
        found.add(directories[path.parent] / path.name)
    return found


def _logs(names: Iterable[str]) -> list[str]:
    there = set(names)
    return [name for name in there if not any(log in there for log in log_names(name))]
