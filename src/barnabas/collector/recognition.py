"""Matches the present files of a log with the known ones. Pure.

    the same inode and the same beginning                the file itself, renamed or not
    another inode, but the same beginning                a copy that took its place: compressed,
                                                         copied before a truncation, copied again
    the beginning of a file that still exists            a copy under way, or beside its original
    anything else                                        a new file

A known file that is shorter than its sent part, or begins differently, was truncated and rewritten.
Blank lines and a header are no proof: with only these, the inode alone counts, and only if no file
is a better match. In doubt a file is new: at worst lines are sent twice, and none is lost.

At the first look at a log, the rotated files that it has are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from barnabas.collector.file_progress import FileProgress, first_line_of, new_file
from barnabas.collector.fingerprint import Fingerprint


class Found(NamedTuple):
    """A file as found by a look."""

    device: int
    inode: int
    size_bytes: int | None  # of its text; None: unknown, since it is compressed
    beginning: bytes  # of its text, at most `BEGINNING_BYTES`
    is_live: bool = False  # at the log's own path
    is_listed: bool = True  # else it has no name any more, and is only held open


_NOTHING = Found(0, 0, 0, b"")


class Recognised(NamedTuple):
    """The identities of the files of a look, each by its place in the look."""

    files: dict[int, FileProgress]
    passed_over: list[Fingerprint]  # by this look, if it is the first


def recognise(
    log: str,
    found: Sequence[Found],
    known: Sequence[FileProgress],
    passed_over: Collection[Fingerprint] | None,
) -> Recognised:
    """Identify the files: `found` has the oldest first, the live one last.

    `passed_over`: None at the first look at this log.
    """
    files: dict[int, FileProgress] = {}
    _add_known(files, found, known, _is_itself)
    old = frozenset(passed_over or ())
    rest = [
        file if place in files or file.is_live or not _is_one_of(file, old) else _NOTHING
        for place, file in enumerate(found)
    ]
    _add_known(files, rest, [each for each in known if each.path == log], _is_copy)
    copies = _copies(files, rest)
    rest = [_NOTHING if place in copies else file for place, file in enumerate(rest)]
    _add_known(files, rest, known, _has_inode)
    others = [place for place, file in enumerate(rest) if place not in files and file.beginning]
    passing: list[int] = []
    if passed_over is None and (files or not any(each.path == log for each in known)):
        oldest = min(files, default=len(found))
        passing = [place for place in others if place < oldest and not found[place].is_live]
    everything = list(known)
    for place in others:
        if place not in passing:
            files[place] = _new(log, found[place], everything)
            everything.append(files[place])
    beginnings = [Fingerprint.of(found[place].beginning) for place in passing]
    return Recognised(dict(sorted(files.items())), beginnings)


def _add_known(
    files: dict[int, FileProgress],
    found: Sequence[Found],
    known: Sequence[FileProgress],
    is_proof: Callable[[FileProgress, Found], bool],
) -> None:
    """Match known files, those with the longest beginning first, with the oldest possible file."""
    taken = {each.file_id for each in files.values()}
    left = [place for place in range(len(found)) if place not in files]
    for each in sorted(known, key=lambda one: one.beginning_bytes)[::-1]:
        if each.file_id in taken:
            continue
        for place in left:
            if is_proof(each, found[place]):
                files[place] = each.found_at(*found[place][:2], found[place].beginning)
                left.remove(place)
                break


def _is_itself(known: FileProgress, file: Found) -> bool:
    return _has_inode(known, file) and known.is_distinctive(file.beginning)


def _is_copy(known: FileProgress, file: Found) -> bool:
    return _fits(known, file) and known.is_distinctive(file.beginning)


def _has_inode(known: FileProgress, file: Found) -> bool:
    is_there = (known.device, known.inode) == (file.device, file.inode)
    return is_there and _fits(known, file)


def _copies(files: dict[int, FileProgress], found: Sequence[Found]) -> set[int]:
    """Files with the content of another one, which is read instead as long as it exists."""
    originals = [file.beginning for file in found if file.is_live or not file.is_listed]
    return {
        place
        for place, file in enumerate(found)
        if place not in files and file.beginning and file.is_listed and not file.is_live
        if any(beginning.startswith(file.beginning) for beginning in originals)
    }


def _is_one_of(file: Found, passed_over: Collection[Fingerprint]) -> bool:
    return Fingerprint.of(file.beginning) in passed_over


def _fits(known: FileProgress, file: Found) -> bool:
    is_long_enough = file.size_bytes is None or file.size_bytes >= known.position
    return is_long_enough and bool(file.beginning) and known.begins(file.beginning)


def _new(log: str, file: Found, known: Sequence[FileProgress]) -> FileProgress:
    first_line = first_line_of(file.beginning)
    before = [each for each in known if (each.path, each.first_line) == (log, first_line)]
    generation = 1 + max((each.generation for each in before), default=-1)
    new = new_file(log, file.beginning, generation)
    return new.found_at(file.device, file.inode, file.beginning)
