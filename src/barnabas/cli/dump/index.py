"""Reads the index files of a `.log`, and formats them like Kafka 3.9's DumpLogSegments.

    .index      relative offset int32 | position int32
    .timeindex  timestamp int64 | relative offset int32
    .txnindex   version int16 (0) | producer id int64 | first offset int64 | last offset int64
                | last stable offset int64            an entry for each aborted transaction (KIP-98)

While a segment is active, and after a crash, the first two files are preallocated and end in zeros.
After the very first entry, no valid entry points to the segment's first offset, so an entry that
does is the start of the zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import BinaryIO, NamedTuple

from barnabas.errors import CorruptData
from barnabas.storage.index import OFFSET_ENTRY, TIME_ENTRY
from barnabas.storage.transaction_index import Aborted

ABORTED_ENTRY = Struct(">hqqqq")

_ENTRIES_AT_ONCE = 1024


class IndexEntry(NamedTuple):
    """Represents an entry of `.index` or `.timeindex`."""

    offset: int
    """The offset of the last record of the batches that the entry covers."""
    target: int
    """In `.index`, the byte position of these batches. In `.timeindex`, the largest timestamp up to
    these batches, in milliseconds.
    """


def base_offset(path: Path) -> int:
    """Return the first offset of a file's segment, taken from the file name. Raises
    CorruptData.
    """
    base = path.name.partition(".")[0]
    if not base.isascii() or not base.isdecimal():
        raise CorruptData(f"its name is not an offset, such as 00000000000000000000{path.suffix}")
    return int(base)


def read_offset_index(file: BinaryIO, base: int) -> Iterator[IndexEntry]:
    """Yield the entries without the trailing zeros. If all are zeros, the first one is yielded."""
    for i, (relative, position) in enumerate(_rows(file, OFFSET_ENTRY)):
        # Zeros after the first entry are preallocated, because no later entry can point to the base
        # offset.
        if i and relative == 0:
            return
        yield IndexEntry(base + relative, position)


def read_time_index(file: BinaryIO, base: int) -> Iterator[IndexEntry]:
    """Yield the entries without the trailing zeros. If all are zeros, the first one is yielded."""
    for i, (timestamp, relative) in enumerate(_rows(file, TIME_ENTRY)):
        if i and relative == 0:
            return
        yield IndexEntry(base + relative, timestamp)


def read_aborted(file: BinaryIO) -> Iterator[Aborted]:
    """Yield the entries. Raises CorruptData if an entry has an unknown version."""
    for version, *fields in _rows(file, ABORTED_ENTRY):
        if version != 0:
            raise CorruptData(f"an entry has the unknown version {version}")
        yield Aborted(*fields)


def _rows(file: BinaryIO, entry: Struct) -> Iterator[tuple[int, ...]]:
    """Yield the entries, without a partial entry at the end."""
    while piece := file.read(entry.size * _ENTRIES_AT_ONCE):
        yield from entry.iter_unpack(piece[: len(piece) // entry.size * entry.size])


def offset_index_lines(path: Path, shown_as: str) -> Iterator[str]:
    with path.open("rb") as file:
        empty = True
        for entry in read_offset_index(file, base_offset(path)):
            empty = False
            yield f"offset: {entry.offset} position: {entry.target}"
    if empty:
        yield f"{shown_as} is empty."


def time_index_lines(path: Path, shown_as: str) -> Iterator[str]:
    with path.open("rb") as file:
        for entry in read_time_index(file, base_offset(path)):
            yield f"timestamp: {entry.target} offset: {entry.offset}"


def aborted_lines(path: Path, shown_as: str) -> Iterator[str]:
    with path.open("rb") as file:
        for entry in read_aborted(file):
            yield (
                f"version: 0 producerId: {entry.producer_id} firstOffset: {entry.first_offset} "
                f"lastOffset: {entry.last_offset} lastStableOffset: {entry.last_stable_offset}"
            )
