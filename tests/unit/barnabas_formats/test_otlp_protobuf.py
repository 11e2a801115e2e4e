"""OTLP in protobuf: hostile bytes, and fields that other versions have (LG-2)."""

from __future__ import annotations

import pytest

from barnabas_formats.otlp import decode
from barnabas_formats.otlp_request import OTLP_PROTO, NotOtlp
from tests.kit.pipeline.otlp_requests import request


def field(number: int, value: bytes) -> bytes:
    """A field of bytes, as protobuf writes it."""
    size, length = b"", len(value)
    while length > 127:
        size, length = size + bytes([length & 127 | 128]), length >> 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + value


def with_body(value: bytes) -> bytes:
    """A request with one log record, whose body consists of these bytes."""
    return field(1, field(2, field(2, field(5, value))))


@pytest.mark.parametrize("depth", [60, 1_000, 50_000])
def test_lg_2_arrays_in_one_another_without_end(depth: int) -> None:
    value = field(1, b"x")
    for _ in range(depth):
        value = field(5, field(1, value))
        if len(value) > 900_000:
            break
    with pytest.raises(NotOtlp, match="not an OTLP request in protobuf"):
        decode(with_body(value), OTLP_PROTO)


@pytest.mark.parametrize(
    "value",
    [
        with_body(field(1, b"\xff\xfe")),  # not UTF-8
        with_body(field(1, b"x"))[:-1],
        b"\x0a\xff\xff\xff\xff\x7f",
        b"\x0a",
    ],
)
def test_lg_2_what_is_no_message(value: bytes) -> None:
    with pytest.raises(NotOtlp, match="not an OTLP request in protobuf"):
        decode(value, OTLP_PROTO)


def test_fields_of_a_later_version_are_ignored_and_stay_in_letters() -> None:
    later = field(15, b"later")
    good = with_body(field(1, b"x")) + later
    assert decode(good, OTLP_PROTO).entries[0].message == "x"
    late = request({"time_unix_nano": 2**63}).resource_logs[0].scope_logs[0].log_records[0]
    bad = field(1, field(2, field(2, late.SerializeToString() + later)))
    (letter,) = decode(bad, OTLP_PROTO).letters
    assert later in letter.value
