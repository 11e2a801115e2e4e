"""The records of one batch, looked at twice: which keys it has, and which of its records stay.

Both walks see every record of a log, so this is the loop that compaction spends its time in: nearly
every varint has one byte or two and is read in place, and of a record only what is asked for is
looked at. A record that stays is not decoded: where it begins and ends is all that is told.

    length varint | attributes int8 | timestamp delta varlong | offset delta varint
        | key length varint (-1: null), key | value length varint (-1: null), value | headers

A batch whose checksum is right may still be none: then it ends in `CorruptData` and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

from barnabas.errors import CorruptData
from barnabas.records.batch import BatchHeader
from barnabas.records.varint import finish_varint
from barnabas.storage.compaction.key_map import (
    DIGEST_BYTES,
    NEWEST,
    SHORT_KEY_BYTES,
    TOMBSTONE,
    KeyMap,
)

_NULL = 1  # the varint of -1


class Section(NamedTuple):
    """The records of a batch, decompressed: `data[begin:end]`."""

    header: BatchHeader
    data: bytes
    begin: int
    end: int


class Sifted(NamedTuple):
    """What stays of a batch."""

    runs: list[tuple[int, int]]
    """Where the records that stay begin and end in the data; neighbours are one run."""
    kept: int
    """How many records stay."""
    first_delta: int
    """The timestamp delta of the first that stays."""
    max_delta: int
    has_tombstone: bool


def note_keys(section: Section, key_map: KeyMap) -> None:
    """Put the keys of a batch into the map; CorruptData."""
    offsets = key_map.offsets
    base_offset = section.header.base_offset
    first_delta = key_map.first_offset - base_offset
    tombstones = []
    for _, _, _, offset_delta, key, is_tombstone in _walk(*section):
        if key is not None and offset_delta >= first_delta:
            if len(key) > SHORT_KEY_BYTES:
                key = blake2b(key, digest_size=DIGEST_BYTES).digest()
            offsets[key] = base_offset + offset_delta
            if is_tombstone:
                tombstones.append(offset_delta - first_delta)
    marks = key_map.make_marks(section.header.last_offset)
    if marks is not None:
        for i in tombstones:
            marks[i] |= TOMBSTONE


def sift(section: Section, key_map: KeyMap, *, drops_tombstones: bool) -> Sifted:
    """Which records of a batch stay; CorruptData.

    A record stays if its key has no newer one in the map, and if it is no tombstone whose time is
    up. Whatever lies behind the map's end stays; a record without a key has no place in such a log.
    """
    newest = key_map.offsets.get
    base_offset = section.header.base_offset
    last_delta = key_map.latest_offset - base_offset
    runs: list[tuple[int, int]] = []
    run_begin = run_end = -1
    kept = first_delta = max_delta = 0
    has_tombstone = False
    for begin, end, time_delta, offset_delta, key, is_tombstone in _walk(*section):
        if offset_delta <= last_delta:
            if key is None or (is_tombstone and drops_tombstones):
                continue
            if len(key) > SHORT_KEY_BYTES:
                key = blake2b(key, digest_size=DIGEST_BYTES).digest()
            if base_offset + offset_delta < newest(key, -1):
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
    """The same by the marks of the records; none of their tombstones goes yet. CorruptData."""
    data = section.data
    bounds = _bounds(*section)
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
        while data[at] >= 0x80:
            at += 1
        delta = data[at + 2]
        if delta >= 0x80:
            delta, _ = finish_varint(data, at + 3, delta)
        deltas.append((delta >> 1) ^ -(delta & 1))
    runs.append((run_begin, run_end))
    has_tombstone = NEWEST | TOMBSTONE in marks
    return Sifted(runs, len(staying), deltas[0], max(deltas), has_tombstone)


def _bounds(header: BatchHeader, data: bytes, at: int, end: int) -> list[int]:
    """Where each record begins, and the last one ends. Its fields were looked at before."""
    bounds = [at]
    try:
        for _ in range(header.record_count):
            raw, at = data[at], at + 1
            if raw >= 0x80:
                if data[at] < 0x80:
                    raw, at = raw & 0x7F | data[at] << 7, at + 1
                else:
                    raw, at = finish_varint(data, at, raw)
            at += raw >> 1
            bounds.append(at)
    except IndexError as cause:
        raise _misfit(header) from cause
    if at != end:
        raise _misfit(header)
    return bounds


def _walk(
    header: BatchHeader, data: bytes, at: int, end: int
) -> Iterator[tuple[int, int, int, int, bytes | None, bool]]:
    """Of each record where it begins and ends, timestamp and offset delta, key, whether its value
    is null."""
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
            size, at = data[at], at + 1
            if size >= 0x80:
                size, at = finish_varint(data, at, size)
            key = None if size & 1 else data[at : at + (size >> 1)]
            at += 0 if size & 1 else size >> 1
            if raw & 1 or not at < following <= end:
                raise _misfit(header)
            time = (time >> 1) ^ -(time & 1)
            yield begin, following, time, offset >> 1, key, data[at] == _NULL
            at = following
    except IndexError as cause:
        raise _misfit(header) from cause
    if at != end:
        raise _misfit(header)


def _misfit(header: BatchHeader) -> CorruptData:
    return CorruptData(
        f"the records of the batch at offset {header.base_offset} are not what its header says"
    )
