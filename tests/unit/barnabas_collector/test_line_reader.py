"""Lines of a file with their places, whatever the file holds and however it grows."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from barnabas_collector.line_cutter import MAX_LINE_BYTES, Line
from barnabas_collector.line_reader import LineReader


def read_all(reader: LineReader) -> list[Line]:
    lines = [line for portion in reader.portions() for line in portion]
    return [*lines, *reader.last()]


@given(st.binary(max_size=300).map(lambda data: data.replace(b"a", b"\n")))
def test_the_lines_are_the_file(data: bytes) -> None:
    """UX-4: any bytes; positions point at what was read."""
    lines = read_all(LineReader(io.BytesIO(data)))
    expected = data.split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert [line.text for line in lines] == expected
    assert [line.number for line in lines] == list(range(1, len(expected) + 1))
    assert all(data[line.position :].startswith(line.text) for line in lines)


def test_a_line_without_its_end_waits_for_it() -> None:
    file = io.BytesIO(b"one\ntw")
    reader = LineReader(file)
    assert [line.text for portion in reader.portions() for line in portion] == [b"one"]
    file.seek(0, io.SEEK_END)
    file.write(b"o\nthree")
    file.seek(6)
    assert [line.text for portion in reader.portions() for line in portion] == [b"two"]
    assert reader.last() == [Line(8, 3, b"three", 5)]


def test_reading_goes_on_from_a_place() -> None:
    reader = LineReader(io.BytesIO(b"one\ntwo\nthree\n"), position=4, number=2)
    assert read_all(reader) == [Line(4, 2, b"two", 3), Line(8, 3, b"three", 5)]


def test_memory_is_bounded_by_the_longest_line_that_is_kept() -> None:
    """UX-4: a line of many megabytes is cut, said so, and the next one is found."""
    data = b"x" * (3 * MAX_LINE_BYTES) + b"\nnext\n"
    first, second = read_all(LineReader(io.BytesIO(data)))
    assert first.is_cut and len(first.text) <= MAX_LINE_BYTES
    assert first.size_bytes == 3 * MAX_LINE_BYTES
    assert second == Line(3 * MAX_LINE_BYTES + 1, 2, b"next", 4)
