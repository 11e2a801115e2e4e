"""Variable-length integers and tagged fields, byte by byte."""

from __future__ import annotations

import pytest

from barnabas.errors import CorruptData
from barnabas.protocol.wire import (
    append_string_length,
    append_uvarint,
    rest_of_string_length,
    rest_of_uvarint,
    skip_tagged_fields,
)

NUMBERS = [
    (0, "00"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16_383, "ff7f"),
    (16_384, "808001"),
    (2**32 - 1, "ffffffff0f"),
]


@pytest.mark.parametrize(("number", "hexadecimal"), NUMBERS)
def test_uvarint(number: int, hexadecimal: str) -> None:
    out = bytearray()
    append_uvarint(out, number)
    assert out.hex() == hexadecimal
    if number > 127:
        assert rest_of_uvarint(memoryview(out), 1, out[0]) == (number, len(out))


def test_a_uvarint_may_be_longer_than_it_needs() -> None:
    assert rest_of_uvarint(memoryview(b"\x81\x80\x00"), 1, 0x81) == (1, 3)


@pytest.mark.parametrize("hexadecimal", ["ffffffff10", "808080808000", "ffffffffff"])
def test_a_uvarint_of_more_than_32_bits_is_refused(hexadecimal: str) -> None:
    data = memoryview(bytes.fromhex(hexadecimal))
    with pytest.raises(CorruptData, match="32 bits"):
        rest_of_uvarint(data, 1, data[0])


def test_a_string_has_at_most_32767_bytes() -> None:
    out = bytearray()
    append_string_length(out, 0x7FFF + 1)
    assert rest_of_string_length(memoryview(out), 1, out[0]) == (0x8000, 3)
    with pytest.raises(ValueError, match="32768"):
        append_string_length(out, 0x8000 + 1)
    with pytest.raises(CorruptData, match="32768"):
        rest_of_string_length(memoryview(b"\x81\x80\x02"), 1, 0x81)


def test_tagged_fields_are_skipped() -> None:
    data = memoryview(bytes.fromhex("0003aabbcc8180018001") + bytes(128) + b"next")
    assert bytes(data[skip_tagged_fields(data, 0, 2) :]) == b"next"


def test_a_tagged_field_ends_inside_the_message() -> None:
    with pytest.raises(CorruptData, match="tagged field 7"):
        skip_tagged_fields(memoryview(b"\x07\x03\x00\x00"), 0, 1)
