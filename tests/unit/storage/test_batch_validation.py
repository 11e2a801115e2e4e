"""The errors of batches that cannot be appended."""

from __future__ import annotations

from collections.abc import Callable
from struct import pack
from typing import NamedTuple

import pytest

from barnabas.config import LogConfig
from barnabas.errors import (
    CorruptData,
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    KafkaError,
    MessageTooLarge,
    RecordListTooLarge,
    UnsupportedCompressionType,
)
from barnabas.records.batch import BatchHeader, read_header, seal, verify_crc
from barnabas.records.compression import CODEC_NAMES, GZIP, LZ4, NONE, SNAPPY, ZSTD, compress
from barnabas.records.record import BatchBuilder, iterate_records
from barnabas.storage.batch_validation import Limits, admit, is_transactional, prepare
from tests.kit.storage.batches import message
from tests.kit.storage.disk import T0, batch

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


def _of_length(length: int) -> bytes:
    return bytes(batch()[:8]) + pack(">i", length) + bytes(batch()[12:])


def _of_magic(magic: int) -> bytes:
    return bytes(batch()[:16]) + bytes((magic,)) + bytes(batch()[17:])


def test_a_good_batch_is_admitted() -> None:
    assert admit(memoryview(batch(3)), LIMITS).record_count == 3


@pytest.mark.parametrize(
    ("records", "error"),
    [
        # As Kafka 3.9.1: what is cut is no batch, what cannot be one is damaged.
        (b"", InvalidRecord),
        (batch()[:11], InvalidRecord),
        (batch()[:16], InvalidRecord),
        (batch()[:17], InvalidRecord),
        (batch()[:60], InvalidRecord),
        (batch()[:-1], InvalidRecord),
        (_damaged(70)[:-1], InvalidRecord),
        (message(0, b"magic 1" * 10)[:-1], InvalidRecord),
        (_of_length(13)[:14], CorruptMessage),
        (_of_length(40), CorruptMessage),
        (_of_length(-1), CorruptMessage),
        (_of_magic(9), CorruptMessage),
        (_of_magic(9)[:-1], CorruptMessage),
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
        (_with(attributes=0x30), InvalidRecord),
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


def test_transactional_data_is_admitted_and_recognised() -> None:
    """Whether its transaction is open is for the broker to know, before it appends."""
    transactional = memoryview(_with(attributes=0x10))
    assert admit(transactional, LIMITS).is_transactional
    assert is_transactional(transactional)
    assert not is_transactional(memoryview(batch()))
    assert not is_transactional(memoryview(b"short"))


class Prepared(NamedTuple):
    """A batch, and the pauses and calls that it took."""

    records: memoryview
    pauses: int
    calls: int


def prepared(records: bytes, now_ms: int = T0, **settings: object) -> Prepared:
    limits = Limits.of(LogConfig()._replace(**settings))  # type: ignore[arg-type]
    assert limits.needs_preparation == (set(settings) != {"max_message_bytes"})
    steps = prepare(memoryview(bytearray(records)), limits, now_ms)
    pauses = calls = 0
    result = None
    try:
        while True:
            step = steps.send(result)
            result = None
            if step is None:
                pauses += 1
                continue
            calls += 1
            try:
                result = step()
            except CorruptData as error:
                steps.throw(error)
    except StopIteration as end:
        return Prepared(end.value, pauses, calls)


def keyed(*keys: bytes | None, codec: int = NONE, size: int = 10, step_ms: int = 0) -> bytes:
    builder = BatchBuilder(codec)
    for i, key in enumerate(keys):
        builder.append(T0 + i * step_ms, key, bytes(size))
    return bytes(builder.build())


@pytest.mark.parametrize("codec", range(5), ids=CODEC_NAMES)
def test_st_7_a_compacted_topic_refuses_records_without_a_key(codec: int) -> None:
    """ST-7: the records at fault are named (KIP-467)."""
    for policy in ("compact", "compact,delete"):
        with pytest.raises(InvalidRecord) as caught:
            prepared(keyed(b"a", None, b"c", None, codec=codec), cleanup_policy=policy)
        assert [index for index, _ in caught.value.record_errors] == [1, 3]
        assert "key" in caught.value.record_errors[0][1]
        assert "2 invalid records" in str(caught.value)
    good = keyed(b"a", b"", codec=codec)
    assert prepared(good, cleanup_policy="compact").records == good


def test_timestamps_must_lie_within_the_topic_s_bounds() -> None:
    records = keyed(b"a", b"b", b"c", step_ms=100)
    with pytest.raises(InvalidTimestamp) as caught:
        prepared(records, T0 + 50, message_timestamp_before_max_ms=49)
    assert [index for index, _ in caught.value.record_errors] == [0]
    with pytest.raises(InvalidTimestamp) as caught:
        prepared(records, T0 + 50, message_timestamp_after_max_ms=149)
    assert [index for index, _ in caught.value.record_errors] == [2]
    for bound in ("before", "after"):
        field = {f"message_timestamp_{bound}_max_ms": 150}
        assert prepared(records, T0 + 50, **field).records == records


def test_log_append_time_has_no_bounds() -> None:
    limits = Limits.of(
        LogConfig(message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=1)
    )
    assert not limits.needs_preparation


def test_what_is_not_asked_for_is_not_looked_at() -> None:
    assert not Limits.of(LogConfig()).needs_preparation
    same = keyed(None, codec=LZ4)
    assert prepared(same, compression_type="lz4") == (same, 0, 0)


@pytest.mark.parametrize("target", range(5), ids=CODEC_NAMES)
@pytest.mark.parametrize("source", range(5), ids=CODEC_NAMES)
def test_batches_are_kept_in_the_topic_s_codec(source: int, target: int) -> None:
    records = keyed(b"a", None, codec=source, step_ms=7)
    name = "uncompressed" if target == NONE else CODEC_NAMES[target]
    stored = prepared(records, compression_type=name).records
    header = read_header(stored)
    assert header.codec == target
    assert verify_crc(stored, 0, header)
    assert header.max_timestamp == T0 + 7
    assert list(iterate_records(stored)) == list(iterate_records(records))


def test_levels_of_the_topic_are_taken() -> None:
    records = keyed(*[b"%d text %d" % (i, i * i) for i in range(500)])
    sizes = [
        len(prepared(records, compression_type="gzip", compression_gzip_level=level).records)
        for level in (1, 9)
    ]
    assert sizes[1] < sizes[0]


def test_large_batches_are_worked_on_in_pieces() -> None:
    """The loop is not kept, and compression is left to a thread."""
    many = keyed(*[b"k"] * 9000)
    assert prepared(many, cleanup_policy="compact").pauses == 2
    assert prepared(many, compression_type="zstd")[1:] == (2, 1)
    assert prepared(many, compression_type="snappy").calls == 0
    roomy = keyed(*[b"k"] * 200, codec=ZSTD, size=10_000)
    assert prepared(roomy, cleanup_policy="compact").calls == 1
    assert prepared(roomy, compression_type="gzip", max_message_bytes=1 << 22).calls == 2


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD], ids=CODEC_NAMES[1:])
def test_a_bomb_is_refused(codec: int) -> None:
    header = read_header(keyed(b"a", codec=codec))
    bomb = seal(header, compress(codec, bytes(17 << 20)))
    with pytest.raises(InvalidRecord, match="16777216 bytes at most"):
        prepared(bomb, cleanup_policy="compact", max_message_bytes=1 << 23)


def test_records_that_cannot_be_read_are_refused() -> None:
    for damaged in (_with(record_count=2, last_offset_delta=1), bytearray(keyed(None))):
        header = read_header(damaged)
        sealed = seal(header, damaged[61:] + b"x")
        with pytest.raises(InvalidRecord, match="cannot be read"):
            prepared(sealed, cleanup_policy="compact")
    with pytest.raises(CorruptMessage):
        prepared(bytes(_damaged(70)), cleanup_policy="compact")


def test_a_wrong_maximum_of_times_is_corrected_where_records_are_walked() -> None:
    """Else retention would keep the segment until the end of time."""
    good = keyed(b"a", b"b", step_ms=5)
    lying = seal(read_header(good)._replace(max_timestamp=1 << 60), good[61:])
    assert prepared(lying, cleanup_policy="compact").records == good
    assert read_header(prepared(lying, compression_type="zstd").records).max_timestamp == T0 + 5
