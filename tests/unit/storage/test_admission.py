"""What a producer is told about a batch that cannot be appended."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.config import LogConfig
from barnabas.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    InvalidTxnState,
    KafkaError,
    MessageTooLarge,
    RecordListTooLarge,
    UnsupportedCompressionType,
)
from barnabas.records.batch import BatchHeader, read_header, seal
from barnabas.storage.admission import Limits, admit
from tests.unit.records.test_legacy import message
from tests.unit.storage.disk import batch

LIMITS = Limits.of(LogConfig(max_message_bytes=5000, segment_bytes=4000))


def _with(**fields: int) -> bytearray:
    """A batch of one record whose header claims something else, under a valid checksum."""
    good = batch()
    header: BatchHeader = read_header(good)._replace(**fields)
    return bytearray(seal(header, good[61:]))


def _damaged(at: int) -> bytearray:
    records = batch()
    records[at] ^= 1
    return records


def test_a_good_batch_is_admitted() -> None:
    assert admit(memoryview(batch(3)), LIMITS).record_count == 3


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (b"", CorruptMessage),
        (batch()[:40], CorruptMessage),
        (batch()[:-1], CorruptMessage),
        (_damaged(70), CorruptMessage),
        (_damaged(60), CorruptMessage),  # a damaged count is damage first of all
        (message(0, b"magic 1" * 10), InvalidRecord),
        (batch() + batch(), InvalidRecord),
        (batch() + b"x", InvalidRecord),
        (_with(base_offset=1), InvalidRecord),
        (_with(record_count=2), InvalidRecord),
        (_with(record_count=0, last_offset_delta=-1), InvalidRecord),
        (_with(last_offset_delta=7), InvalidRecord),
        (_with(attributes=0x20), InvalidRecord),
        (_with(attributes=0x10), InvalidTxnState),
        (_with(attributes=0x08), InvalidTimestamp),
        (_with(attributes=0x05), UnsupportedCompressionType),
        (_with(producer_id=5, producer_epoch=0, base_sequence=-1), InvalidRecord),
        (batch(1, 5000), MessageTooLarge),
        (batch(1, 4500), RecordListTooLarge),
    ],
)
def test_each_refusal_has_its_row(records: bytes, error: type[KafkaError]) -> None:
    with pytest.raises(KafkaError) as caught:
        admit(memoryview(bytearray(records)), LIMITS)
    assert type(caught.value) is error
    assert str(caught.value)


def test_a_batch_of_exactly_the_limit_passes() -> None:
    records = batch(1, 3000)
    exact: Callable[[int], Limits] = lambda size: LIMITS._replace(  # noqa: E731
        max_message_bytes=size, segment_bytes=size
    )
    admit(memoryview(records), exact(len(records)))
    with pytest.raises(MessageTooLarge):
        admit(memoryview(records), exact(len(records) - 1))
