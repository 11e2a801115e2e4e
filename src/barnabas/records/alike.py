"""Records of one layout, read by columns without numpy: the fast path of a consumer.

    record | record | record | ...      a stretch: `count` rows of `stride` octets each

Where a producer's records are of one size, every octet that says where a field begins is a column
of equal octets, and `bytes` compares, slices and searches columns in C. So only the values
themselves cost a step of Python each. Anything else (few records, many sizes, headers, offsets with
gaps, a record that may be damaged) is left to `record.walk_records`, which also has the errors.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from barnabas.errors import CorruptData
from barnabas.records.batch import BatchHeader
from barnabas.records.varint import read_varint

_FEWEST = 16  # records to a stretch, on average: with fewer the plain way is as fast
_SLACK = 64
_IS_LONG = bytes(octet >= 0x80 for octet in range(256))
_ONE_OCTET, _TWO_OCTETS = 64, 8192  # the first offset delta that needs one octet more


class Alike(NamedTuple):
    """Columns of a batch's records, in their order."""

    offsets: range
    timestamps_ms: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]


class _Layout(NamedTuple):
    """Where a record's fields begin, from its start; a length of -1 is a null."""

    stride: int
    time_delta: int
    offset_delta: int
    key_length_at: int
    key: int
    key_length: int
    value_length_at: int
    value: int
    value_length: int


def read_alike(header: BatchHeader, data: bytes) -> Alike | None:
    """The records of a batch, `data` being all of them uncompressed; None if not worthwhile."""
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
        if done + _SLACK < stretches * _FEWEST:
            return None
        end = position + run * layout.stride
        timestamps += _timestamps(header, data, range(position, end, layout.stride), layout)
        keys += _blobs(data, layout.key, layout.key_length, range(position, end, layout.stride))
        values += _blobs(
            data, layout.value, layout.value_length, range(position, end, layout.stride)
        )
        position = end
    if position != len(data):
        return None
    first = header.base_offset
    return Alike(range(first, first + count), timestamps, keys, values)


def _layout_at(data: bytes, start: int) -> _Layout | None:
    """The layout of the record at `start`; None if it has headers, or is damaged."""
    try:
        size, body = read_varint(data, start)
        _, offset_delta = read_varint(data, body + 1)
        _, key_length_at = read_varint(data, offset_delta)
        key_length, key = read_varint(data, key_length_at)
        value_length_at = key + max(key_length, 0)
        value_length, value = read_varint(data, value_length_at)
        header_count = data[value + max(value_length, 0)]
    except (IndexError, CorruptData):
        return None
    if min(key_length, value_length) < -1 or header_count:
        return None
    if body + size != value + max(value_length, 0) + 1:
        return None
    return _Layout(
        stride=body + size - start,
        time_delta=body + 1 - start,
        offset_delta=offset_delta - start,
        key_length_at=key_length_at - start,
        key=key - start,
        key_length=key_length,
        value_length_at=value_length_at - start,
        value=value - start,
        value_length=value_length,
    )


def _run(data: bytes, position: int, layout: _Layout, most: int) -> int:
    """How many records from `position` on have this layout.

    Each start follows from the length of the record before it, which has been compared.
    """
    stride = layout.stride
    run = min(most, (len(data) - position) // stride)
    fixed = (
        *range(layout.time_delta - 1),  # the length; the attributes' octet is unused
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


def _offsets_follow(data: bytes, position: int, layout: _Layout, first: int, run: int) -> bool:
    """Whether the offset deltas of `run` records are `first`, `first` + 1 and so on."""
    width = layout.key_length_at - layout.offset_delta
    end = position + run * layout.stride
    columns = [
        data[position + place : end : layout.stride]
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


def _timestamps(header: BatchHeader, data: bytes, starts: range, layout: _Layout) -> list[int]:
    if header.has_log_append_time:
        return [header.max_timestamp] * len(starts)
    base = header.base_timestamp
    columns = [
        data[starts.start + place : starts.stop : starts.step]
        for place in range(layout.time_delta, layout.offset_delta)
    ]
    if all(not column.lstrip(column[:1]) for column in columns):
        return [base + _zigzag(tuple(column[0] for column in columns))] * len(starts)
    if len(columns) == 1:
        return [base + ((octet >> 1) ^ -(octet & 1)) for octet in columns[0]]
    return [base + _zigzag(octets) for octets in zip(*columns, strict=True)]


def _zigzag(octets: tuple[int, ...]) -> int:
    """A varint of these octets."""
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
