"""Matches the current files of a log with the known files. Pure.

    the same inode, and the same text where it was sent  the file itself, renamed or not
    another inode, and the whole sent part of a file     a copy that took its place: compressed,
                                                         or copied before a truncation
    all of it the beginning of a file that still exists  a copy under way, or next to its original;
                                                         without times in its lines only until
                                                         nothing was written to it for a while
    anything else                                        a new file

The whole sent part is compared (`text_extent.py`), because two files may have identical beginnings
of any length. An inode counts only together with its time of birth, because file systems reuse the
inode of a removed file for the next one. A recreated log may begin like the removed one, so another
file at its path is a copy only if it contains lines with a time, which occur only once.

On a file system without times of birth, blank lines and a header prove nothing. If a file has only
these, its inode decides, unless another file is a better match. A known file that is shorter than
its sent part, or differs from it, was truncated and rewritten. When in doubt, a file counts as new.
At worst, lines are then sent twice, but none are lost.

At the first look at a log, its rotated files are passed over, except those that the user named.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from barnabas_collector.file_progress import FileProgress, first_line_of, new_file
from barnabas_collector.fingerprint import Fingerprint
from barnabas_collector.passed_over import PassedOver
from barnabas_collector.text_extent import INCOMPLETE, Text


class Found(NamedTuple):
    """Describes a file found by a look."""

    device: int
    inode: int
    size_bytes: int | None  # the size of its text, or None if it is compressed
    beginning: bytes  # the beginning of its text, at most `BEGINNING_BYTES`
    is_live: bool = False  # whether its path is the log's own path
    is_listed: bool = True  # False if it is open but no longer has a name
    born_ns: int = 0  # when the inode was created, or 0 if unknown
    is_quiet: bool = False  # whether nothing has been written to it for a while
    is_named: bool = False  # whether the user named it, not only its directory
    is_by_link: bool = False  # whether only its name next to a link makes it a rotated file
    text: Text | None = None


_NOTHING = Found(0, 0, 0, b"")


class Recognised(NamedTuple):
    """Identifies the files found by a look. The keys are the files' indexes in the look."""

    files: dict[int, FileProgress]
    passed_over: dict[int, PassedOver]  # passed over by this look if it is the first one


class Known(NamedTuple):
    """Holds what is known before a look."""

    files: Sequence[FileProgress]  # files of this log, or with an inode that was found
    passed_over: Collection[PassedOver] | None  # None at the first look at this log
    moved: Sequence[FileProgress] = ()  # missing files of other logs in the directory
    held: Sequence[FileProgress] = ()  # likewise, but still open without a name
    is_forgetful: bool = False  # whether missing files are forgotten after a while
    link: str = ""  # the path of a link to the log
    passed_over_by_link: Collection[PassedOver] | None = ()  # None at the first look at the link


def recognise(log: str, found: Sequence[Found], known: Known) -> Recognised:
    """Identify the files. In `found`, the oldest file comes first and the live file last."""
    files: dict[int, FileProgress] = {}
    # Apply the strongest proof first, and weaker ones only to files that it has not matched.
    _add_known(files, found, known.files, _is_certain)
    _add_known(files, found, known.files, _is_itself)
    old = [*(known.passed_over or ()), *(known.passed_over_by_link or ())]
    rest = [
        # `_NOTHING` keeps the indexes of the other files unchanged, and has no beginning that could
        # match.
        file if place in files or not _is_passed_over(file, old) else _NOTHING
        for place, file in enumerate(found)
    ]
    # Files of other logs are known only by their inodes. A file can be a copy of such a file only
    # if the original is gone (`moved`).
    mine = [each for each in known.files if each.path in (log, known.link)]
    _add_known(files, rest, _without_doubt(files, found, mine), _is_copy)
    _add_known(files, rest, _without_doubt(files, found, known.moved), _is_copy)
    copies = _copies(files, rest) | _copies_of_held(files, rest, known.held)
    rest = [_NOTHING if place in copies else file for place, file in enumerate(rest)]
    # Apply the weakest proof last, which consists of the inode and a header that all files of this
    # log share.
    _add_known(files, rest, known.files, _has_inode)
    others = [place for place, file in enumerate(rest) if place not in files and file.beginning]
    passing = _passing(log, found, others, files, known)
    everything = list(known.files)
    for place in others:
        if place not in passing and not _is_under_way(found[place]):
            files[place] = _new(log, found[place], everything, known.is_forgetful)
            everything.append(files[place])
    return Recognised(
        dict(sorted(files.items())), {place: PassedOver.of(found[place]) for place in passing}
    )


def _passing(
    log: str,
    found: Sequence[Found],
    others: Sequence[int],
    files: dict[int, FileProgress],
    known: Known,
) -> list[int]:
    """Return the files that the first look passes over, which are all files older than the known
    ones.
    """
    is_first = known.passed_over is None
    is_first_by_link = known.passed_over_by_link is None
    # If files of the log are known but none of them was found, it is unclear which of the found
    # files are older, so send them all.
    if not files and any(each.path in (log, known.link) for each in known.files):
        return []
    oldest = min(files, default=len(found))
    return [
        place
        for place in others
        if place < oldest and not found[place].is_live and not found[place].is_named
        if (is_first_by_link if found[place].is_by_link else is_first)
    ]


def _is_passed_over(file: Found, passed_over: Collection[PassedOver]) -> bool:
    # A file named by the user overrides the first look.
    if file.is_live or file.is_named or not file.beginning:
        return False
    return any(each.is_of(file) for each in passed_over)


def _add_known(
    files: dict[int, FileProgress],
    found: Sequence[Found],
    known: Sequence[FileProgress],
    is_proof: Callable[[FileProgress, Found], bool],
) -> None:
    """Match each known file, longest beginning first, with the oldest found file that may be the
    same."""
    taken = {each.file_id for each in files.values()}
    left = [place for place in range(len(found)) if place not in files]
    if not left:
        return
    for each in sorted(known, key=lambda one: (one.beginning_bytes, one.sent_bytes))[::-1]:
        if each.file_id in taken:
            continue
        for place in left:
            file = found[place]
            if is_proof(each, file):
                files[place] = each.found_at(*file[:2], file.beginning, file.born_ns)
                left.remove(place)
                break


def _without_doubt(
    files: dict[int, FileProgress], found: Sequence[Found], known: Sequence[FileProgress]
) -> list[FileProgress]:
    """Return the unmatched known files that can be matched safely. This is so if at most one found
    file begins with the sent part, or if the sent part contains times. Without times, it may be
    just a banner.
    """
    taken = {each.file_id for each in files.values()}
    left = [each for each in known if each.file_id not in taken]
    if len(files) == sum(bool(file.beginning) for file in found):
        return []  # in the usual case, all files are known
    return [each for each in left if _is_distinct(each, found)]


def _is_distinct(known: FileProgress, found: Sequence[Found]) -> bool:
    holding = [
        file
        for file in found
        if known.begins(file.beginning)
        # After a hole, the same text has another position.
        and (known.sent_bytes <= len(file.beginning) or _holds(known, file))
    ]
    return len(holding) < 2 or known.is_timed(holding[0].beginning)


def _is_certain(known: FileProgress, file: Found) -> bool:
    """Return whether both inode and birth time are the same.

    The device number may have changed at a reboot.
    """
    is_same = bool(known.born_ns) and known.born_ns == file.born_ns
    return is_same and _has_inode(known, file)


def _is_itself(known: FileProgress, file: Found) -> bool:
    return known.is_distinctive(file.beginning) and _has_inode(known, file)


def _has_inode(known: FileProgress, file: Found) -> bool:
    # The inode alone proves nothing, because a truncated and rewritten file keeps it.
    if known.inode != file.inode or not _fits(known, file):
        return False
    if known.born_ns and file.born_ns:
        # If the birth times differ, this file has reused the inode of a removed one.
        return known.born_ns == file.born_ns
    if known.device == file.device:
        return True
    # The device number may differ if a file system without birth times was remounted.
    return bool(known.sent_bytes) and file.text is not None and file.text.holds(known.extent)


def _is_copy(known: FileProgress, file: Found) -> bool:
    if not known.is_distinctive(file.beginning):
        return False
    # A recreated log may begin with the same banner. Only lines with a time occur just once, so
    # another file at the log's path with these lines is a copy.
    if file.is_live and file.size_bytes is not None and not known.is_timed(file.beginning):
        return False
    return _holds(known, file)


def _holds(known: FileProgress, file: Found) -> bool:
    """Return whether a file begins with everything that was sent from another file."""
    if not _fits_beginning(known, file):
        return False
    return file.text is None or not known.sent_bytes or file.text.holds(known.extent)


def _copies(files: dict[int, FileProgress], found: Sequence[Found]) -> set[int]:
    """Return the files that may be a complete or unfinished copy of another file. The other file is
    read instead.
    """
    originals = [file for file in found if file.beginning and (file.is_live or not file.is_listed)]
    return {
        place
        for place, file in enumerate(found)
        if place not in files and file.beginning and file.is_listed and not file.is_live
        if any(_may_be_copy(file, original) for original in originals)
    }


def _copies_of_held(
    files: dict[int, FileProgress], found: Sequence[Found], held: Sequence[FileProgress]
) -> set[int]:
    return {
        place
        for place, file in enumerate(found)
        if place not in files and any(_is_copy(each, file) for each in held)
    }


def _may_be_copy(file: Found, original: Found) -> bool:
    is_timed = Fingerprint.of(file.beginning).is_timed(file.beginning)
    is_settled = file.is_quiet or file.size_bytes is None
    if original.is_live and is_settled and not is_timed:
        return False  # no truncation followed, so it is a separate file
    if file.size_bytes is not None and 0 < file.born_ns < original.born_ns:
        return False  # it is older, so it was renamed and then replaced
    # Do not compare in reverse, because an unfinished copy is shorter than its original.
    if not original.beginning.startswith(file.beginning):
        return False
    if file.text is None or original.text is None:
        return True
    whole = file.text.whole()
    # A negative size means that the text is incomplete, damaged or missing.
    return (original.size_bytes or 0) >= whole.size_bytes >= 0 and original.text.ends(whole)


def _is_under_way(file: Found) -> bool:
    """Return whether the file is still being compressed."""
    if file.size_bytes is not None or file.is_quiet or file.text is None:
        return False
    return file.text.whole().size_bytes == INCOMPLETE


def _fits(known: FileProgress, file: Found) -> bool:
    if not _fits_beginning(known, file):
        return False
    # A compressed file cannot have been truncated, so its inode and its beginning are enough.
    if not known.sent_bytes or file.text is None or file.size_bytes is None:
        return True
    return file.text.ends(known.extent)


def _fits_beginning(known: FileProgress, file: Found) -> bool:
    # A file shorter than its sent part was truncated, and contains different lines.
    is_long_enough = file.size_bytes is None or file.size_bytes >= known.position
    return is_long_enough and bool(file.beginning) and known.begins(file.beginning)


def _new(log: str, file: Found, known: Sequence[FileProgress], is_forgetful: bool) -> FileProgress:
    # A file's id is derived from its path, first line and generation. Files with the same path and
    # first line must differ in generation. Otherwise, the pipeline would take lines at the same
    # positions for the same lines.
    first_line = first_line_of(file.beginning)
    before = [each for each in known if (each.path, each.first_line) == (log, first_line)]
    generation = 1 + max((each.generation for each in before), default=-1)
    if is_forgetful:  # the generation of a forgotten file is not reused
        generation = max(generation, file.born_ns // 1_000)
    new = new_file(log, file.beginning, generation)
    return new.found_at(file.device, file.inode, file.beginning, file.born_ns)
