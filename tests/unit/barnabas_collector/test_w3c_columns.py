"""W3C's columns of each line, from the directives before it, wherever reading begins (LG-1)."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from barnabas_collector.headers import FIELDS
from barnabas_collector.line_cutter import MAX_LINE_BYTES, Line, LineBlock
from barnabas_collector.registry import Registry
from barnabas_collector.rotated_log import Portion, RotatedLog
from barnabas_collector.w3c_columns import W3cColumns, columns_at, columns_in, texts_of

PARTS = [
    b"#Software: IIS\n#Fields: a b \n1 2\n3 4\n",
    b"#Date: now\n#Fields:\tb a\r\n5 6\n",
    b"7 8\n",
]


def test_lg_1_a_directive_holds_until_the_next_one() -> None:
    columns = W3cColumns()
    lines = b"".join(PARTS).splitlines()
    assert columns.of(lines) == [None, *[b"a b"] * 4, *[b"b a"] * 3]
    assert columns.of([b"9"]) == [b"b a"]
    assert columns.of([b"#Fields: " + b"a" * 8_193, b"1", b"#Fields: c"]) == [b"", b"", b"c"]


def test_lines_share_a_header_unless_their_columns_differ() -> None:
    columns = W3cColumns()
    assert columns.with_headers([]) == ([], ())
    block = LineBlock(0, 1, [b"#Version: 1.0"], [13])
    assert columns.with_headers(block) == (block, ())
    lines = [Line(0, 1, b"1", 1, (("x", b""),)), Line(2, 2, b"#Fields: a", 10)]
    assert columns.with_headers(lines) == (
        [lines[0], lines[1]._replace(more=((FIELDS, b"a"),))],
        (),
    )
    block = LineBlock(13, 3, [b"2", b"3"], [1, 1])
    assert columns.with_headers(block) == (block, ((FIELDS, b"a"),))


def test_lg_1_the_columns_at_any_position_of_a_file() -> None:
    text = b"".join(PARTS)
    whole = W3cColumns().of(text.splitlines())
    position = 0
    for line, columns in zip(text.splitlines(keepends=True), whole, strict=True):
        position += len(line)
        found = columns_at(io.BytesIO(text), position, text)
        assert found is not None
        assert found.in_force == columns
    for other in (b"1 2\n" + text, b"# a comment\n" + text):
        assert columns_at(io.BytesIO(other), 5, other) is None, "another format"
    long = b"#Remark: " + b"x" * MAX_LINE_BYTES + b"\n#Fields: a\n1\n"
    found = columns_at(io.BytesIO(long), len(long) - 2, long)
    assert found is not None and found.in_force == b"a"


def test_only_a_file_that_begins_with_a_directive_has_any() -> None:
    lines = [Line(0, 1, b"#Fields: a", 10), Line(11, 2, b"1", 1)]
    assert [found for _, found in columns_in(iter([[], lines]))] == [[], [b"a", b"a"]]
    assert [found for _, found in columns_in(iter([lines[1:], lines]))] == [[None], [None] * 2]


def sent(log: Path, registry: Path) -> list[tuple[bytes, bytes | None]]:
    """Send what a new process finds, and return each line with its columns."""
    files = Registry(registry)
    found = []
    with RotatedLog(log, files) as rotated:
        for portion in rotated.portions(is_last_look=True):
            found += with_columns(portion)
            files.save(portion.progress)
    return found


def with_columns(portion: Portion) -> list[tuple[bytes, bytes | None]]:
    return [(line.text, dict([*portion.more, *line.more]).get(FIELDS)) for line in portion.lines]


@pytest.mark.parametrize("is_packed", [False, True])
def test_lg_1_a_collector_that_is_restarted_in_the_middle_of_a_file(
    tmp_path: Path, is_packed: bool
) -> None:
    log, registry = tmp_path / "u_ex.log", tmp_path / "registry.json"
    whole = b"".join(PARTS).split(b"\n")[:-1]
    found = []
    for number, part in enumerate(PARTS):
        with log.open("ab") as server:
            server.write(part)
        if is_packed and number == len(PARTS) - 1:
            (tmp_path / "u_ex.log.1.gz").write_bytes(gzip.compress(log.read_bytes()))
            log.write_bytes(b"")
        found += sent(log, registry)
    assert found == list(zip(whole, W3cColumns().of(whole), strict=True))


def test_lg_1_a_collector_that_keeps_running_knows_the_columns(tmp_path: Path) -> None:
    log = tmp_path / "u_ex.log"
    whole = b"".join(PARTS).split(b"\n")[:-1]
    log.write_bytes(b"")
    files = Registry(tmp_path / "registry.json")
    found = []
    with RotatedLog(log, files) as rotated:
        for part in (*PARTS, b""):
            with log.open("ab") as server:
                server.write(part)
            for portion in rotated.portions():
                found += with_columns(portion)
                files.save(portion.progress)
    assert found == list(zip(whole, W3cColumns().of(whole), strict=True))


def test_texts_of_a_block_are_not_copied() -> None:
    block = LineBlock(0, 1, [b"a"], [1])
    assert texts_of(block) is block.texts
