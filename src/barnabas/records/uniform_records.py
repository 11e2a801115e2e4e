"""Reads records of equal layout into columns, without numpy. This is the fast path of consumers.

    record | record | record | ...      a stretch: `count` rows of `stride` octets each

If all records of a producer have the same size, each octet that determines where a field begins
forms a column of equal octets, and `bytes` can compare, slice and search columns in C. Only the
values need Python code for each record. In all other cases (few records, many sizes, headers, gaps
between offsets, possible damage), `record.walk_records` reads the records and raises any error.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from barnabas.records.batch import BatchHeader
from barnabas.records.record_layout import Layout, read_layout

_FEWEST = 16  # records per stretch on average; with fewer, the plain walk is as fast
_SLACK = 64
_IS_LONG = bytes(octet >= 0x80 for octet in range(256))
_ONE_OCTET, _TWO_OCTETS = 64, 8192  # the first offset deltas that need one more octet


class UniformRecords(NamedTuple):
    """The fields of a batch's records as columns, ordered by record."""

    offsets: range
    timestamps_ms: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]


def read_uniform(header: BatchHeader, data: bytes) -> UniformRecords | None:
    """Return the records of a batch, or None if this is not worthwhile. `data` contains the
    decompressed records.
    """
    count = header.record_count
    if count < _FEWEST or header.last_offset_delta != count - 1:
        return None
    timestamps: list[int] = []
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    position = done = stretches = 0
    while done < count:
        layout = _layout_at(data, position)
        run = 0 if layout is None else _run(data, position, layout, count - done)
        if layout is None or not run or not _offsets_follow(data, position, layout, done, run):
            return None
        stretches += 1
        done += run
        # There are too many sizes, so going on would take longer than the plain walk.
        if done + _SLACK < stretches * _FEWEST:
            return None
        end = position + run * layout.size
        timestamps += _timestamps(header, data, range(position, end, layout.size), layout)
        keys += _blobs(data, layout.key, layout.key_length, range(position, end, layout.size))
        values += _blobs(data, layout.value, layout.value_length, range(position, end, layout.size))
        position = end
    if position != len(data):
        return None
    first = header.base_offset
    return UniformRecords(range(first, first + count), timestamps, keys, values)


def _layout_at(data: bytes, start: int) -> Layout | None:
    """Return the layout of the record at `start`, or None if it has headers or is damaged."""
    layout = read_layout(data, start)
    if layout is None or layout.header_count_at + 1 != layout.size:
        return None
    last = start + layout.header_count_at
    return layout if data[last : last + 1] == b"\0" else None


def _run(data: bytes, position: int, layout: Layout, most: int) -> int:
    """Return how many records from `position` on have this layout.

    The start of each record follows from the length of the record before it, which has already been
    compared.
    """
    stride = layout.size
    run = min(most, (len(data) - position) // stride)
    fixed = (
        *range(layout.time_delta - 1),  # the length; the octet of the attributes is unused
        *range(layout.key_length_at, layout.key),
        *range(layout.value_length_at, layout.value),
        stride - 1,
    )
    for place in fixed:
        column = data[position + place : position + run * stride : stride]
        run -= len(column.lstrip(column[:1]))
    for begin, end in (
        (layout.time_delta, layout.offset_delta),
        (layout.offset_delta, layout.key_length_at),
    ):
        for place in range(begin, end):
            column = data[position + place : position + run * stride : stride]
            other = column.translate(_IS_LONG).find(place == end - 1)
            run = run if other < 0 else other
    return run


def _offsets_follow(data: bytes, position: int, layout: Layout, first: int, run: int) -> bool:
    """Return whether the offset deltas of the `run` records are `first`, `first` + 1 and so on."""
    width = layout.key_length_at - layout.offset_delta
    end = position + run * layout.size
    columns = [
        data[position + place : end : layout.size]
        for place in range(layout.offset_delta, layout.key_length_at)
    ]
    if width == 1 and first + run <= _ONE_OCTET:
        return columns[0] == _short_deltas()[first : first + run]
    if width == 2 and first >= _ONE_OCTET and first + run <= _TWO_OCTETS:
        low, high = _longer_deltas()
        rows = slice(first - _ONE_OCTET, first - _ONE_OCTET + run)
        return columns[0] == low[rows] and columns[1] == high[rows]
    return [_zigzag(octets) for octets in zip(*columns, strict=True)] == [
        *range(first, first + run)
    ]


@cache
def _short_deltas() -> bytes:
    return bytes(2 * delta for delta in range(_ONE_OCTET))


@cache
def _longer_deltas() -> tuple[bytes, bytes]:
    deltas = range(_ONE_OCTET, _TWO_OCTETS)
    return bytes(2 * delta & 0x7F | 0x80 for delta in deltas), bytes(
        2 * delta >> 7 for delta in deltas
    )


def _timestamps(header: BatchHeader, data: bytes, starts: range, layout: Layout) -> list[int]:
    if header.has_log_append_time:
        return [header.max_timestamp] * len(starts)
    base = header.base_timestamp
    columns = [
        data[starts.start + place : starts.stop : starts.step]
        for place in range(layout.time_delta, layout.offset_delta)
    ]
    # Producers often set the same timestamp for all records of a batch.
    if all(not column.lstrip(column[:1]) for column in columns):
        return [base + _zigzag(tuple(column[0] for column in columns))] * len(starts)
    if len(columns) == 1:
        return [base + ((octet >> 1) ^ -(octet & 1)) for octet in columns[0]]
    return [base + _zigzag(octets) for octets in zip(*columns, strict=True)]


def _zigzag(octets: tuple[int, ...]) -> int:
    """Return the number that is encoded as a varint in these octets."""
    raw = shift = 0
    for octet in octets:
        raw |= (octet & 0x7F) << shift
        shift += 7
    return (raw >> 1) ^ -(raw & 1)


def _blobs(data: bytes, place: int, length: int, starts: range) -> list[bytes | None]:
    if length < 0:
        return [None] * len(starts)
    begin, end = starts.start + place, starts.stop + place
    return [data[at : at + length] for at in range(begin, end, starts.step)]
