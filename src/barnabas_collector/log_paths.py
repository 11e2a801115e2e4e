"""Finds the logs given by the arguments, each of which is a file, a directory (all its files) or a
pattern.

A rotated file next to its log is part of that log, not a separate log, even if an argument names
it. A named rotated file is sent even if it existed before the first look at its log. In a
directory, names with a leading dot are ignored.

In a recursive search (`is_recursive`, or `**` in a pattern), links to files are followed, but not
links to directories, so there are no loops and no file is found twice.
"""

from __future__ import annotations

import fnmatch
import glob
import logging
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from barnabas_collector.listings import is_settled
from barnabas_collector.siblings import log_names

_log = logging.getLogger(__name__)

_MAGIC: Final = re.compile(r"[*?\[]")
_DEEPEST: Final = 32
_MOST_DIRECTORIES: Final = 100_000


class Patterns:
    """Matches file names against the patterns of `include` or `exclude`.

    A pattern without a slash must match the file name. A pattern with a slash must match the whole
    path or, if it does not begin with a slash, the end of the path. `*` also matches slashes.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        names, paths = [], []
        for each in patterns:
            if "/" not in each:
                names.append(each)
            else:
                paths.append(each.rstrip("/") if each[0] == "/" else f"*/{each.rstrip('/')}")
        self._name = _any_of(names)
        self._path = _any_of(paths)

    def __bool__(self) -> bool:
        return self._name is not None or self._path is not None

    def fit(self, path: Path) -> bool:
        if self._name is not None and self._name.match(path.name):
            return True
        return self._path is not None and self._path.match(str(path)) is not None


class _Directory(NamedTuple):
    """Describes a listed directory."""

    changed_ns: int
    logs: list[Path]
    inner: list[Path]  # directories


class LogPaths:
    """Searches again on each call of `paths`, but lists only directories that have changed."""

    def __init__(
        self,
        given: Sequence[str],
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        is_recursive: bool = False,
        ignore_older_s: float | None = None,
    ) -> None:
        """`include` and `exclude` are patterns that filter the files that directories and patterns
        yield. If `is_recursive`, subdirectories are searched as well. An unknown file counts as a
        log only if it was written within `ignore_older_s`.
        """
        self._given = [Path(each).absolute() for each in given]
        self._include = Patterns(include)
        self._exclude = Patterns(exclude)
        self._is_recursive = is_recursive
        self._ignore_older_s = ignore_older_s
        self._listed: dict[Path, _Directory] = {}
        self._named: set[Path] = set()  # rotated files found by the last look
        self._literal: set[Path] = set()  # files that are arguments themselves, likewise
        self._has_warned = False

    def is_named(self, path: Path) -> bool:
        """Return whether an argument names this rotated file itself rather than only its directory
        or its log."""
        return path in self._named and not self.is_too_old(path)

    def is_literal(self, path: Path) -> bool:
        """Return whether an argument names this file itself rather than a directory or
        a pattern.
        """
        return path in self._literal

    def is_too_old(self, path: Path) -> bool:
        """Return whether the last write to the file is older than `ignore_older_s`."""
        if self._ignore_older_s is None:
            return False
        try:
            return time.time() - path.stat().st_mtime > self._ignore_older_s
        except OSError:  # the file's reader reports the error
            return False

    def paths(self) -> list[Path]:
        """Return each path once, in the order of the arguments."""
        found: dict[Path, None] = {}
        named: set[Path] = set()
        literal: set[Path] = set()
        for each in self._given:
            if os.path.isdir(each):  # noqa: PTH112  # false if permission is denied
                directories = self._below(each) if self._is_recursive else [each]
                for directory in directories:
                    found.update(dict.fromkeys(self._wanted(self._list(directory).logs)))
            # If a file has exactly this name, take the argument literally.
            elif _MAGIC.search(str(each)) and not os.path.exists(each):  # noqa: PTH110  # as above
                logs, rotated = self._fitting(str(each))
                found.update(dict.fromkeys(self._wanted(logs)))
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

    def _wanted(self, logs: list[Path]) -> list[Path]:
        """Return the logs that remain after applying `include` and `exclude`."""
        if not self._include and not self._exclude:
            return logs
        return [path for path in logs if self._is_wanted(path)]

    def _is_wanted(self, path: Path) -> bool:
        # Between the renaming and the recreation of a log, only its rotated file is listed. Apply
        # the patterns to the log's name, so that the file is neither skipped nor sent by mistake.
        names = [path, *(path.with_name(name) for name in log_names(path.name))]
        if any(map(self._exclude.fit, names)):
            return False
        return not self._include or any(map(self._include.fit, names))

    def _below(self, top: Path) -> Iterator[Path]:
        """Yield a directory and all directories below it, except those that are excluded."""
        waiting = [(top, 0)]
        count = 0
        while waiting:
            directory, depth = waiting.pop()
            yield directory
            count += 1
            inner = [each for each in self._list(directory).inner if not self._exclude.fit(each)]
            if count + len(waiting) + len(inner) > _MOST_DIRECTORIES or depth == _DEEPEST:
                if inner and not self._has_warned:
                    self._has_warned = True
                    _log.warning(
                        "not searching below %s: it has more than %d directories or more "
                        "than %d levels",
                        directory,
                        _MOST_DIRECTORIES,
                        _DEEPEST,
                    )
                continue
            waiting += [(each, depth + 1) for each in reversed(inner)]

    def _list(self, directory: Path) -> _Directory:
        try:
            changed_ns = directory.stat().st_mtime_ns
            before = self._listed.get(directory)
            if before is not None and before.changed_ns == changed_ns:
                return before
            with os.scandir(directory) as entries:
                shown = [each for each in entries if each.name[0] != "."]
                names = [each.name for each in shown if each.is_file()]
                inner = [each.name for each in shown if each.is_dir(follow_symlinks=False)]
        except OSError:  # removed or unreadable; it may reappear
            self._listed.pop(directory, None)
            return _Directory(0, [], [])
        found = _Directory(
            changed_ns,
            [directory / name for name in sorted(_logs(names))],
            [directory / name for name in sorted(inner)],
        )
        if is_settled(changed_ns):
            self._listed[directory] = found
        return found

    def _fitting(self, pattern: str) -> tuple[list[Path], list[Path]]:
        """Return the logs and the rotated files that match a pattern."""
        by_directory: dict[Path, list[str]] = {}
        for path in map(Path, sorted(set(self._expand(pattern)))):
            if os.path.isfile(path):  # noqa: PTH113  # as above
                by_directory.setdefault(path.parent, []).append(path.name)
        found: list[Path] = []
        rotated: list[Path] = []
        for where, names in by_directory.items():
            logs = set(_logs(names))
            found += [where / name for name in sorted(logs)]
            rotated += [where / name for name in names if name not in logs]
        return found, rotated

    def _expand(self, pattern: str) -> Iterator[str]:
        """Yield the paths that match a pattern. `**` as a whole component matches any number of
        directories."""
        before, stars, after = pattern.partition("/**")
        # In any other place, `**` is part of a name and means the same as `*`.
        if not stars or (after and after[0] != "/"):
            yield from glob.glob(pattern)  # noqa: PTH207  # absolute
            return
        for top in glob.glob(f"{before}/"):  # noqa: PTH207  # as above
            for directory in self._below(Path(top)):
                yield from self._expand(glob.escape(str(directory)) + (after or "/*"))


def _any_of(patterns: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(fnmatch.translate, patterns))) if patterns else None


def _resolve(paths: Iterable[Path]) -> set[Path]:
    """Return the paths with the links in their directories resolved. Each directory is resolved
    only once."""
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
