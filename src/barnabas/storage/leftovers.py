"""Cleans up a partition's directory if an earlier process did not finish its work there.

    *.deleted    a file that was replaced or has expired; it is removed (except the file of `gaps`)
    *.cleaned    the output of a compaction that did not finish; it is removed
    *.tmp        a small file that did not get its final name; it is removed
    *.swap       the output of a finished compaction; the remaining renames are completed

A cleaner writes files with the suffix `.cleaned` and then renames all of them to `.swap`, from the
highest base offset to the lowest. After that, it removes the files of the old segments, and then
the suffix. While a `.cleaned` file exists, all `.swap` files at or above its offset are therefore
part of an unfinished set. When no `.cleaned` file exists, the swap is committed, and all old files
in its range must be removed. The range ends at the end offset of the last swapped segment.
"""

from __future__ import annotations

from pathlib import Path

from barnabas.records.batch import HEADER_BYTES, read_header
from barnabas.storage.files import Entry, Files
from barnabas.storage.gaps import FILE_NAME as GAPS
from barnabas.storage.segment import LOG_SUFFIX, base_offset_in

DELETED, CLEANED, SWAP, TEMPORARY = ".deleted", ".cleaned", ".swap", ".tmp"


def settle(files: Files, directory: Path) -> list[Entry]:
    """Finish or undo any unfinished work, and return the directory entries after that.

    If this is interrupted, it can be run again.
    """
    entries = files.list(directory)
    names = [entry.name for entry in entries if entry.name != GAPS]
    if not any(name.endswith((DELETED, CLEANED, SWAP, TEMPORARY)) for name in names):
        return entries
    cleaned = [_base(name) for name in names if name.endswith(CLEANED)]
    for name in names:
        # If there is a `.cleaned` file at or below this offset, the swap was not committed.
        unfinished = name.endswith(SWAP) and bool(cleaned) and _base(name) >= min(cleaned)
        if unfinished or name.endswith((DELETED, CLEANED, TEMPORARY)):
            files.remove(directory / name)
    _finish_swaps(files, directory)
    return files.list(directory)


def discard_cleaned(files: Files, directory: Path) -> None:
    """Remove the files of a compaction that was abandoned or whose process has died."""
    for entry in files.list(directory):
        if entry.name.endswith(CLEANED):
            files.remove(directory / entry.name)


def _finish_swaps(files: Files, directory: Path) -> None:
    sizes = {entry.name: entry.size_bytes for entry in files.list(directory)}
    swaps = [name for name in sizes if name.endswith(SWAP)]
    logs = [name for name in swaps if name.endswith(LOG_SUFFIX + SWAP)]
    if logs:
        begin = _base(logs[0])
        end = _end_offset(files, directory / logs[-1], sizes[logs[-1]])
        for name in sizes:
            # Remove the first segment even if it is empty, because the new segment has the same
            # name.
            if name.endswith(LOG_SUFFIX) and begin <= _base(name) < max(end, begin + 1):
                # Remove the log file last, because a second run finds the other files by its name.
                for suffix in (".txnindex", ".timeindex", ".index", LOG_SUFFIX):
                    files.remove(directory / (name.removesuffix(LOG_SUFFIX) + suffix))
        for name in logs:
            # An index that is left behind would be used as the index of the new segment.
            aborted = name.removesuffix(LOG_SUFFIX + SWAP) + ".txnindex"
            if aborted + SWAP not in sizes:
                files.remove(directory / aborted)
    for name in swaps:
        files.replace(directory / name, directory / name.removesuffix(SWAP))


def _end_offset(files: Files, path: Path, size: int) -> int:
    """Return the offset right after the last record of a swapped segment."""
    end, position = _base(path.name), 0
    file = files.open(path)
    try:
        while position < size:
            header = read_header(file.pread(HEADER_BYTES, position))
            end = header.last_offset + 1
            position += header.size_bytes
    finally:
        file.release()
    return end


def _base(name: str) -> int:
    base = base_offset_in(name)
    return -1 if base is None else base
