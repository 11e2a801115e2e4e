"""Fetch: whole batches, limits, the long poll, what one may not see."""

from __future__ import annotations

import threading
import time

import pytest

from barnabas import Broker
from barnabas.errors import (
    CorruptMessage,
    FencedLeaderEpoch,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from barnabas.protocol.api import DELETE_TOPICS, FETCH, PRODUCE
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    PartitionData,
)
from tests.kit.broker.fetches import fetch_request, only, values
from tests.kit.broker.produces import fill, produce_request
from tests.kit.broker.topics import create, topic_id_of
from tests.kit.raw_client import AN_HOUR_MS, PATIENCE_S, RawClient, batch


@pytest.mark.parametrize("version", range(4, FETCH.max_version + 1))
def test_what_was_produced_comes_back_in_every_version(
    client: RawClient, topic: str, version: int
) -> None:
    fill(client, topic, batch(b"a", b"b"), batch(b"c"))
    name = topic_id_of(client, topic) if version >= 13 else topic
    partition = only(client.call(FETCH, version, fetch_request(name)))
    assert partition.error_code == 0
    assert values(partition) == [b"a", b"b", b"c"]
    assert partition.high_watermark == partition.last_stable_offset == 3


def test_from_the_middle_of_a_batch_the_whole_batch_comes(client: RawClient, topic: str) -> None:
    fill(client, topic, batch(b"a", b"b", b"c"), batch(b"d"))
    assert values(only(client.call(FETCH, 11, fetch_request(topic, 1)))) == [b"a", b"b", b"c", b"d"]
    assert values(only(client.call(FETCH, 11, fetch_request(topic, 3)))) == [b"d"]
    assert values(only(client.call(FETCH, 11, fetch_request(topic, 4)))) == []


def test_a_first_batch_above_every_limit_is_returned_all_the_same(
    client: RawClient, topic: str
) -> None:
    """CO-1"""
    fill(client, topic, batch(bytes(5000)), batch(b"next"))
    limited = fetch_request(topic, max_bytes=100, partition_max_bytes=100)
    assert values(only(client.call(FETCH, 11, limited))) == [bytes(5000)]


def test_limits_cut_between_batches(client: RawClient, topic: str) -> None:
    """CO-1: partition and request limits, whole batches only."""
    one = batch(bytes(1000))
    fill(client, topic, *[one] * 5)
    limited = fetch_request(topic, partition_max_bytes=len(one) * 2 + 10)
    assert len(values(only(client.call(FETCH, 11, limited)))) == 2


def test_an_empty_fetch_waits_and_returns_empty(client: RawClient, topic: str) -> None:
    """CO-1"""
    began = time.monotonic()
    partition = only(client.call(FETCH, 11, fetch_request(topic, max_wait_ms=200)))
    assert values(partition) == []
    assert time.monotonic() - began >= 0.19


def test_a_long_poll_ends_when_a_record_is_there(node, client: RawClient, topic: str) -> None:
    """CO-1: a poll of seven days returns as soon as there is data."""
    seven_days_ms = 7 * 24 * 3600 * 1000
    sent = client.send(FETCH, 11, fetch_request(topic, max_wait_ms=seven_days_ms))
    with RawClient(node.bootstrap_servers) as other:
        fill(other, topic, batch(b"now"))
    got, response = client.receive(FETCH, 11)
    assert got == sent
    assert values(only(response)) == [b"now"]


def test_a_long_poll_waits_for_min_bytes(node, client: RawClient, topic: str) -> None:
    """CO-1: fetch.min.bytes"""
    one = batch(bytes(1000))
    client.send(FETCH, 11, fetch_request(topic, max_wait_ms=AN_HOUR_MS, min_bytes=2 * len(one)))
    with RawClient(node.bootstrap_servers) as other:
        fill(other, topic, one)
        client.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.receive_frame()
        client.socket.settimeout(PATIENCE_S)
        fill(other, topic, one)
    assert len(values(only(client.receive(FETCH, 11)[1]))) == 2


def test_answers_keep_the_order_of_the_requests(client: RawClient, topic: str) -> None:
    """A parked fetch does not let the answers behind it pass."""
    fill(client, topic, batch(b"a"))
    waiting = client.send(FETCH, 11, fetch_request(topic, 1, max_wait_ms=150))
    ready = client.send(FETCH, 11, fetch_request(topic, 0))
    assert client.receive(FETCH, 11)[0] == waiting
    assert client.receive(FETCH, 11)[0] == ready


def test_a_deleted_topic_wakes_its_readers(node, client: RawClient, topic: str) -> None:
    client.send(FETCH, 11, fetch_request(topic, max_wait_ms=20_000))
    with RawClient(node.bootstrap_servers) as other:
        other.call(DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=[topic], timeout_ms=60_000))
    assert only(client.receive(FETCH, 11)[1]).error_code == UnknownTopicOrPartition.code


@pytest.mark.parametrize("offset", [-1, 2, 1 << 40])
def test_offsets_outside_the_log_are_refused(client: RawClient, topic: str, offset: int) -> None:
    fill(client, topic, batch(b"a"))
    partition = only(client.call(FETCH, 11, fetch_request(topic, offset, max_wait_ms=10_000)))
    assert partition.error_code == OffsetOutOfRange.code
    assert partition.high_watermark == -1


@pytest.mark.parametrize("version", range(FETCH.min_version, 4))
def test_old_versions_get_an_error_per_partition(
    client: RawClient, topic: str, version: int
) -> None:
    """ST-5: nothing is converted down."""
    partition = only(client.call(FETCH, version, fetch_request(topic)))
    assert partition.error_code == UnsupportedVersion.code


def test_unknown_partitions_topics_and_ids(client: RawClient, topic: str) -> None:
    def error_of(version: int, name: str | bytes, partition: int = 0) -> int:
        wanted = fetch_request(name, partition=partition, max_wait_ms=10_000)
        return only(client.call(FETCH, version, wanted)).error_code

    assert error_of(11, topic, 9) == UnknownTopicOrPartition.code
    assert error_of(11, "no-such-topic") == UnknownTopicOrPartition.code
    assert error_of(13, b"\x07" * 16) == UnknownTopicId.code


def test_nothing_above_the_broker_s_own_limit_is_sent(node, client: RawClient, topic: str) -> None:
    """CO-1: fetch.max.bytes of the broker."""
    one = batch(bytes(100_000))
    fill(client, topic, *[one] * 12)
    with (
        Broker(config={"fetch.max.bytes": "350000"}) as small,
        RawClient(small.bootstrap_servers) as reader,
    ):
        create(reader, "t")
        fill(reader, "t", *[one] * 12)
        assert len(values(only(reader.call(FETCH, 11, fetch_request("t", max_bytes=1 << 30))))) == 3
    assert len(values(only(client.call(FETCH, 11, fetch_request(topic, max_bytes=1 << 30))))) == 10


def test_partitions_behind_the_limit_are_answered_without_records(
    client: RawClient, topic: str
) -> None:
    for index in (0, 1):
        client.call(PRODUCE, 9, produce_request(topic, {index: batch(bytes(1000))}))
    both = fetch_request(topic, max_bytes=1000)
    both.topics[0].partitions.append(
        FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=1 << 20)
    )
    first, second = client.call(FETCH, 11, both).responses[0].partitions
    assert len(values(first)) == 1
    assert (values(second), second.error_code, second.high_watermark) == ([], 0, 1)
    both.topics[0].partitions[1].fetch_offset = 5
    second = client.call(FETCH, 11, both).responses[0].partitions[1]
    assert second.error_code == OffsetOutOfRange.code


def test_a_reader_from_another_branch_learns_where_its_log_left_ours(
    client: RawClient, topic: str
) -> None:
    """KIP-595, KIP-320: the answer does not wait."""

    def asked(offset: int, last_epoch: int) -> PartitionData:
        wanted = fetch_request(topic, offset, max_wait_ms=AN_HOUR_MS)
        wanted.topics[0].partitions[0].last_fetched_epoch = last_epoch
        return only(client.call(FETCH, 12, wanted))

    fill(client, topic, batch(b"a", b"b"))
    assert values(asked(0, 0)) == [b"a", b"b"]
    diverged = asked(3, 0)  # it has a record more of epoch 0 than we have
    assert (diverged.diverging_epoch.epoch, diverged.diverging_epoch.end_offset) == (0, 2)
    assert (diverged.error_code, values(diverged)) == (0, [])
    assert asked(2, 7).error_code == OffsetOutOfRange.code, "an epoch that we know nothing of"


def test_committed_readers_get_a_list_of_aborted_transactions(
    client: RawClient, topic: str
) -> None:
    """CO-6: empty without transactions; those who read everything get none at all."""
    fill(client, topic, batch(b"a"))
    assert only(client.call(FETCH, 11, fetch_request(topic))).aborted_transactions is None
    for offset in (0, 1):
        committed = fetch_request(topic, offset, isolation_level=1)
        assert only(client.call(FETCH, 11, committed)).aborted_transactions == []


def test_leader_epochs_are_fenced(client: RawClient, topic: str) -> None:
    """KIP-320"""
    newer = fetch_request(topic, current_leader_epoch=5)
    assert only(client.call(FETCH, 11, newer)).error_code == UnknownLeaderEpoch.code
    assert FencedLeaderEpoch.code != UnknownLeaderEpoch.code


def test_many_readers_wait_at_once(node, client: RawClient, topic: str) -> None:
    """CO-3's ground: everybody who reads a partition gets everything."""
    got: list[list[bytes | None]] = []

    def read() -> None:
        with RawClient(node.bootstrap_servers) as reader:
            answer = reader.call(FETCH, 11, fetch_request(topic, max_wait_ms=AN_HOUR_MS))
            got.append(values(only(answer)))

    readers = [threading.Thread(target=read) for _ in range(8)]
    for reader in readers:
        reader.start()
    time.sleep(0.1)
    fill(client, topic, batch(b"to all"))
    for reader in readers:
        reader.join(PATIENCE_S)
    assert got == [[b"to all"]] * 8


def test_a_damaged_batch_is_an_error_of_its_partition(
    node, client: RawClient, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """UX-4: bad bytes on the disk, below what recovery would look at."""
    fill(client, topic, *[batch(bytes(5000))] * 40)
    segment = node.data_dir / f"{topic}-0" / f"{0:020}.log"
    one = len(batch(bytes(5000)))
    with segment.open("r+b") as file:
        for index in range(3, 39):
            file.seek(index * one + 16)
            file.write(b"\x63")  # no such magic
    partition = only(client.call(FETCH, 11, fetch_request(topic, 20)))
    assert partition.error_code == CorruptMessage.code
    partition = only(client.call(FETCH, 11, fetch_request(topic, 1)))
    assert partition.error_code == 0
    assert bytes(partition.records[: 2 * one]) == segment.read_bytes()[one : 3 * one]
    by_id = fetch_request(topic_id_of(client, topic), 3)
    for version, request in ((11, fetch_request(topic, 3)), (13, by_id)):
        partition = only(client.call(FETCH, version, request))
        assert partition.error_code == CorruptMessage.code
    assert caplog.text.count(f"read of {topic}-0 failed: {segment}") == 1, "once a minute"
    fill(client, topic, batch(b"goes on"))
