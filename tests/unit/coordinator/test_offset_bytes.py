"""Offset commits as bytes, by hand: the general codec is the oracle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordinator.offset_bytes import (
    decode_offset_commit,
    encode_offset_key,
    encode_offset_value,
)
from barnabas.coordinator.records import (
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_record,
    encode_record,
)
from barnabas.errors import CorruptData
from barnabas.protocol.codec import encode
from tests.kit.coordinator_records import OFFSET_KEY, OFFSET_VALUE

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=20)

KEYS = st.builds(OffsetCommitKey, group=TEXT, topic=TEXT, partition=INT32)
VALUES = st.builds(
    OffsetCommitValue, offset=INT64, leader_epoch=INT32, metadata=TEXT, commit_timestamp=INT64
)


def generally(message: OffsetCommitKey | OffsetCommitValue, version: int) -> bytes:
    return version.to_bytes(2, "big") + b"".join(map(bytes, encode(message, version)))  # type: ignore[arg-type]


@given(KEYS, VALUES)
def test_the_bytes_are_those_of_the_general_codec(
    key: OffsetCommitKey, value: OffsetCommitValue
) -> None:
    """GC-3."""
    raw = encode_record(key, value)
    assert raw == (generally(key, 1), generally(value, 3))
    decoded = decode_group_record(*raw)
    assert (decoded.key, decoded.value, decoded.type, decoded.version) == (key, value, 1, 3)
    assert decode_offset_commit(*raw) is not None
    assert encode_record(key, None) == (raw.key, None)


def test_the_golden_record() -> None:
    assert encode_offset_key("g1", "t", 0) == OFFSET_KEY
    assert encode_offset_value(42, 5, "", 1_700_000_000_000) == OFFSET_VALUE


def test_an_offset_with_an_expiry_is_of_the_version_that_has_one() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=1)
    value = OffsetCommitValue(offset=7, metadata="m", commit_timestamp=8, expire_timestamp=9)
    raw = encode_record(key, value)
    assert raw.value == generally(value, 1)
    decoded = decode_group_record(*raw)
    assert (decoded.value, decoded.version) == (value, 1)


@given(KEYS, VALUES, st.sampled_from([0, 1, 2, 4]))
def test_other_versions_are_left_to_the_general_codec(
    key: OffsetCommitKey, value: OffsetCommitValue, version: int
) -> None:
    if version < 3:
        value.leader_epoch = -1
    raw = generally(value, version)
    assert decode_offset_commit(generally(key, 1), raw) is None
    assert decode_group_record(generally(key, 1), raw).value == value


@given(
    st.sampled_from([OFFSET_KEY, OFFSET_KEY[:5], b""]),
    st.sampled_from([OFFSET_VALUE, OFFSET_VALUE[:9], b""]),
    st.tuples(st.integers(0, 30), st.integers(0, 255)),
    st.binary(max_size=3),
)
def test_damaged_bytes_are_read_as_the_general_codec_reads_them(
    key: bytes, value: bytes, damage: tuple[int, int], more: bytes
) -> None:
    """A record, or CorruptData; never another outcome for having been read by hand."""
    at, byte = damage
    key, value = (
        raw[:at] + bytes([byte]) + raw[at + 1 :] + more if at < len(raw) else raw + more
        for raw in (key, value)
    )
    quick = decode_offset_commit(key, value)
    try:
        decoded = decode_group_record(key, value)
    except CorruptData:
        assert quick is None
        return
    if quick is not None:
        assert isinstance(decoded.key, OffsetCommitKey)
        assert generally(decoded.key, 1) == key
        assert isinstance(decoded.value, OffsetCommitValue)
        assert generally(decoded.value, 3) == value


@pytest.mark.parametrize("size", [32_767, 32_768])
def test_text_that_no_record_can_hold(size: int) -> None:
    text = "x" * size
    makers = [
        lambda: encode_offset_key(text, "t", 0),
        lambda: encode_offset_key("g", text, 0),
        lambda: encode_offset_value(0, 0, text, 0),
    ]
    for make in makers:
        if size > 32_767:
            with pytest.raises(ValueError, match="cannot be encoded"):
                make()
        else:
            assert text.encode() in make()
