"""Cleans up unfinished work of an earlier process in a partition's directory.

    *.deleted    replaced or expired, awaiting removal: removed (except the file of `gaps`)
    *.cleaned    output of a compaction that did not finish: removed
    *.tmp        a small file without its final name: removed
    *.swap       output of a finished compaction whose renames did not finish: finished

A cleaner writes `.cleaned` files, renames all of them to `.swap`, highest base first, removes the
files that they replace, and then removes the suffix. As long as any `.cleaned` file exists, the
`.swap` files at or above it therefore belong to an unfinished set. Once none exists, the swap is
committed, and all old files in its range must be removed. The range ends where the last swapped
segment's records end.
"""

from __future__ import annotations

from pathlib import Path

from barnabas.records.batch import HEADER_BYTES, read_header
from barnabas.storage.files import Entry, Files
from barnabas.storage.gaps import FILE_NAME as GAPS
from barnabas.storage.segment import LOG_SUFFIX, base_offset_in

DELETED, CLEANED, SWAP, TEMPORARY = ".deleted", ".cleaned", ".swap", ".tmp"


def settle(files: Files, directory: Path) -> list[Entry]:
    """Finish or undo unfinished work, and return the resulting directory entries.

    If interrupted, it can be repeated.
    """
    entries = files.list(directory)
    names = [entry.name for entry in entries if entry.name != GAPS]
    if not any(name.endswith((DELETED, CLEANED, SWAP, TEMPORARY)) for name in names):
        return entries
    cleaned = [_base(name) for name in names if name.endswith(CLEANED)]
    for name in names:
        # A `.cleaned` file at or below this offset means that the swap was not committed.
        unfinished = name.endswith(SWAP) and bool(cleaned) and _base(name) >= min(cleaned)
        if unfinished or name.endswith((DELETED, CLEANED, TEMPORARY)):
            files.remove(directory / name)
    _finish_swaps(files, directory)
    return files.list(directory)


def discard_cleaned(files: Files, directory: Path) -> None:
    """Remove the output of an abandoned compaction, or of one whose process died."""
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
            # The first segment is removed even if it is empty: it has the new segment's name.
            if name.endswith(LOG_SUFFIX) and begin <= _base(name) < max(end, begin + 1):
                # Remove the log file last: a second run needs it to find the files to remove.
                for suffix in (".txnindex", ".timeindex", ".index", LOG_SUFFIX):
                    files.remove(directory / (name.removesuffix(LOG_SUFFIX) + suffix))
        for name in logs:
            # A leftover index would be mistaken for the new segment's.
            aborted = name.removesuffix(LOG_SUFFIX + SWAP) + ".txnindex"
            if aborted + SWAP not in sizes:
                files.remove(directory / aborted)
    for name in swaps:
        files.replace(directory / name, directory / name.removesuffix(SWAP))


def _end_offset(files: Files, path: Path, size: int) -> int:
    """Return the offset after the last record of a swapped segment."""
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
