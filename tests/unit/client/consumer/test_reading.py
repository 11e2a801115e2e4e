"""PR-10: keys and values are deserialized when they are read; one that cannot be stops there."""

from __future__ import annotations

import pytest

from barnabas.client.consumer.assignment import AssignedPartition
from barnabas.client.consumer.fetched import Chunk, ConsumerRecord
from barnabas.client.consumer.reading import Reading, deserialization
from barnabas.client.errors import RecordDeserializationError
from barnabas.client.serialization import deserializer
from barnabas.records.record import BatchBuilder
from barnabas.types import TopicPartition

T0 = TopicPartition("t", 0)


def reading(values: list[bytes | None], **names: str | None) -> tuple[AssignedPartition, Reading]:
    state = AssignedPartition(T0, "latest")
    state.seek(0)
    builder = BatchBuilder()
    for value in values:
        builder.append(0, None, value)
    chosen = [
        None if name is None else deserializer(name, "value.deserializer")
        for name in (names.get("key"), names.get("value"))
    ]
    chunk = Chunk(T0, 0, memoryview(builder.build()))
    return state, Reading(state, chunk, check_crcs=True, deserialize=deserialization(*chosen))


def test_pr_10_null_stays_null() -> None:
    _, begun = reading([b"7", None, b"8"], key="string", value="json")
    records: list[ConsumerRecord] = []
    assert not begun.take_into(records, 10)
    assert [(record.key, record.value) for record in records] == [
        (None, 7),
        (None, None),
        (None, 8),
    ]


def test_pr_10_the_position_stays_at_a_record_that_cannot_be_deserialized() -> None:
    state, begun = reading([b"7", b"{", b"8"], value="json")
    records: list[ConsumerRecord] = []
    assert not begun.take_into(records, 10)
    assert [record.value for record in records] == [7]
    error = state.error
    assert isinstance(error, RecordDeserializationError)
    assert (error.topic_partition, error.offset) == (T0, 1)
    for words in ("offset 1 of t-0", "value", "seek to 2"):
        assert words in str(error)
    assert (state.position, state.fetch_offset) == (1, 1)


def test_records_are_taken_one_by_one_or_by_the_dozen() -> None:
    """CO-1: the position goes with what the user has."""
    state, begun = reading([b"%d" % n for n in range(40)])
    records: list[ConsumerRecord] = []
    assert begun.next_record() is None, "nothing is decoded before it is asked for"
    assert begun.take_into(records, 1) and state.position == 1
    record = begun.next_record()
    assert record is not None and (record.value, record.timestamp) == (b"1", 0)
    assert record.topic_partition == T0 and state.position == 2
    state.paused = True
    assert begun.next_record() is None
    state.paused = False
    assert not begun.take_into(records, 100)
    assert [record.offset for record in records] == [0, *range(2, 40)]
    state.seek(5)
    assert begun.next_record() is None


def test_no_deserializer_costs_nothing() -> None:
    assert deserialization(None, None) is None
    with pytest.raises(RecordDeserializationError, match="key of the record at offset 3 of t-0"):
        convert = deserialization(deserializer("long", "key.deserializer"), None)
        assert convert is not None
        convert(ConsumerRecord("t", 0, 3, 0, 0, b"x", None, ()))
