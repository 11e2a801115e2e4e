"""Decoders of lines with keys and values return an object, or None for other lines (UX-4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_formats.objects import (
    DECODERS,
    csvlog_object,
    journal_object,
    json_object,
    logfmt_object,
    paragraph_object,
)


@pytest.mark.parametrize(
    "line", ["[1]", '"a"', "{", '{"a":1} b', "", '{"a":' * 5_000, '{"a":' + "9" * 5_000 + "}"]
)
def test_ux_4_what_is_not_a_json_object(line: str) -> None:
    assert json_object(line) is None


def test_logfmt() -> None:
    assert logfmt_object(r'a=1 b="x \"y\" \n\u00e9" c= d.e=[::]:80 flag f=g') == {
        "a": "1",
        "b": 'x "y" \né',
        "c": "",
        "d.e": "[::]:80",
        "f": "g",
    }
    assert [logfmt_object(line) for line in ("a", "a b=c", 'a="b', "", "1=2")] == [None] * 5


def test_lg_1_an_escape_for_a_byte_is_kept_in_json_and_logfmt() -> None:
    """LG-1: JSON has no escape `\\x`, but lines that are not UTF-8 contain it, and nginx's do."""
    assert json_object(r'{"a":"\xe9 \\xe9 \"\u00e9\x5C"}') == {"a": r'\xe9 \xe9 "é\x5C'}
    assert json_object(r'{"a\xff":1}') == {r"a\xff": 1}
    assert json_object(r'{"a":"\x"}') is None
    assert json_object(r'{"a":\xff}') is None
    assert logfmt_object(r'a="\xe9 \\xe9 \x" b=\xff') == {"a": r"\xe9 \xe9 x", "b": r"\xff"}


def test_an_entry_of_the_journal_with_a_value_of_several_lines() -> None:
    size = (7).to_bytes(8, "little").decode()
    entry = f"__CURSOR=s=1\nMESSAGE\n{size}a=b\nc\nd\nPRIORITY=6"
    assert journal_object(entry) == {"__CURSOR": "s=1", "MESSAGE": "a=b\nc\nd", "PRIORITY": "6"}
    assert journal_object(f"MESSAGE\n{size}short") is None
    assert journal_object("no key=x") is None


def test_a_row_of_csvlog() -> None:
    cells = ["t", "u", "d", "7", *[""] * 7, "LOG", "00000", '"a, ""b""\nc"', *[""] * 9]
    found = csvlog_object(",".join(cells))
    assert found is not None
    assert (found["process_id"], found["error_severity"]) == ("7", "LOG")
    assert found["message"] == 'a, "b"\nc'
    assert csvlog_object("a,b,c") is None
    assert csvlog_object('a,"b') is None


def test_a_paragraph() -> None:
    assert paragraph_object("Start-Date: a  b\nEnd-Date: c\n") == {
        "Start-Date": "a b",
        "End-Date": "c",
    }
    assert paragraph_object("Start-Date: a\nno field") is None


@given(st.sampled_from(sorted(DECODERS)), st.text(alphabet='{}"=\\ ,:[]\nab1_\x00', max_size=40))
def test_ux_4_any_text_is_an_object_or_none(decoder: str, text: str) -> None:
    found = DECODERS[decoder](text)
    assert found is None or isinstance(found, dict)
