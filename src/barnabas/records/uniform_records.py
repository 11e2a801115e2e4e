"""Reads records of one layout by columns, without numpy: a consumer's fast path.

    record | record | record | ...      a stretch: `count` rows of `stride` octets each

If a producer's records have one size, every octet that determines where a field begins is a column
of equal octets, and `bytes` compares, slices and searches columns in C. Therefore, only the values
themselves cost one Python step each. `record.walk_records` handles everything else (few records,
many sizes, headers, offsets with gaps, possible damage) and raises the errors.
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
    """The fields of a batch's records as columns, in the order of the records."""

    offsets: range
    timestamps_ms: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]


def read_uniform(header: BatchHeader, data: bytes) -> UniformRecords | None:
    """Return the records of a batch, uncompressed in `data`; None if this is not worthwhile."""
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
        # Too many sizes: continuing would cost more than the plain walk.
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
    """Return the layout of the record at `start`; None if it has headers or is damaged."""
    layout = read_layout(data, start)
    if layout is None or layout.header_count_at + 1 != layout.size:
        return None
    last = start + layout.header_count_at
    return layout if data[last : last + 1] == b"\0" else None


def _run(data: bytes, position: int, layout: Layout, most: int) -> int:
    """Return how many records from `position` on have this layout.

    Each start follows from the previous record's length, already compared.
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
    """Return whether the offset deltas of `run` records are `first`, `first` + 1 and so on."""
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
    # A producer often stamps all records of a batch with the same time.
    if all(not column.lstrip(column[:1]) for column in columns):
        return [base + _zigzag(tuple(column[0] for column in columns))] * len(starts)
    if len(columns) == 1:
        return [base + ((octet >> 1) ^ -(octet & 1)) for octet in columns[0]]
    return [base + _zigzag(octets) for octets in zip(*columns, strict=True)]


def _zigzag(octets: tuple[int, ...]) -> int:
    """Return the number that these octets encode as a varint."""
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
