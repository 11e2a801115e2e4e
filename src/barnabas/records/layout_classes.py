"""Decodes records in groups that have the same layout, instead of field by field.

This is the fast path of `columns.py`. Records of one producer usually differ in the content of
their fields rather than in their lengths. If the octets with lengths are the same, so is the
position of every field, and only this part of a record has to be loaded:

    length | attributes | timestamp delta | offset delta | key length | key | value length | value
    '------------------- at most 16 octets: one load -----------------'     '-- a second one --'

All records of a class have the same octets of `length`, `key length` and `value length`, and the
top bits of both deltas (a varint continues after an octet with its top bit set). An offset delta
grows by an octet at 64 and at 8,192, so a batch has two or three classes and a fetch hardly more.
If there are many classes (values of many sizes), `fields.py` decodes the records instead.

Consecutive records of a class are at equal distances, so `record_tables.py` reads them as a table
without any positions. Here, classes may be mixed.

A class is derived from its first record by the rules of the slow reader, and a record that the slow
reader would reject has no class. Therefore, all positions found here are inside their records.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from barnabas.records.fields import Blobs, Fields, Integers, Octets
from barnabas.records.record_layout import Layout, read_layout

Words = npt.NDArray[np.uint64]
Chosen = npt.NDArray[np.bool_]

_MOST_CLASSES = 8
_ONE_OCTET: Integers = np.arange(128) >> 1 ^ -(np.arange(128) & 1)  # the varints of one octet
_WORD_BYTES = 8
HEAD_BYTES = 2 * _WORD_BYTES


class Heads(NamedTuple):
    """The first 16 octets of each record as words, and the positions of the records."""

    rows: Integers
    starts: Integers
    low: Words
    high: Words

    def where(self, chosen: Chosen) -> Heads:
        if chosen.all():
            return self
        rows, starts, low, high = self
        return Heads(rows[chosen], starts[chosen], low[chosen], high[chosen])

    def first(self, count: int) -> Heads:
        rows, starts, low, high = self
        return Heads(rows[:count], starts[:count], low[:count], high[:count])


def uniform_fields(data: bytes, octets: Octets, starts: Integers) -> Fields | None:
    """Return the fields of the records at `starts`, or None if there are many classes. There must
    be at least one record.

    `data` and `octets` are the same buffer. It must contain 16 more octets after the last record.
    """
    left = Heads(np.arange(starts.size), starts, *_words(octets, starts, HEAD_BYTES))
    parts: list[tuple[Integers, Fields]] = []
    for _ in range(_MOST_CLASSES):
        # The first record may belong to a small class, so start with a record in the middle.
        first = int(left.starts[left.starts.size // 2])
        layout = layout_at(data, first)
        if layout is None:
            return None
        members = left.where(same_head(data, first, left, layout))
        if layout.value > HEAD_BYTES:
            members = members.where(_same_value_length(data, first, octets, members, layout))
        # If this class is so small, there must be many classes. Leave all records to the general
        # decoder.
        if members.rows.size * _MOST_CLASSES < left.rows.size:
            return None
        parts.append((members.rows, _fields(members, layout)))
        if members.rows.size == left.rows.size:
            return _merge(parts, starts.size)
        others = np.ones(starts.size, np.bool_)
        others[members.rows] = False
        left = left.where(others[left.rows])
    return None


def layout_at(data: bytes | memoryview, start: int) -> Layout | None:
    """Return the layout of the record at `start`, or None if the record cannot define a class."""
    layout = read_layout(data, start)
    if layout is None or layout.key > HEAD_BYTES:
        return None
    widths = (layout.offset_delta - layout.time_delta, layout.key_length_at - layout.offset_delta)
    if max(widths) > _WORD_BYTES:  # the timestamp is not a plausible time
        return None
    return layout if layout.value - layout.value_length_at <= _WORD_BYTES else None


def same_head(data: bytes | memoryview, first: int, heads: Heads, layout: Layout) -> Chosen:
    """Return which records have the same record length, key length and delta widths as `first`.

    If the value length is in the head as well, it must also be the same.
    """
    octets = bytearray(HEAD_BYTES)
    octets[: layout.time_delta - 1] = b"\xff" * (layout.time_delta - 1)
    octets[layout.time_delta : layout.key_length_at] = b"\x80" * (
        layout.key_length_at - layout.time_delta
    )
    octets[layout.key_length_at : layout.key] = b"\xff" * (layout.key - layout.key_length_at)
    if layout.value <= HEAD_BYTES:
        octets[layout.value_length_at : layout.value] = b"\xff" * (
            layout.value - layout.value_length_at
        )
    same: Chosen = (heads.low ^ _word(data, first)) & _word(octets, 0) == 0
    if high := _word(octets, _WORD_BYTES):
        same &= (heads.high ^ _word(data, first + _WORD_BYTES)) & high == 0
    return same


def _same_value_length(
    data: bytes, first: int, octets: Octets, heads: Heads, layout: Layout
) -> Chosen:
    """Return which records with the same head as `first` also have the same value length."""
    at = layout.value_length_at
    (words,) = _words(octets, heads.starts + at, _WORD_BYTES)
    mask = np.uint64((1 << 8 * (layout.value - at)) - 1)
    same: Chosen = (words ^ _word(data, first + at)) & mask == 0
    return same


def _fields(heads: Heads, layout: Layout) -> Fields:
    starts = heads.starts
    value_octets = max(layout.value_length, 0)
    return Fields(
        time_deltas=head_varints(heads, layout.time_delta, layout.offset_delta),
        offset_deltas=head_varints(heads, layout.offset_delta, layout.key_length_at),
        keys=Blobs(starts + layout.key, np.full(starts.size, layout.key_length)),
        values=Blobs(starts + layout.value, np.full(starts.size, layout.value_length)),
        cursor=starts + (layout.value + value_octets),
    )


def head_varints(heads: Heads, begin: int, end: int) -> Integers:
    """Decode zigzag varints of `end - begin` octets each, which start at `begin` in each record."""
    word, at = (heads.low, begin) if begin < _WORD_BYTES else (heads.high, begin - _WORD_BYTES)
    shifted = word >> np.uint64(8 * at) if at else word
    if end - begin == 1:
        one: Integers = _ONE_OCTET[shifted & np.uint64(0x7F)]
        return one
    if begin < _WORD_BYTES < end:
        shifted |= heads.high << np.uint64(8 * (_WORD_BYTES - at))
    zigzag = shifted & np.uint64(0x7F)
    for octet in range(1, end - begin):
        zigzag |= (shifted >> np.uint64(octet)) & np.uint64(0x7F << 7 * octet)
    return (zigzag >> np.uint64(1)).view(np.int64) ^ -(zigzag & np.uint64(1)).view(np.int64)


def _merge(parts: list[tuple[Integers, Fields]], count: int) -> Fields:
    """Merge the rows of all classes, ordered by record."""
    if len(parts) == 1:
        return parts[0][1]
    columns = [np.empty(count, np.int64) for _ in range(7)]
    for rows, (time_deltas, offset_deltas, keys, values, cursor) in parts:
        members = (time_deltas, offset_deltas, *keys, *values, cursor)
        for column, member in zip(columns, members, strict=True):
            column[rows] = member
    time_deltas, offset_deltas, keys_at, key_lengths, values_at, value_lengths, cursor = columns
    keys, values = Blobs(keys_at, key_lengths), Blobs(values_at, value_lengths)
    return Fields(time_deltas, offset_deltas, keys, values, cursor)


def _words(octets: Octets, positions: Integers, size: int) -> list[Words]:
    """Return the `size` octets at each position as words with the lowest octet first."""
    # Items of this type can be gathered at any alignment, whereas numbers would have to be copied
    # first.
    overlapping = np.ndarray((octets.size - size + 1,), f"V{size}", octets, strides=(1,))
    words = overlapping[positions].view("<u8").reshape(-1, size // _WORD_BYTES)
    return [np.ascontiguousarray(column) for column in words.T]


def _word(octets: bytes | bytearray | memoryview, position: int) -> np.uint64:
    return np.uint64(int.from_bytes(octets[position : position + _WORD_BYTES], "little"))
