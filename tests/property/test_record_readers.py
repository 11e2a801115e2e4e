"""Every reader of records reads what `walk_records` reads, or leaves it to another (ST-1, SP-1).

`barnabas.records` has the table of these readers. What one of them accepts, all agree about; what
the oracle refuses, none but the readers of columns may accept, and nobody fails otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from barnabas.errors import CorruptData
from barnabas.records.batch import HEADER_BYTES, BatchHeader, read_header, seal
from barnabas.records.columns import iterate_columns
from barnabas.records.fields import PADDING, Fields, any_fields, binary, record_starts
from barnabas.records.layout_classes import uniform_fields
from barnabas.records.plausibility import is_plausible
from barnabas.records.record import BatchBuilder, Record, walk_records
from barnabas.records.record_starts import walk_starts
from barnabas.records.record_tables import rows_of
from barnabas.records.rewrite import Rules, Walk
from barnabas.records.uniform_records import read_uniform
from barnabas.storage.compaction.key_map import NEWEST, KeyMap
from barnabas.storage.compaction.sieve import Section, Sifted, note_keys, sift, sift_marked
from tests.kit.effort import examples
from tests.kit.storage.batches import headers

T = TypeVar("T")

LATEST_MS = 2**42
INT64 = range(-(2**63), 2**63)

Row = tuple[int, int, bytes | None, bytes | None]
"""Offset, timestamp, key and value."""


class Made(NamedTuple):
    """A batch, and where its records begin and the last one ends."""

    header: BatchHeader
    plain: bytes
    bounds: list[int]


blobs = st.one_of(
    st.none(), st.sampled_from([b"", b"k", b"key"]), st.integers(60, 70).map(lambda n: b"b" * n)
)
long_blobs = st.sampled_from([b"l" * 8_180, b"l" * 8_200])
times = st.one_of(st.sampled_from([0, 1, 63, 64, 8_192, 2**41]), st.integers(0, LATEST_MS))
shapes = st.tuples(times, blobs, st.one_of(blobs, blobs, long_blobs), st.just(()) | headers)
runs = st.lists(st.tuples(shapes, st.integers(1, 90)), min_size=1, max_size=4)


@st.composite
def batches(draw: st.DrawFn) -> Made:
    """Runs of records that are alike, from one record to hundreds."""
    builder = BatchBuilder()
    bounds = [0]
    for (time_ms, key, value, pairs), count in draw(runs):
        for number in range(count):
            numbered = value and (b"%d" % number + value)[: len(value)]
            builder.append(time_ms, key, numbered, pairs)
            bounds.append(builder.size_bytes - HEADER_BYTES)
    raw = builder.build(draw(st.integers(0, 2**40)))
    return Made(read_header(raw), raw[HEADER_BYTES:], bounds)


@st.composite
def damaged_batches(draw: st.DrawFn) -> Made:
    """Some octets are others, and the end may be missing."""
    header, plain, bounds = draw(batches())
    octets = bytearray(plain)
    # Most of a record is its value, where damage does not show; so strike near the starts too.
    near = st.sampled_from(bounds[:-1]).flatmap(
        lambda at: st.integers(at, min(at + 8, len(octets) - 1))
    )
    for _ in range(draw(st.integers(1, 3))):
        octets[draw(st.one_of(near, st.integers(0, len(octets) - 1)))] = draw(st.integers(0, 255))
    cut = draw(st.sampled_from([0, 0, 0, 1, 5]))
    return Made(header, bytes(octets[: len(octets) - cut]), bounds)


def outcome(read: Callable[[], T]) -> T | None:
    """What a reader returns; None for `CorruptData`."""
    try:
        return read()
    except CorruptData:
        return None


def rows(records: list[Record]) -> list[Row]:
    return [(each.offset, each.timestamp, each.key, each.value) for each in records]


def walked(made: Made) -> Walk:
    walk = Walk(made.header, made.plain, Rules())
    while walk.step(7):
        pass
    return walk


def by_columns(made: Made) -> list[Row]:
    raw = seal(made.header, made.plain)
    found: list[Row] = []
    for columns in iterate_columns(raw):
        offsets, times_ms = columns.offsets.to_pylist(), columns.timestamps.cast("int64")
        keys, values = columns.keys.to_pylist(), columns.values.to_pylist()
        found += zip(offsets, times_ms.to_pylist(), keys, values, strict=True)
    return found


def by_fields(made: Made, *, by_class: bool) -> list[Row] | None:
    """By `any_fields`, or by `uniform_fields`, where None means that it leaves them."""
    data = made.plain + PADDING
    octets = np.frombuffer(data, np.uint8)
    starts = record_starts(data, [len(made.plain)], [made.header.record_count])
    fields: Fields | None
    if by_class:
        fields = uniform_fields(data, octets, starts)
        if fields is None:
            return None
    else:
        fields = any_fields(octets, starts, np.append(starts[1:], len(made.plain)))
    return _rows(
        made.header,
        fields.time_deltas.tolist(),
        fields.offset_deltas.tolist(),
        binary(octets, fields.keys).to_pylist(),
        binary(octets, fields.values).to_pylist(),
    )


def by_table(made: Made) -> list[Row] | None:
    found = rows_of([made.plain], [made.header.record_count], fewest=1)
    if found is None:
        return None
    times_ms, offsets = found.time_deltas.tolist(), found.offset_deltas.tolist()
    return _rows(made.header, times_ms, offsets, found.keys.to_pylist(), found.values.to_pylist())


def _rows(
    header: BatchHeader,
    time_deltas: list[int],
    offset_deltas: list[int],
    keys: list[bytes | None],
    values: list[bytes | None],
) -> list[Row]:
    offsets = [header.base_offset + delta for delta in offset_deltas]
    times_ms = [header.base_timestamp + delta for delta in time_deltas]
    return list(zip(offsets, times_ms, keys, values, strict=True))


def by_uniform(made: Made) -> list[Row] | None:
    found = read_uniform(made.header, made.plain)
    if found is None:
        return None
    return list(zip(found.offsets, found.timestamps_ms, found.keys, found.values, strict=True))


def by_sieve(made: Made) -> tuple[Sifted, Sifted | None]:
    """What stays of the batch alone, by its keys and by the marks of its records."""
    section = Section(made.header, made.plain, 0, len(made.plain))
    key_map = KeyMap(1 << 20, made.header.base_offset)
    note_keys(section, key_map)
    key_map.latest_offset = made.header.last_offset
    key_map.finish()
    marks = key_map.marks_of(made.header)
    by_marks = None
    if marks is not None and marks.count(NEWEST) + marks.count(NEWEST | 2):
        by_marks = sift_marked(section, marks)
    return sift(section, key_map, drops_tombstones=False), by_marks


def left_by_compaction(records: list[Record]) -> list[Record]:
    """The last record of each key, which is what `sift` leaves."""
    newest = {each.key: each.offset for each in records}
    return [each for each in records if each.key is not None and newest[each.key] == each.offset]


@settings(deadline=None, max_examples=examples(100))
@given(batches())
def test_all_read_the_same(made: Made) -> None:
    header, plain, bounds = made
    records = list(walk_records(header, plain))
    expected = rows(records)
    assert walk_starts(plain, 0, header.record_count) == (bounds[:-1], bounds[-1])
    assert walked(made).max_timestamp == max(each.timestamp for each in records)
    assert is_plausible(memoryview(seal(header, plain)), LATEST_MS)
    assert by_columns(made) == expected
    assert by_fields(made, by_class=False) == expected
    for reader in (by_uniform, by_table, lambda made: by_fields(made, by_class=True)):
        found = reader(made)
        event(f"{reader.__name__} {'leaves it' if found is None else 'reads it'}")
        assert found in (None, expected)
    staying = left_by_compaction(records)
    for sifted in by_sieve(made):
        if sifted is not None:
            assert sifted.kept == len(staying)
            assert sum(end - begin for begin, end in sifted.runs) == sum(
                bounds[each.offset - header.base_offset + 1]
                - bounds[each.offset - header.base_offset]
                for each in staying
            )
            assert sifted.has_tombstone == any(each.value is None for each in staying)
            if staying:
                deltas = [each.timestamp - header.base_timestamp for each in staying]
                assert (sifted.first_delta, sifted.max_delta) == (deltas[0], max(deltas))


def _negative_length() -> Made:
    """A batch of one record whose value's length is -3073: null, as any negative length."""
    builder = BatchBuilder()
    builder.append(0, None, None, ())
    return Made(read_header(builder.build(0)), b"\x0e\0\0\0\x01\x81\x30\0", [0, 8])


@pytest.mark.thorough
@settings(deadline=None, max_examples=examples(300))
@given(damaged_batches())
@example(_negative_length())
def test_of_damaged_records_all_read_the_same_or_refuse_them(made: Made) -> None:
    header = made.header
    records = outcome(lambda: list(walk_records(header, made.plain)))
    event("the oracle refuses" if records is None else "the oracle reads")
    in_order = records is not None and [each.offset - header.base_offset for each in records] == [
        *range(header.record_count)
    ]
    fits = records is not None and all(each.timestamp in INT64 for each in records)
    assert (outcome(lambda: walked(made)) is not None) == (in_order and fits)
    uniform = by_uniform(made)
    assert uniform is None or (records is not None and uniform == rows(records))
    others = [
        outcome(lambda: by_columns(made)),
        outcome(lambda: by_fields(made, by_class=False)),
        outcome(lambda: by_fields(made, by_class=True)),
        by_table(made),
    ]
    sifted = outcome(lambda: by_sieve(made))
    if records is None or not fits:
        return  # the others may miss what is wrong, but have ended
    assert others[0] == others[1] == rows(records)
    assert all(found in (None, rows(records)) for found in others[2:])
    if in_order:
        assert sifted is not None
        for each in sifted:
            assert each is None or each.kept == len(left_by_compaction(records))
