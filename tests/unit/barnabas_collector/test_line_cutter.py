"""Lines around the holes of files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_collector.line_cutter import MAX_LINE_BYTES, LineBlock, LineCutter, size_and_cuts

BLOCK = b"\0" * 4096


def cut(text: bytes, step: int) -> tuple[list[tuple[int, bytes]], LineCutter]:
    cutter = LineCutter()
    lines = []
    for at in range(0, len(text), step):
        lines += cutter.cut(text[at : at + step])
    lines += cutter.last()
    return [(line.position, line.text) for line in lines], cutter


@pytest.mark.thorough
@pytest.mark.parametrize("step", [1, 3, 4096, 1 << 20])
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (b"\0" * 60 + b"first\nsecond\n", [(60, b"first"), (66, b"second")]),
        (BLOCK * 80 + b"first\n", [(327_680, b"first")]),
        (b"a\n" + b"\0" * 10 + b"b\n", [(0, b"a"), (12, b"b")]),
        (b"half" + BLOCK + b"b\n", [(0, b"half"), (4100, b"b")]),
        (b"half" + BLOCK, [(0, b"half")]),
        (b"a\n" + BLOCK, [(0, b"a")]),
        (b"a" + b"\0" * 99 + b"b\n", [(0, b"a" + b"\0" * 99 + b"b")]),
        (b"\0a\0\n\0b\0\n", [(0, b"\0a\0"), (4, b"\0b\0")]),
        (b"a\0", [(0, b"a\0")]),
        (BLOCK + b"\n" + b"a\n", [(4096, b""), (4097, b"a")]),
    ],
)
def test_a_hole_belongs_to_no_line(text: bytes, lines: list[tuple[int, bytes]], step: int) -> None:
    found, cutter = cut(text, step)
    assert found == lines
    assert (cutter.position, cutter.number) == (len(text), len(lines) + 1)


def test_a_hole_at_the_end_may_still_be_filled() -> None:
    cutter = LineCutter()
    assert [line.text for line in cutter.cut(b"a\n" + BLOCK)] == [b"a"]
    assert (cutter.position, cutter.unfinished_bytes) == (2, len(BLOCK))


def test_a_hole_after_a_cut_line_ends_it() -> None:
    found, _ = cut(b"x" * (MAX_LINE_BYTES + 1) + BLOCK + b"next\n", 1 << 20)
    assert found == [(0, b"x" * MAX_LINE_BYTES), (MAX_LINE_BYTES + 1 + 4096, b"next")]


PIECES = [b"a", b"\n", b"\0", b"x" * 100, b"\n\n", BLOCK, b"y" * (MAX_LINE_BYTES - 1), b"line\n"]


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=6).map(b"".join), max_size=6))
def test_a_block_has_the_lines_that_are_cut(reads: list[bytes]) -> None:
    cutting, blocking = LineCutter(7, 3), LineCutter(7, 3)
    for read in reads:
        block = blocking.block(read)
        lines = cutting.cut(read)
        assert [*block] == lines and len(block) == len(lines)
        assert [block[at] for at in range(len(block))] == lines
        assert [*block[1:]] == lines[1:]
        assert size_and_cuts(block) == size_and_cuts(lines)
        assert (blocking.position, blocking.number) == (cutting.position, cutting.number)
        assert blocking.unfinished_bytes == cutting.unfinished_bytes
    assert blocking.last() == cutting.last()


@pytest.mark.parametrize("nuls", [b"\0" * 4, b"\0" * 4095])
def test_nuls_within_a_line_leave_the_others_in_a_block(nuls: bytes) -> None:
    """A binary line does not slow down the whole portion."""
    lines = LineCutter().block(b"one\ntw" + nuls + b"o\nthree\n")
    assert isinstance(lines, LineBlock)
    assert [each.text for each in lines] == [b"one", b"tw" + nuls + b"o", b"three"]
