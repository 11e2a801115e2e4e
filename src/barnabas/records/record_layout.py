"""Determines the layout of a record, that is, where its fields begin.

Readers of columns apply the layout of one record to all records that have the same layout.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.errors import CorruptData
from barnabas.records.varint import read_varint


class Layout(NamedTuple):
    """The positions of the fields in a record, relative to its start. A length of -1 stands for
    null.
    """

    size: int
    """The size of the whole record, including the length varint."""
    time_delta: int
    offset_delta: int
    key_length_at: int
    key: int
    key_length: int
    value_length_at: int
    value: int
    value_length: int

    @property
    def header_count_at(self) -> int:
        return self.value + max(self.value_length, 0)


def read_layout(data: bytes | memoryview, start: int) -> Layout | None:
    """Return the layout of the record at `start`, or None if the record is damaged."""
    try:
        size, body = read_varint(data, start)
        end = body + size
        time_delta = body + 1
        _, offset_delta = read_varint(data, time_delta)
        _, key_length_at = read_varint(data, offset_delta)
        key_length, key = read_varint(data, key_length_at)
        value_length_at = key + max(key_length, 0)
        if key_length < -1 or not key_length_at < value_length_at < end:
            return None
        value_length, value = read_varint(data, value_length_at)
    except (IndexError, CorruptData):
        return None
    if value_length < -1 or value + max(value_length, 0) > end:
        return None
    return Layout(
        end - start,
        time_delta - start,
        offset_delta - start,
        key_length_at - start,
        key - start,
        key_length,
        value_length_at - start,
        value - start,
        value_length,
    )
