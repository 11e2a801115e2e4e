"""The decoders of ZooKeeper's records, given any bytes."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import CorruptData
from barnabas.zookeeper.changes import CREATIONS, read_change, read_changes
from barnabas.zookeeper.codes import Op, Refusal
from barnabas.zookeeper.jute import (
    Acl,
    JuteReader,
    acls_bytes,
    buffer_bytes,
    connect_request,
    string_bytes,
    strings_bytes,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
ACLS = st.lists(st.builds(Acl, st.integers(-(1 << 31), (1 << 31) - 1), TEXT, TEXT))
CHANGES = (*CREATIONS, Op.DELETE, Op.SET_DATA, Op.SET_ACL, Op.CHECK)


@given(st.binary(max_size=200), st.sampled_from(CHANGES))
def test_any_bytes_are_decoded_or_are_corrupt(frame: bytes, op: int) -> None:
    with contextlib.suppress(CorruptData):
        connect_request(frame)
    with contextlib.suppress(CorruptData, Refusal):
        read_change(op, JuteReader(frame))
    with contextlib.suppress(CorruptData, Refusal):
        read_changes(JuteReader(frame))


@given(st.none() | st.binary(), st.lists(TEXT), ACLS)
def test_encoded_values_decode_to_themselves(
    data: bytes | None, texts: list[str], acls: list[Acl]
) -> None:
    reader = JuteReader(buffer_bytes(data) + strings_bytes(texts) + acls_bytes(acls))
    assert (reader.buffer(), reader.strings(), reader.acls()) == (data, texts, acls)
    assert reader.left == 0


@pytest.mark.parametrize("length", [-(1 << 31), -3, -2])
def test_a_negative_length_other_than_null_is_corrupt(length: int) -> None:
    """Otherwise, the same bytes would be read again, or a vector would seem to be empty."""
    data = length.to_bytes(4, "big", signed=True) + bytes(16)
    for read in (JuteReader.buffer, JuteReader.string, JuteReader.strings, JuteReader.acls):
        with pytest.raises(CorruptData, match=f"{length}"):
            read(JuteReader(data))
    assert JuteReader(b"\xff" * 4).buffer() is None
    assert JuteReader(b"\xff" * 4).string() == ""
    assert JuteReader(b"\xff" * 4).strings() == []


@pytest.mark.parametrize("count", [3, 1 << 20, (1 << 31) - 1])
def test_a_vector_longer_than_its_frame_is_corrupt_before_its_items_are_read(count: int) -> None:
    reader = JuteReader(count.to_bytes(4, "big") + bytes(8))
    with pytest.raises(CorruptData, match=f"a vector has {count} items, but only 8 bytes follow"):
        reader.strings()
    reader = JuteReader((2).to_bytes(4, "big") + bytes(8) + b"next")
    assert reader.strings() == ["", ""]
    assert reader.left == 4


def test_a_frame_that_ends_too_early_is_corrupt_at_every_byte() -> None:
    whole = string_bytes("/path") + buffer_bytes(b"data") + acls_bytes([Acl(31, "world", "any")])
    for length in range(len(whole)):
        reader = JuteReader(whole[:length])
        with pytest.raises(CorruptData):
            (reader.string(), reader.buffer(), reader.acls())
