"""Decodes consecutive records of equal layout as a table. This is the fastest path of `columns`.

    record | record | record | ...      `count` rows of `stride` octets each: one array, no copy

If a producer's records have one size, a batch consists of two or three such stretches (its offset
deltas take a second octet from 64 on). The fields are columns of octets of that array, and a column
of values is one strided copy from the fetch's own buffer. `layout_classes.py` and `fields.py`
handle everything else. This includes batches of few records, because a stretch of any length costs
about twenty calls, and keys or values of different widths. It also includes records that may be
damaged, so no error is raised here.

The start of each record follows from the length of the record before it, which has been compared
with the first record's. Therefore, all reads are inside the section.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed

from barnabas.records.fields import Integers, Octets, equal_width
from barnabas.records.layout_classes import (
    HEAD_BYTES,
    Heads,
    head_varints,
    layout_at,
    same_head,
)
from barnabas.records.record_layout import Layout

# records per stretch on average; with fewer, this is slower than the other methods
_FEWEST_RECORDS = 256


class Rows(NamedTuple):
    """The fields of records as columns, ordered by record."""

    time_deltas: Integers
    offset_deltas: Integers
    keys: pa.Array
    values: pa.Array


class _Stretch(NamedTuple):
    octets: Octets
    """The octets of the records, with one row per record."""
    heads: Heads
    layout: Layout


def rows_of(
    sections: Sequence[bytes | memoryview], counts: Sequence[int], fewest: int = _FEWEST_RECORDS
) -> Rows | None:
    """Return the records of batches, or None if this is not worthwhile. `sections[i]` contains
    `counts[i]` records.

    It is not worthwhile if a stretch would have fewer than `fewest` records on average, or if the
    records do not all have the same layout.
    """
    found: list[_Stretch] = []
    most = sum(counts) // fewest
    for section, count in zip(sections, counts, strict=True):
        position = 0
        while count:
            if len(found) == most:
                return None
            stretch = _stretch(section, position, count)
            if stretch is None or not _are_alike(stretch, found):
                return None
            found.append(stretch)
            position += stretch.octets.size
            count -= len(stretch.octets)
        if position != len(section):
            return None
    return _join(found, sum(counts))


def _stretch(section: bytes | memoryview, position: int, most: int) -> _Stretch | None:
    """Return the longest stretch that begins at `position`."""
    layout = layout_at(section, position)
    if layout is None or layout.size < HEAD_BYTES:
        return None
    stride = layout.size
    count = min(most, (len(section) - position) // stride)
    if not count:
        return None
    octets = np.ndarray((count, stride), np.uint8, section, position)
    # The words may have any alignment. Copying them once aligns them for numpy.
    low, high = (
        np.ndarray((count,), "<u8", section, position + at, (stride,)).copy() for at in (0, 8)
    )
    numbers = np.arange(count)
    heads = Heads(numbers, numbers, low, high)
    same = same_head(section, position, heads, layout)
    # The length of the value comes after the octets that were loaded, so compare its columns
    # instead.
    if layout.value > HEAD_BYTES:
        for at in range(layout.value_length_at, layout.value):
            same &= octets[:, at] == octets[0, at]
    if not same.all():
        count = int(same.argmin())
        heads = heads.first(count)
    return _Stretch(octets[:count], heads, layout)


def _are_alike(stretch: _Stretch, others: Sequence[_Stretch]) -> bool:
    first = (others[0] if others else stretch).layout
    layout = stretch.layout
    return (layout.key_length, layout.value_length) == (first.key_length, first.value_length)


def _join(stretches: Sequence[_Stretch], count: int) -> Rows | None:
    if not stretches:
        return None
    key_length, value_length = stretches[0].layout.key_length, stretches[0].layout.value_length
    keys = np.empty((count, max(key_length, 0)), np.uint8)
    values = np.empty((count, max(value_length, 0)), np.uint8)
    time_deltas, offset_deltas = np.empty(count, np.int64), np.empty(count, np.int64)
    row = 0
    for octets, heads, layout in stretches:
        rows = slice(row, row + len(octets))
        keys[rows] = octets[:, layout.key : layout.key + keys.shape[1]]
        values[rows] = octets[:, layout.value : layout.value + values.shape[1]]
        time_deltas[rows] = head_varints(heads, layout.time_delta, layout.offset_delta)
        offset_deltas[rows] = head_varints(heads, layout.offset_delta, layout.key_length_at)
        row = rows.stop
    return Rows(
        time_deltas,
        offset_deltas,
        equal_width(keys, key_length, count),
        equal_width(values, value_length, count),
    )
