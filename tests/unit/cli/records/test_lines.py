"""UX-2: what `produce` makes of lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.records.lines import BadLine, LineFormat, LineSplitter, parse_header
from barnabas.client.producer.batch import ProducerRecord


def test_a_line_is_a_value() -> None:
    assert LineFormat("t").record(b"a:b", 1) == ProducerRecord("t", b"a:b")


def test_the_key_ends_at_the_first_separator() -> None:
    line_format = LineFormat("t", 2, b":")
    assert line_format.record(b"k:v:w", 1) == ProducerRecord("t", b"v:w", b"k", 2)
    assert line_format.record(b":", 1) == ProducerRecord("t", b"", b"", 2)
    with pytest.raises(BadLine, match="line 7 has no key separator ':': 'plain'"):
        line_format.record(b"plain", 7)


def test_headers_of_all_lines_and_of_each() -> None:
    line_format = LineFormat("t", None, b"=", b"\t", (parse_header("all=x=y"),))
    record = line_format.record(b"h:1,i:\tk=v", 1)
    assert record.headers == (("all", b"x=y"), ("h", b"1"), ("i", b""))
    assert (record.key, record.value) == (b"k", b"v")
    assert line_format.record(b"\tk=v", 1).headers == (("all", b"x=y"),)
    with pytest.raises(BadLine, match="line 3 has no headers separator"):
        line_format.record(b"k=v", 3)
    with pytest.raises(BadLine, match="line 4 has a header that is not NAME:VALUE: 'h'"):
        line_format.record(b"h\tk=v", 4)
    with pytest.raises(BadLine, match="--header nothing"):
        parse_header("nothing")


def test_an_end_of_line_is_taken_off_and_a_missing_one_forgiven() -> None:
    splitter = LineSplitter()
    assert splitter.lines(b"a\nb\r\n\nc\rd") == [b"a", b"b", b""]
    assert splitter.lines(b"e\r") == []
    assert splitter.lines(b"\nf") == [b"c\rde"]
    assert splitter.last() == [b"f"]
    assert splitter.last() == []


@given(st.lists(st.binary(max_size=8).filter(lambda line: not set(line) & {10, 13})), st.data())
def test_blocks_of_any_size_give_the_same_lines(lines: list[bytes], data: st.DataObject) -> None:
    text = b"".join(line + b"\r\n" for line in lines)
    splitter = LineSplitter()
    found: list[bytes] = []
    while text:
        size = data.draw(st.integers(1, len(text)))
        found += splitter.lines(text[:size])
        text = text[size:]
    assert found + splitter.last() == lines
