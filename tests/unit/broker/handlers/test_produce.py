"""Produce: acks, duplicates, gaps, bad batches; a failed partition does not fail its neighbour."""

from __future__ import annotations

import pytest

from barnabas.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidRequiredAcks,
    InvalidTimestamp,
    InvalidTopic,
    MessageTooLarge,
    OutOfOrderSequenceNumber,
    TransactionalIdAuthorizationFailed,
    UnknownTopicOrPartition,
    UnsupportedCompressionType,
)
from barnabas.protocol.api import FETCH, PRODUCE
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.records.batch import TRANSACTIONAL, BatchHeader, iterate_batches
from barnabas.records.compression import ZSTD
from barnabas.records.crc32c import crc32c
from tests.kit.broker.produces import produce, produce_request
from tests.kit.broker.topics import with_configs
from tests.kit.raw_client import RawClient, batch

VERSIONS = range(3, PRODUCE.max_version + 1)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("acks", [1, -1])
def test_offsets_are_dense_in_every_version(
    client: RawClient, topic: str, version: int, acks: int
) -> None:
    """PR-4, TP-2: each batch gets the next offsets of its partition."""
    first = produce(client, topic, batch(b"a", b"b"), acks, version)
    second = produce(client, topic, batch(b"c"), acks, version)
    assert (first.error_code, first.base_offset) == (0, 0)
    assert (second.error_code, second.base_offset) == (0, 2)
    assert first.log_append_time_ms == -1


@pytest.mark.parametrize("version", [0, 1, 2])
def test_versions_before_magic_2_close_the_connection(client: RawClient, version: int) -> None:
    """ST-5: advertised from 0 for old librdkafka, answered by closing."""
    header = b"\x00\x00" + version.to_bytes(2, "big") + b"\x00\x00\x00\x01\x00\x03raw"
    body = header + b"\x00\x01\x00\x00\x13\x88\x00\x00\x00\x00"
    client.send_bytes(len(body).to_bytes(4, "big") + body)
    assert client.is_closed_by_peer()


def test_acks_0_is_not_answered_and_is_written(client: RawClient, topic: str) -> None:
    """PR-4: the next answer on the connection belongs to the next request."""
    client.send(PRODUCE, 9, produce_request(topic, {0: batch(b"a")}, acks=0))
    assert produce(client, topic, batch(b"b")).base_offset == 1


def test_acks_0_that_fails_closes_the_connection(client: RawClient) -> None:
    client.send(PRODUCE, 9, produce_request("no-such-topic", {0: batch(b"a")}, acks=0))
    assert client.is_closed_by_peer()


def test_a_failed_partition_leaves_its_neighbour_alone(client: RawClient, topic: str) -> None:
    answer = client.call(PRODUCE, 9, produce_request(topic, {0: batch(b"a"), 7: batch(b"b")}))
    good, bad = answer.responses[0].partition_responses
    assert (good.index, good.error_code, good.base_offset) == (0, 0, 0)
    assert (bad.index, bad.error_code) == (7, UnknownTopicOrPartition.code)
    assert bad.base_offset == -1 and "7" in (bad.error_message or "")


def test_a_batch_sent_again_is_answered_with_its_first_offset(
    client: RawClient, topic: str
) -> None:
    """PR-6: duplicates of a producer's last five batches are not stored again."""
    batches = [
        batch(b"%d" % n, producer_id=77, producer_epoch=0, base_sequence=n) for n in range(5)
    ]
    offsets = [produce(client, topic, each).base_offset for each in batches]
    again = [produce(client, topic, each) for each in batches]
    assert offsets == [0, 1, 2, 3, 4]
    assert [(each.error_code, each.base_offset) for each in again] == [(0, n) for n in range(5)]
    after = batch(b"5", producer_id=77, producer_epoch=0, base_sequence=5)
    assert produce(client, topic, after).base_offset == 5


def test_a_gap_in_the_sequence_is_refused(client: RawClient, topic: str) -> None:
    """PR-6"""
    first = batch(b"0", producer_id=78, producer_epoch=0, base_sequence=0)
    gap = batch(b"2", producer_id=78, producer_epoch=0, base_sequence=2)
    assert produce(client, topic, first).error_code == 0
    assert produce(client, topic, gap).error_code == OutOfOrderSequenceNumber.code


def _flip(records: bytes, position: int) -> bytes:
    return records[:position] + bytes([records[position] ^ 1]) + records[position + 1 :]


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (_flip(batch(b"value"), 66), CorruptMessage),
        (batch(b"value")[:-1], InvalidRecord),  # as Kafka 3.9.1 answered
        (b"", InvalidRecord),
    ],
    ids=["crc", "cut", "empty"],
)
def test_bad_batches_are_refused(
    client: RawClient, topic: str, records: bytes, error: type[Exception]
) -> None:
    assert produce(client, topic, records).error_code == error.code
    assert produce(client, topic, batch(b"next")).base_offset == 0, "nothing was written"


def test_a_batch_above_max_message_bytes_is_refused(client: RawClient, topic: str) -> None:
    """PR-3: by the broker, MESSAGE_TOO_LARGE."""
    assert produce(client, topic, batch(bytes(1_100_000))).error_code == MessageTooLarge.code


def test_unknown_acks_are_refused(client: RawClient, topic: str) -> None:
    """PR-4"""
    assert produce(client, topic, batch(b"a"), acks=2).error_code == InvalidRequiredAcks.code


def test_clients_cannot_write_to_internal_topics(client: RawClient) -> None:
    """TP-8"""
    answer = produce(client, "__consumer_offsets", batch(b"a"))
    assert answer.error_code == InvalidTopic.code


def stored(client: RawClient, topic: str) -> list[BatchHeader]:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10**8)
    asked = FetchRequest(
        max_wait_ms=0, max_bytes=10**8, topics=[FetchTopic(topic=topic, partitions=[wanted])]
    )
    records = client.call(FETCH, 11, asked).responses[0].partitions[0].records
    return [header for _, header in iterate_batches(records)]


def test_a_compacted_topic_refuses_records_without_a_key(client: RawClient) -> None:
    """ST-7: and says which they are (KIP-467); the others in the request are written."""
    with_configs(client, "keyed", cleanup_policy="compact")
    answer = produce(client, "keyed", batch(b"a", b"b"))
    assert answer.error_code == InvalidRecord.code
    assert [each.batch_index for each in answer.record_errors] == [0, 1]
    assert stored(client, "keyed") == []


def test_a_topic_keeps_its_own_codec(client: RawClient) -> None:
    """PR-3: what comes otherwise is compressed again, small at once and large in a thread; and
    the requests of a connection stay in their order meanwhile."""
    with_configs(client, "zipped", compression_type="zstd")
    large = batch(*[bytes([number]) * 9000 for number in range(100)])
    sent = [
        client.send(PRODUCE, 9, produce_request("zipped", {0: records}))
        for records in (large, batch(b"small"), batch(b"same", codec=ZSTD), large)
    ]
    offsets = []
    for correlation_id in sent:
        got, answer = client.receive(PRODUCE, 9)
        assert got == correlation_id
        assert answer.responses[0].partition_responses[0].error_code == 0
        offsets.append(answer.responses[0].partition_responses[0].base_offset)
    assert offsets == [0, 100, 101, 102]
    headers = stored(client, "zipped")
    assert [header.codec for header in headers] == [ZSTD] * 4
    assert [header.base_offset for header in headers] == offsets


def test_times_out_of_bounds_are_refused(client: RawClient) -> None:
    with_configs(client, "timely", message_timestamp_before_max_ms="1000")
    answer = produce(client, "timely", batch(b"of 2023"))
    assert answer.error_code == InvalidTimestamp.code
    assert [each.batch_index for each in answer.record_errors] == [0]


def test_zstd_needs_version_7(client: RawClient, topic: str) -> None:
    """KIP-110: consumers that old cannot read it."""
    answer = produce(client, topic, batch(b"a", codec=ZSTD), version=6)
    assert answer.error_code == UnsupportedCompressionType.code
    assert produce(client, topic, batch(b"a", codec=ZSTD), version=7).error_code == 0


def test_a_transactional_batch_needs_a_transaction(client: RawClient, topic: str) -> None:
    records = bytearray(batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0))
    records[22] |= TRANSACTIONAL
    records[17:21] = crc32c(records[21:]).to_bytes(4, "big")
    answer = produce(client, topic, bytes(records))
    assert answer.error_code == TransactionalIdAuthorizationFailed.code, "whose transaction?"
