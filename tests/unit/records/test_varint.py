"""Zigzag varints."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import CorruptData
from barnabas.records.varint import append_varint, read_varint


@pytest.mark.parametrize(
    ("number", "octets"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (-65, "8101"),
        (8191, "fe7f"),
        (8192, "808001"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_numbers_have_the_bytes_of_protocol_buffers(number: int, octets: str) -> None:
    buffer = bytearray(b"?")
    append_varint(buffer, number)
    assert buffer[1:].hex() == octets
    assert read_varint(bytes(buffer), 1) == (number, len(buffer))


@given(st.integers(-(2**63), 2**63 - 1))
def test_what_is_written_is_read(number: int) -> None:
    buffer = bytearray()
    append_varint(buffer, number)
    assert read_varint(buffer, 0) == (number, len(buffer))


def test_an_endless_number_is_corrupt_data_and_a_cut_one_has_no_next_byte() -> None:
    with pytest.raises(CorruptData, match="ten bytes"):
        read_varint(b"\x80" * 11, 0)
    with pytest.raises(IndexError):
        read_varint(b"\x80" * 3, 0)
