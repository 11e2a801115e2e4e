"""Keys and values, as a page can show them safely."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.consumer.fetched import ConsumerRecord
from barnabas.console.contents import CUT_BYTES, WHOLE_BYTES, content, has_text, message
from barnabas.console.shapes import Content, Message
from tests.kit.shapes import misfits

RECORD = ConsumerRecord("t", 0, 7, 1_000, 1, b"key", b"value", (("name", b"\xff"), ("n", None)))


@pytest.mark.parametrize(
    ("value", "text", "form"),
    [
        (None, None, "null"),
        (b"", "", "text"),
        (b'{"a": 1}', '{"a": 1}', "json"),
        (b"[1, 2", "[1, 2", "text"),
        (b'{"a": NaN}', '{"a": NaN}', "text"),  # a browser cannot parse it
        (b"[" * 5_000, "[" * CUT_BYTES, "text"),
        (b"5", "5", "text"),
        ("é\n\t".encode(), "é\n\t", "text"),
        (b"\x1b[31mred", "\x1b[31mred", "text"),
        (b"\xff\x00", "ff00", "hex"),
        ((5).to_bytes(8), "0000000000000005", "hex"),  # valid UTF-8, but not a text
        (b"<script>", "<script>", "text"),
    ],
)
def test_a_value_has_the_form_that_a_reader_expects(
    value: bytes | None, text: str | None, form: str
) -> None:
    found = content(value)
    assert (found["text"], found["form"], found["size"]) == (text, form, len(value or b""))


def test_a_long_text_is_cut_between_characters() -> None:
    found = content(("a" + "é" * CUT_BYTES).encode())
    assert found["form"] == "text" and found["is_cut"]
    assert found["text"] == "a" + "é" * ((CUT_BYTES - 1) // 2)


def test_bytes_are_cut_to_the_same_length() -> None:
    found = content(b"\xff" * (CUT_BYTES // 2 + 1))
    assert found["is_cut"] and found["text"] == "ff" * (CUT_BYTES // 2)
    assert not content(b"\xff" * (CUT_BYTES // 2))["is_cut"]


@given(st.binary(max_size=80), st.integers(8, 40))
def test_whatever_is_sent_has_its_shape_and_length(value: bytes, most: int) -> None:
    found = content(value, most)
    assert list(misfits(found, Content)) == []
    assert found["text"] is not None and len(found["text"].encode()) <= most
    if not found["is_cut"]:
        shown = found["text"]
        assert value == (bytes.fromhex(shown) if found["form"] == "hex" else shown.encode())


def test_a_record_with_its_headers() -> None:
    found = message(RECORD)
    assert list(misfits(found, Message)) == []
    assert (found["time"], found["time_type"], found["headers_left_out"]) == (1_000, "append", 0)
    assert [each["value"]["form"] for each in found["headers"]] == ["hex", "null"]
    many = RECORD._replace(timestamp_ms=-1, headers=RECORD.headers * 40)
    assert (message(many)["time"], message(many)["headers_left_out"]) == (None, 30)
    assert len(message(many, WHOLE_BYTES)["headers"]) == 80


@pytest.mark.parametrize(
    ("wanted", "is_there"),
    [(b"", True), (b"ey", True), (b"alu", True), (b"nam", True), (b"\xff", True), (b"x", False)],
)
def test_a_search_looks_into_keys_values_and_headers(wanted: bytes, is_there: bool) -> None:
    assert has_text(RECORD, wanted) is is_there
