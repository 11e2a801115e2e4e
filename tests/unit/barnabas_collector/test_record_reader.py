"""Records of several lines, however the file grows and however often its reader starts again."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import ConfigError
from barnabas_collector.line_cutter import MAX_LINE_BYTES, Line
from barnabas_collector.record_reader import INDENTED, RecordReader, record_start

IS_START = record_start(INDENTED)
TRACE = b"""\
2026-11-24 ERROR failed
java.io.IOException: no
    at a.b.c(D.java:1)
Caused by: java.lang.Error
    ... 3 more

Traceback (most recent call last):
  File "x.py", line 1
2026-11-24 INFO fine
"""


def everything(reader: RecordReader) -> list[Line]:
    found = [line for portion in reader.portions() for line in portion]
    return [*found, *reader.last()]


def test_stack_traces_belong_to_the_line_before() -> None:
    records = everything(RecordReader(io.BytesIO(TRACE), 0, 1, IS_START))
    assert [(each.number, each.text.count(b"\n")) for each in records] == [(1, 7), (9, 0)]
    assert b"\n".join(each.text for each in records) + b"\n" == TRACE
    assert [each.position for each in records] == [0, TRACE.index(b"2026-11-24 INFO")]
    assert not any(each.is_cut for each in records)


@given(st.lists(st.sampled_from([b"a start", b" more", b"", b"\tat x"])), st.data())
def test_a_reader_that_begins_again_misses_nothing(lines: list[bytes], data: st.DataObject) -> None:
    """Wherever the file has grown to, and with what ended there settled or not."""
    whole = b"".join(line + b"\n" for line in lines)
    position, number = 0, 1
    found: list[Line] = []
    ends = data.draw(st.lists(st.integers(0, len(whole)), max_size=4).map(sorted))
    for end in ends:
        reader = RecordReader(io.BytesIO(whole[:end]), position, number, IS_START)
        found += [line for portion in reader.portions() for line in portion]
        position, number = reader.position, reader.number
    reader = RecordReader(io.BytesIO(whole), position, number, IS_START)
    found += everything(reader)
    assert found == everything(RecordReader(io.BytesIO(whole), 0, 1, IS_START))
    assert b"".join(each.text + b"\n" for each in found) == whole


def test_what_has_settled_is_sent_without_its_unfinished_line() -> None:
    reader = RecordReader(io.BytesIO(b"a\n b\n c"), 0, 1, IS_START)
    assert [*reader.portions()] == []
    assert reader.unfinished_bytes == 7
    assert reader.take_waiting() == [Line(0, 1, b"a\n b", 4)]
    assert (reader.position, reader.number, reader.unfinished_bytes) == (5, 3, 2)


def test_a_record_without_an_end_is_cut_into_several() -> None:
    whole = b"a start\n" + b" more\n" * (MAX_LINE_BYTES // 4)
    records = everything(RecordReader(io.BytesIO(whole), 0, 1, IS_START))
    assert len(records) == 2
    assert b"".join(each.text + b"\n" for each in records) == whole


def test_a_rule_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="'\\(' is not a regular expression: missing"):
        record_start("(")
