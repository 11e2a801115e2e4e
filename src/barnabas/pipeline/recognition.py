"""Which of the files that a log has by now is which of those that were known. Pure.

    the same inode, and it begins with what was seen     the file itself, renamed or not
    another inode, but it begins with what was seen      a copy that took its place: compressed,
                                                         copied before a truncation, copied anew
    it begins as a file that is still there does         a copy under way, or beside its original
    anything else                                        a new file

A known file that is shorter than what was sent of it, or begins otherwise, has been cut off and
written anew. Blank lines and a header are no proof: with these alone, only the inode counts. In
doubt a file is new: then lines are sent twice at worst, and none is lost.

When a log is looked at for the first time, the rotated files that it has are passed over.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from barnabas.pipeline.file_progress import FileProgress, first_line_of, new_file
from barnabas.pipeline.fingerprint import Fingerprint


class Found(NamedTuple):
    """A file as a look at it shows it."""

    device: int
    inode: int
    size_bytes: int | None  # of its text; None where it is compressed, so that nobody knows
    beginning: bytes  # of its text, at most `BEGINNING_BYTES`
    is_live: bool = False  # at the log's own path
    is_listed: bool = True  # else it has no name any more, and is only held open


class Recognised(NamedTuple):
    """What the files of a look are; each by its place in the look."""

    files: dict[int, FileProgress]
    copies: dict[int, int]  # of which file this one is a copy
    passed_over: list[Fingerprint]  # by this look, it being the first


def recognise(
    log: str,
    found: Sequence[Found],
    known: Sequence[FileProgress],
    passed_over: Collection[Fingerprint] | None,
) -> Recognised:
    """Tell what the files are: `found` has the oldest first, the live one last.

    `passed_over`: None at the first look at this log.
    """
    files = _by_inode(found, known)
    _add_by_beginning(files, log, found, known)
    copies = _copies(files, found, is_first_look=passed_over is None)
    others = [
        place
        for place, file in enumerate(found)
        if place not in files and place not in copies and file.beginning
    ]
    if passed_over is None:
        is_known = any(each.path == log for each in known)  # to an older version
        old = [] if is_known and not files else _older_than_known(others, files, found)
        passing = [Fingerprint.of(found[place].beginning) for place in old]
    else:
        old = [place for place in others if _is_passed_over(found[place], passed_over)]
        passing = []
    everything = list(known)
    for place in others:
        if place not in old:
            files[place] = _new(log, found[place], everything)
            everything.append(files[place])
    return Recognised(dict(sorted(files.items())), copies, passing)


def _by_inode(found: Sequence[Found], known: Sequence[FileProgress]) -> dict[int, FileProgress]:
    files: dict[int, FileProgress] = {}
    for place, file in enumerate(found):
        mine = [
            each
            for each in known
            if (each.device, each.inode) == (file.device, file.inode) and _fits(each, file)
        ]
        if mine:
            files[place] = _at(file, _most_seen(mine)[0])
    return files


def _add_by_beginning(
    files: dict[int, FileProgress], log: str, found: Sequence[Found], known: Sequence[FileProgress]
) -> None:
    taken = {each.file_id for each in files.values()}
    left = [each for each in known if each.path == log and each.file_id not in taken]
    for each in _most_seen(left):
        for place, file in enumerate(found):
            if place in files or not _fits(each, file):
                continue
            if each.is_distinctive(file.beginning):
                files[place] = _at(file, each)
                break


def _copies(
    files: dict[int, FileProgress], found: Sequence[Found], *, is_first_look: bool
) -> dict[int, int]:
    """Files that hold what another one holds, which is read instead as long as it is there."""
    originals = [
        place
        for place, file in enumerate(found)
        if (file.is_live and (place in files or is_first_look)) or not file.is_listed
    ]
    return {
        place: original
        for place, file in enumerate(found)
        if place not in files and file.beginning and file.is_listed and not file.is_live
        for original in originals
        if found[original].beginning.startswith(file.beginning)
    }


def _older_than_known(
    others: list[int], files: dict[int, FileProgress], found: Sequence[Found]
) -> list[int]:
    oldest = min(files, default=len(found))
    return [place for place in others if place < oldest and not found[place].is_live]


def _is_passed_over(file: Found, passed_over: Collection[Fingerprint]) -> bool:
    return not file.is_live and Fingerprint.of(file.beginning) in passed_over


def _fits(known: FileProgress, file: Found) -> bool:
    is_long_enough = file.size_bytes is None or file.size_bytes >= known.position
    return is_long_enough and bool(file.beginning) and known.begins(file.beginning)


def _most_seen(known: Sequence[FileProgress]) -> list[FileProgress]:
    """Those first of which more was seen, then the latest."""
    return sorted(known, key=lambda each: each.beginning_bytes)[::-1]


def _at(file: Found, known: FileProgress) -> FileProgress:
    return known.found_at(file.device, file.inode, file.beginning)


def _new(log: str, file: Found, known: Sequence[FileProgress]) -> FileProgress:
    first_line = first_line_of(file.beginning)
    before = [each for each in known if (each.path, each.first_line) == (log, first_line)]
    generation = 1 + max((each.generation for each in before), default=-1)
    return _at(file, new_file(log, file.beginning, generation))
