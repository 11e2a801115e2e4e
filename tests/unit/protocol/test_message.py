"""The notation: defaults, equality, what an instance may and may not do."""

from __future__ import annotations

import pytest

from barnabas.protocol.message import Message, Versions, field
from barnabas.protocol.messages.fetch import EpochEndOffset, FetchPartition, PartitionData
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest
from barnabas.protocol.wire import BYTES, INT32, STRING, UUID, Array


class Every(Message):
    number: int = field(INT32, default=-1)
    name: str = field(STRING)
    blob: bytes = field(BYTES)
    topic_id: bytes = field(UUID)
    items: list[int] = field(Array(INT32))
    maybe: str | None = field(STRING, nullable="0+", default=None)


def test_what_is_not_given_is_the_schemas_default() -> None:
    made = Every(name="x")
    assert (made.number, made.name, made.blob, made.maybe) == (-1, "x", b"", None)
    assert made.topic_id == bytes(16)
    assert made.items == []


def test_an_unknown_field_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="numbr"):
        Every(numbr=1)  # type: ignore[call-arg]


def test_lists_are_not_shared() -> None:
    Every().items.append(1)
    assert Every().items == []


def test_the_default_of_a_struct_is_shared_and_refuses_to_change() -> None:
    absent = PartitionData().diverging_epoch
    assert absent is PartitionData().diverging_epoch
    assert absent == EpochEndOffset()
    assert EpochEndOffset() == absent
    with pytest.raises(AttributeError, match="share"):
        absent.epoch = 3
    EpochEndOffset().epoch = 3  # one's own may change


def test_equality_is_by_class_and_value() -> None:
    assert Every(number=1) == Every(number=1)
    assert Every(number=1) != Every(number=2)
    assert FetchPartition() != EpochEndOffset()
    view = PartitionProduceData(records=memoryview(b"abc"))
    assert view == PartitionProduceData(records=b"abc")


def test_repr_shows_fields_and_hides_bulk() -> None:
    shown = repr(ProduceRequest(acks=1))
    assert shown == "ProduceRequest(transactional_id=None, acks=1, timeout_ms=0, topic_data=[])"
    assert "records=<1000 bytes>" in repr(PartitionProduceData(records=bytes(1000)))
    assert "records=b'abc'" in repr(PartitionProduceData(records=memoryview(b"abc")))


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("3+", [3, 99], [2]), ("8-10", [8, 10], [7, 11]), ("0", [0], [1]), ("none", [], [0, 1])],
)
def test_versions(text: str, inside: list[int], outside: list[int]) -> None:
    versions = Versions.parse(text)
    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)
