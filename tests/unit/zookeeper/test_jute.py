"""The decoders of ZooKeeper's records, given any bytes."""

from __future__ import annotations

import contextlib

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
