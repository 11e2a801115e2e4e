"""Iterates over the records of a batch, either to collect their keys or to select the records to
keep.

Both passes read every record of a log, so compaction spends most of its time in this module. For
this reason, varints of one or two bytes (which are by far the most common) are decoded inline, and
only the required fields are read. The functions return positions of records instead of decoding the
records.

    length varint | attributes int8 | timestamp delta varlong | offset delta varint
    | key length varint (-1: null), key | value length varint (-1: null), value | headers

A batch may be malformed even if its checksum is valid; the functions then raise `CorruptData`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from barnabas.errors import CorruptData
from barnabas.records.batch import BatchHeader
from barnabas.records.record_starts import walk_starts
from barnabas.records.varint import finish_varint
from barnabas.storage.compaction.key_map import NEWEST, TOMBSTONE, KeyMap, fold

_NULL = 1  # the byte that encodes -1
_RECORDS_AT_ONCE = 4096  # keys looked up together, because a batch may have millions


class Section(NamedTuple):
    """The decompressed records of a batch, which are stored in `data[begin:end]`."""

    header: BatchHeader
    data: bytes
    begin: int
    end: int


class Sifted(NamedTuple):
    """Describes which part of a batch to keep."""

    runs: list[tuple[int, int]]
    """The start and end positions of the records to keep. Adjacent records are combined into one
    run.
    """
    kept: int
    """The number of records to keep."""
    first_delta: int
    """The timestamp delta of the first record to keep."""
    max_delta: int
    has_tombstone: bool


def note_keys(section: Section, key_map: KeyMap) -> None:
    """Add the keys of a batch's records to the map. Raises CorruptData if a record is malformed."""
    header, _, at, end = section
    tombstones: list[int] = []
    try:
        # Process only a few thousand keys at a time, because a small batch can decompress to
        # millions of records.
        for done in range(0, header.record_count, _RECORDS_AT_ONCE):
            some = section._replace(begin=at)
            count = min(_RECORDS_AT_ONCE, header.record_count - done)
            at = _note_some(some, count, key_map, tombstones)
    except IndexError as cause:
        raise _misfit(header) from cause
    if at != end:
        raise _misfit(header)
    marks = key_map.make_marks(header.last_offset)
    if marks is not None:
        for i in tombstones:
            marks[i] |= TOMBSTONE


def _note_some(section: Section, count: int, key_map: KeyMap, tombstones: list[int]) -> int:
    """Add the keys of the first `count` records to the map, and return the position of the record
    after them.

    Raises IndexError if a record contradicts the header.
    """
    header, data, at, end = section
    shift = header.base_offset - key_map.first_offset
    most = header.last_offset - key_map.first_offset
    words: list[int] = []
    add = words.append
    for _ in range(count):
        raw, at = data[at], at + 1
        if raw >= 0x80:
            if data[at] < 0x80:
                raw, at = raw & 0x7F | data[at] << 7, at + 1
            else:
                raw, at = finish_varint(data, at, raw)
        following = at + (raw >> 1)
        at += 2
        if data[at - 1] >= 0x80:
            _, at = finish_varint(data, at, data[at - 1])
        offset, at = data[at], at + 1
        if offset >= 0x80:
            if data[at] < 0x80:
                offset, at = offset & 0x7F | data[at] << 7, at + 1
            else:
                offset, at = finish_varint(data, at, offset)
        offset = (offset >> 1) + shift
        size = data[at]
        has_key = not size & 1 and offset >= 0
        if size < 0x80:
            key, size_at = at + 1, at
            at = key if size & 1 else key + (size >> 1)
            if has_key:  # inlined `fold`, for speed
                add(hash(data[key:at]))
                add(hash(data[size_at:at]))
                add(offset)
        else:
            size, key = finish_varint(data, at + 1, size)
            at = key if size & 1 else key + (size >> 1)
            if has_key:
                words += (*fold(data[key:at]), offset)
        # The record has a negative length, a field that extends beyond its end, or an impossible
        # offset.
        if raw & 1 or not at < following <= end or offset > most:
            raise IndexError
        if data[at] == _NULL and has_key:
            tombstones.append(offset)
        at = following
    key_map.add(words)
    return at


def sift(section: Section, key_map: KeyMap, *, drops_tombstones: bool) -> Sifted:
    """Select the records of a batch that must be kept. Raises CorruptData if a record is malformed.

    A record is kept unless the map contains a newer record with the same key, or the record is an
    expired tombstone. All records above the end of the map are kept. A compacted log contains no
    records without keys.
    """
    base_offset = section.header.base_offset
    shift = base_offset - key_map.first_offset
    last_delta = key_map.latest_offset - base_offset
    runs: list[tuple[int, int]] = []
    run_begin = run_end = -1
    kept = first_delta = max_delta = 0
    has_tombstone = False
    hashes: list[int] = []
    walk = _walk(*section, hashes)
    while rows := list(islice(walk, _RECORDS_AT_ONCE)):
        newest = key_map.newest(hashes)
        hashes.clear()
        for row, newest_offset in zip(rows, newest, strict=True):
            begin, end, time_delta, offset_delta, has_key, is_tombstone = row
            if offset_delta <= last_delta:
                if not has_key or (is_tombstone and drops_tombstones):
                    continue
                if offset_delta + shift < newest_offset:
                    continue
            if kept == 0:
                first_delta = max_delta = time_delta
            elif time_delta > max_delta:
                max_delta = time_delta
            kept += 1
            has_tombstone |= is_tombstone
            if begin != run_end:
                if run_end >= 0:
                    runs.append((run_begin, run_end))
                run_begin = begin
            run_end = end
    if run_end >= 0:
        runs.append((run_begin, run_end))
    return Sifted(runs, kept, first_delta, max_delta, has_tombstone)


def sift_marked(section: Section, marks: bytearray) -> Sifted:
    """Select the records to keep by their marks. No tombstones are dropped.

    Raises CorruptData if a record is malformed.
    """
    data = section.data
    bounds = _bounds(section)
    staying = [i for i, mark in enumerate(marks) if mark & NEWEST]
    runs: list[tuple[int, int]] = []
    deltas: list[int] = []
    run_begin = run_end = bounds[staying[0]]
    for i in staying:
        begin = bounds[i]
        if begin != run_end:
            runs.append((run_begin, run_end))
            run_begin = begin
        run_end = bounds[i + 1]
        at = begin
        # Skip the length field, because `bounds` already contains its value.
        while data[at] >= 0x80:
            at += 1
        delta = data[at + 2]
        if delta >= 0x80:
            delta, _ = finish_varint(data, at + 3, delta)
        deltas.append((delta >> 1) ^ -(delta & 1))
    runs.append((run_begin, run_end))
    has_tombstone = NEWEST | TOMBSTONE in marks
    return Sifted(runs, len(staying), deltas[0], max(deltas), has_tombstone)


def _bounds(section: Section) -> list[int]:
    """Return the start of each record and the end of the last one. The fields were checked by
    `note_keys`.
    """
    header = section.header
    try:
        bounds, end = walk_starts(section.data, section.begin, header.record_count)
    except IndexError as cause:
        raise _misfit(header) from cause
    if end != section.end:
        raise _misfit(header)
    bounds.append(end)
    return bounds


def _walk(
    header: BatchHeader, data: bytes, at: int, end: int, hashes: list[int]
) -> Iterator[tuple[int, int, int, int, bool, bool]]:
    """Yield the positions and fields of each record that are needed to decide whether to keep it.

    These are the start, the end, the timestamp delta, the offset delta, whether the record has a
    key, and whether its value is null. The two hashes of the key are appended to `hashes`.
    """
    try:
        for _ in range(header.record_count):
            begin = at
            raw, at = data[at], at + 1
            if raw >= 0x80:
                if data[at] < 0x80:
                    raw, at = raw & 0x7F | data[at] << 7, at + 1
                else:
                    raw, at = finish_varint(data, at, raw)
            following = at + (raw >> 1)
            time, at = data[at + 1], at + 2
            if time >= 0x80:
                time, at = finish_varint(data, at, time)
            offset, at = data[at], at + 1
            if offset >= 0x80:
                if data[at] < 0x80:
                    offset, at = offset & 0x7F | data[at] << 7, at + 1
                else:
                    offset, at = finish_varint(data, at, offset)
            size = data[at]
            if size < 0x80:
                key, size_at = at + 1, at
                at = key + (size >> 1) if not size & 1 else key
                hashes.append(hash(data[key:at]))  # inlined `fold`, for speed
                hashes.append(hash(data[size_at:at]))
            else:
                size, key = finish_varint(data, at + 1, size)
                at = key + (size >> 1) if not size & 1 else key
                hashes += fold(data[key:at])
            if raw & 1 or not at < following <= end:
                raise _misfit(header)
            time = (time >> 1) ^ -(time & 1)
            yield begin, following, time, offset >> 1, not size & 1, data[at] == _NULL
            at = following
    except IndexError as cause:
        raise _misfit(header) from cause
    if at != end:
        raise _misfit(header)


def _misfit(header: BatchHeader) -> CorruptData:
    return CorruptData(
        f"the records of the batch at offset {header.base_offset} do not match its header"
    )
