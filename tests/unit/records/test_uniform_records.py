"""CO-1: records read by columns are those of the plain reader, or are left to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import CorruptData
from barnabas.records.batch import read_header
from barnabas.records.record import BatchBuilder, Record, plain_records, walk_records
from barnabas.records.uniform_records import read_uniform

Rows = list[tuple[int, bytes | None, bytes | None]]


def built(rows: Rows, **headers: bytes) -> bytes:
    builder = BatchBuilder()
    for timestamp_ms, key, value in rows:
        builder.append(timestamp_ms, key, value, tuple(headers.items()))
    return builder.build(1_000)


def by_columns(raw: bytes) -> list[Record] | None:
    header = read_header(raw)
    alike = read_uniform(header, plain_records(raw, 0, header))
    if alike is None:
        return None
    rows = zip(alike.offsets, alike.timestamps_ms, alike.keys, alike.values, strict=True)
    return [Record(*row) for row in rows]


def one_by_one(raw: bytes) -> list[Record]:
    header = read_header(raw)
    return list(walk_records(header, plain_records(raw, 0, header)))


@pytest.mark.parametrize("count", [16, 64, 65, 200, 9_000])
@pytest.mark.parametrize("key", [None, b"", b"key", b"k" * 100])
def test_records_of_one_size_are_read_by_columns(count: int, key: bytes | None) -> None:
    rows: Rows = [(5_000 + 3 * n, key, b"%0100d" % n) for n in range(count)]
    raw = built(rows)
    found = by_columns(raw)
    assert found is not None and found == one_by_one(raw)


def test_what_is_not_alike_is_left_to_the_plain_reader() -> None:
    sizes: Rows = [(0, None, b"v" * (n % 7)) for n in range(200)]
    few: Rows = [(0, None, b"v")] * 15
    same: Rows = [(0, None, b"v")] * 100
    assert by_columns(built(sizes)) is None
    assert by_columns(built(few)) is None
    assert by_columns(built(same, name=b"value")) is None
    assert by_columns(built(same)) is not None


Row = st.tuples(
    st.sampled_from([0, 1, 63, 64, 65, 9_000, -1, 2**40]),
    st.sampled_from([None, b"", b"k"]),
    st.sampled_from([None, b"", b"v", b"v" * 70]),
)


@given(st.lists(st.tuples(Row, st.integers(1, 120)), min_size=1, max_size=6))
def test_any_runs_are_read_alike_or_left(runs: list[tuple[tuple[int, bytes, bytes], int]]) -> None:
    raw = built([row for row, count in runs for _ in range(count)])
    found = by_columns(raw)
    assert found is None or found == one_by_one(raw)


@given(st.data())
def test_hostile_octets_give_the_same_records_or_are_left(data: st.DataObject) -> None:
    rows: Rows = [(n // 9, b"k", b"%06d" % n) for n in range(data.draw(st.integers(16, 150)))]
    raw = bytearray(built(rows))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(61, len(raw) - 1))] = data.draw(st.integers(0, 255))
    found = by_columns(bytes(raw))
    if found is not None:
        try:
            assert found == one_by_one(bytes(raw))
        except CorruptData as error:
            raise AssertionError("the plain reader refuses them") from error
