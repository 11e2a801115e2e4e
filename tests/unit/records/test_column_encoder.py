"""Columns are encoded to the bytes that a record at a time would give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.records.byte_column import ByteColumn
from barnabas.records.column_encoder import encode
from barnabas.records.record import BatchBuilder

blobs = st.none() | st.binary(max_size=4) | st.integers(60, 300).map(bytes)


def oracle(rows: list[tuple[Any, Any, int]]) -> bytes:
    builder = BatchBuilder()
    builder.append(0, None, None)  # deltas are those to a record at 0
    first = len(builder.body)
    for value, key, time in rows:
        builder.append(time, key, value)
    return builder.body[first:]


def ours(rows: list[tuple[Any, Any, int]], *, with_keys: bool) -> bytes:
    values = ByteColumn.of([row[0] for row in rows], "values")
    keys = ByteColumn.of([row[1] for row in rows], "keys") if with_keys else None
    times = np.array([row[2] for row in rows], np.int64)
    return encode(values, keys, times, np.arange(1, len(rows) + 1)).octets.tobytes()


@given(st.lists(st.tuples(blobs, blobs, st.integers(-5, 2**40)), min_size=1, max_size=100))
def test_any_columns_have_the_bytes_of_a_record_at_a_time(rows: list[tuple[Any, Any, int]]) -> None:
    assert ours(rows, with_keys=True) == oracle(rows)
    keyless = [(value, None, time) for value, _, time in rows]
    assert ours(keyless, with_keys=False) == oracle(keyless)


@pytest.mark.parametrize("size", [0, 1, 60, 100, 200])
@pytest.mark.parametrize("count", [1, 2, 63, 65, 20_000])
def test_values_of_one_size_have_the_bytes_of_a_record_at_a_time(size: int, count: int) -> None:
    rows = [(bytes([n % 251]) * size, b"k%04d" % (n % 10_000), 0) for n in range(count)]
    assert ours(rows, with_keys=True) == oracle(rows)


ROWS = [b"a", None, "grüße".encode(), b""]
TEXTS = ["a", None, "grüße", ""]


@pytest.mark.parametrize(
    "given_values",
    [
        ROWS,
        TEXTS,
        tuple(ROWS),
        [bytearray(b"a"), None, "grüße", memoryview(b"")],
        pa.array(ROWS, pa.binary()),
        pa.array(TEXTS),
        pa.array(TEXTS).dictionary_encode(),
        pa.array(TEXTS, pa.string_view()),
        pa.chunked_array([pa.array(TEXTS[:1]), pa.array(TEXTS[1:])]),
        pa.array(["x", *TEXTS, "y"]).slice(1, 4),
        pd.Series(TEXTS),
        pd.Series(TEXTS, dtype="string"),
        pd.Series(ROWS),
        np.array(ROWS, object),
    ],
    ids=lambda each: type(each).__name__,
)
def test_columns_come_in_many_forms(given_values: Any) -> None:
    column = ByteColumn.of(given_values, "values")
    data = column.data.tobytes()
    found = [
        None if column.nulls is not None and column.nulls[row] else data[start : start + length]
        for row, (start, length) in enumerate(zip(column.starts, column.lengths, strict=True))
    ]
    assert found == ROWS


def test_arrays_of_fixed_size_and_empty_ones() -> None:
    fixed = ByteColumn.of(pa.array([b"ab", b"cd"], pa.binary(2)), "values")
    assert (fixed.data.tobytes(), fixed.lengths.tolist()) == (b"abcd", [2, 2])
    texts = ByteColumn.of(np.array(["ab", "c"]), "values")
    assert (texts.data.tobytes(), texts.lengths.tolist()) == (b"abc", [2, 1])
    nothings: list[Any] = [
        [],
        pa.array([], pa.string()),
        np.array([], object),
        pd.Series([], dtype=object),
    ]
    for nothing in nothings:
        assert len(ByteColumn.of(nothing, "values")) == 0


def test_rows_are_taken_and_cut() -> None:
    for rows in ([b"aa", b"bb", b"cc", b"dd"], [b"a", None, b"ccc", b""], [b""] * 4):
        column = ByteColumn.of(rows, "values")
        chosen = column.take(np.array([3, 0, 2]))
        assert chosen.data.tobytes() == b"".join(rows[n] or b"" for n in (3, 0, 2))
        assert column.part(1, 3).data.tobytes() == b"".join(row or b"" for row in rows[1:3])


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ([b"a", 5], "values: row 1 is int, not bytes, text or None"),
        (b"text", "values: must be a column, not bytes"),
        (5, "values: must be a column, not int"),
        (np.array([1, 2]), "values: must be one column of bytes or text, not 1 dimensions of int"),
        (pa.array([1, 2]), "values: must be a column of bytes or text, not of int64"),
    ],
)
def test_what_is_no_column_of_bytes_is_refused(wrong: Any, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        ByteColumn.of(wrong, "values")
