"""The collector's batches are those that any client would have made of the same records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.records.batch import read_header
from barnabas.records.compression import LZ4, NONE
from barnabas.records.record import iterate_records
from barnabas_collector.encoding import MAX_BATCH_BYTES, LineEncoder
from barnabas_collector.file_progress import new_file
from barnabas_collector.line_cutter import Line, LineBlock

NOW_MS = 1_700_000_000_000
PROGRESS = new_file("/var/log/a.log", b"first\n", 0)


def encoded(lines: list[Line], codec: int, key: bytes | None) -> list[bytes]:
    return [*LineEncoder(PROGRESS, key, [("host", b"h")], codec).batches(lines, NOW_MS)]


@given(
    st.lists(st.tuples(st.binary(max_size=200), st.integers(0, 2**50), st.booleans()), max_size=50),
    st.sampled_from([NONE, LZ4]),
    st.none() | st.binary(max_size=20),
)
def test_records_are_read_back(
    given_lines: list[tuple[bytes, int, bool]], codec: int, key: bytes | None
) -> None:
    lines = [
        Line(position, number, text, len(text) + 7 * is_cut, (("own", text),) * (number % 2))
        for number, (text, position, is_cut) in enumerate(given_lines, 1)
    ]
    records = [each for batch in encoded(lines, codec, key) for each in iterate_records(batch)]
    assert [(each.value, each.key, each.timestamp) for each in records] == [
        (line.text, key, NOW_MS) for line in lines
    ]
    for record, line in zip(records, lines, strict=True):
        expected = {
            "file": b"/var/log/a.log",
            "file.id": PROGRESS.file_id.encode(),
            "host": b"h",
            "file.position": b"%d" % line.position,
            "file.line": b"%d" % line.number,
        }
        expected.update(line.more)
        if line.is_cut:
            expected["file.cut"] = b"%d" % line.size_bytes
        assert dict(record.headers) == expected


def test_many_and_long_lines_are_several_batches() -> None:
    lines = [Line(at, at, b"x" * 60, 60) for at in range(40_000)]
    lines += [Line(40_000 + at, at, b"y" * 262_144, 262_144) for at in range(5)]
    batches = encoded(lines, NONE, None)
    assert all(len(batch) < MAX_BATCH_BYTES + 263_000 < 1_048_588 * 2 for batch in batches)
    assert sum(read_header(batch).record_count for batch in batches) == len(lines)
    values = [each.value for batch in batches for each in iterate_records(batch)]
    assert values == [line.text for line in lines]


def block_of(position: int, number: int, sizes: list[int]) -> LineBlock:
    return LineBlock(position, number, [b"x" * size for size in sizes], sizes)


@given(
    st.sampled_from([0, 7, 95, 9_990, 99_999_999_990, 2**50]),
    st.sampled_from([1, 8, 95, 99_990, 2**40]),
    st.lists(st.sampled_from([0, 1, 60, 63, 64, 65, 200, 8_191, 8_192]), min_size=1, max_size=90),
    st.none() | st.binary(max_size=20),
)
def test_lg_2_a_block_is_encoded_as_its_lines_are(
    position: int, number: int, sizes: list[int], key: bytes | None
) -> None:
    """Whatever the lengths of the numbers, which change within it."""
    block = block_of(position, number, sizes)
    encoder = LineEncoder(PROGRESS, key, [("host", b"h")])
    assert [*encoder.batches(block, NOW_MS)] == [*encoder.batches(list(block), NOW_MS)]


@pytest.mark.thorough
def test_lg_2_a_large_block_is_several_batches() -> None:
    for sizes in ([60] * 40_000, [262_144] * 9, [0] * 20_000, [262_144, *[5] * 9_000]):
        block = block_of(90, 90, sizes)
        batches = [*LineEncoder(PROGRESS, b"key").batches(block, NOW_MS)]
        assert all(len(batch) < MAX_BATCH_BYTES + 263_000 for batch in batches)
        records = [each for batch in batches for each in iterate_records(batch)]
        assert [each.value for each in records] == block.texts
        numbers = [int(dict(each.headers)["file.line"] or b"") for each in records]
        assert numbers == [*range(90, 90 + len(sizes))]
