"""Columns are what `iterate_records` reads, for any batches (SP-1)."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas.errors import CorruptData
from barnabas.records.columns import iterate_columns
from barnabas.records.record import BatchBuilder, Record, iterate_records

BLOBS = st.one_of(st.none(), st.binary(max_size=40), st.binary(min_size=60, max_size=70))
HEADERS = st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=20)), max_size=3)


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """Concatenated batches of random codecs, some of records of one size, with gaps between."""
    offset = draw(st.integers(0, 2**40))
    data = b""
    for _ in range(draw(st.integers(0, 4))):
        builder = BatchBuilder(codec=draw(st.integers(0, 4)))
        if draw(st.booleans()):
            key = draw(BLOBS)
            value = draw(st.one_of(st.none(), st.binary(max_size=200)))
            time_ms = draw(st.integers(0, 2**41))
            for step in range(draw(st.integers(1, 300))):
                builder.append(time_ms + step, key, value)
        else:
            for _ in range(draw(st.integers(1, 12))):
                time_ms = draw(st.integers(-1, 2**41))
                builder.append(time_ms, draw(BLOBS), draw(BLOBS), draw(HEADERS))
        data += builder.build(offset)
        offset += builder.record_count + draw(st.integers(0, 5))
    return data


def blob(step: int, length: int) -> bytes | None:
    return None if length < 0 else (b"%d" % step * length)[:length]


@st.composite
def batches_of_few_shapes(draw: st.DrawFn) -> bytes:
    """Batches whose records share a few lengths of keys and values, with times of any distance."""
    lengths = st.sampled_from([-1, 0, 1, 8, 63, 64, 150])
    shapes = draw(st.lists(st.tuples(lengths, lengths), min_size=1, max_size=4))
    time_ms = draw(st.integers(0, 2**41))
    distances = st.sampled_from([0, 1, -1, 64, -65, 8_192, 2**31, 2**56, -(2**62)])
    pattern = draw(st.lists(st.tuples(st.sampled_from(shapes), distances), min_size=1, max_size=9))
    data = b""
    for number in range(draw(st.integers(1, 3))):
        builder = BatchBuilder(codec=draw(st.integers(0, 4)))
        for step in range(draw(st.integers(1, 150))):
            (key, value), distance_ms = pattern[step % len(pattern)]
            builder.append(time_ms + distance_ms, blob(step, key), blob(step, value))
        data += builder.build(1000 * number)
    return data


def rows(data: bytes, **arguments: Any) -> list[Record]:
    """The columns of `data` as records."""
    found = []
    for columns in iterate_columns(data, with_headers=True, **arguments):
        assert columns.headers is not None
        for array in columns:
            array.validate(full=True)
        lists = (columns.offsets, columns.timestamps.cast("int64"), columns.keys, columns.values)
        heads = columns.headers.to_pylist()
        kinds = columns.timestamp_types.to_pylist()
        plain = zip(*(array.to_pylist() for array in lists), heads, kinds, strict=True)
        for offset, time_ms, key, value, headers, kind in plain:
            pairs = tuple((header["key"], header["value"]) for header in headers or ())
            assert headers is None or pairs, "no headers are null, as in the connector"
            found.append(Record(offset, time_ms, key, value, pairs, kind))
    return found


@given(batches())
@settings(deadline=None)
def test_columns_are_the_records(data: bytes) -> None:
    assert rows(data) == list(iterate_records(data))


@given(batches_of_few_shapes())
@settings(deadline=None)
def test_records_of_few_shapes_are_the_records_too(data: bytes) -> None:
    """These go to `layout_classes.py`; some have too many classes and are left to the rest."""
    assert rows(data) == list(iterate_records(data))


@given(batches(), st.data())
@settings(deadline=None)
def test_a_range_of_offsets_is_cut_out(data: bytes, draw: st.DataObject) -> None:
    records = list(iterate_records(data))
    offsets = [record.offset for record in records] or [0]
    start = draw.draw(st.integers(max(0, offsets[0] - 3), offsets[-1] + 3))
    end = draw.draw(st.integers(start, offsets[-1] + 5))
    wanted = [record for record in records if start <= record.offset < end]
    assert rows(data, offsets=range(start, end)) == wanted


@given(batches(), st.data())
@settings(deadline=None)
def test_a_torn_batch_at_the_end_is_left(data: bytes, draw: st.DataObject) -> None:
    torn = data[: draw.draw(st.integers(0, len(data)))]
    assert rows(torn) == list(iterate_records(torn))


@given(batches(), st.data())
@example(b"", None)
@settings(deadline=None)
def test_whatever_the_bytes_are_the_outcome_is_rows_or_corrupt_data(
    data: bytes, draw: st.DataObject | None
) -> None:
    if not data or draw is None:
        return
    hostile = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 4))):
        hostile[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    try:
        rows(bytes(hostile), check_crc=False)
    except CorruptData:
        return
