"""ListOffsets: latest, earliest, by timestamp, in every version."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.errors import (
    InvalidRequest,
    LeaderNotAvailable,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from barnabas.protocol.api import LIST_OFFSETS
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.types import TopicPartition
from tests.kit.broker.produces import fill
from tests.kit.broker.replicated import Follower, Shared
from tests.kit.broker.replicated import fill as fill_leader
from tests.kit.broker.topics import topic_id_of
from tests.kit.raw_client import RawClient, batch

T0 = 1_700_000_000_000


def ask(
    client: RawClient,
    topic: str,
    timestamp: int,
    version: int = 7,
    epoch: int = -1,
    **fields: int,
) -> ListOffsetsPartitionResponse:
    wanted = ListOffsetsPartition(
        partition_index=0, timestamp=timestamp, current_leader_epoch=epoch if version >= 4 else -1
    )
    request = ListOffsetsRequest(
        topics=[ListOffsetsTopic(name=topic, partitions=[wanted])],
        **({"replica_id": -1} | fields),
    )
    return client.call(LIST_OFFSETS, version, request).topics[0].partitions[0]


@pytest.mark.parametrize("version", range(1, LIST_OFFSETS.max_version + 1))
def test_latest_and_earliest_in_every_version(client: RawClient, topic: str, version: int) -> None:
    fill(client, topic, batch(b"a", b"b"), batch(b"c"))
    assert ask(client, topic, -1, version).offset == 3
    assert ask(client, topic, -2, version).offset == 0


def test_version_0_lists_segments(node: Broker, client: RawClient, topic: str) -> None:
    """Newest first, with the log's end before them; by time those that are not younger."""
    log = leader(node, topic).log
    for n in range(3):
        fill(client, topic, batch(b"a", b"b", timestamp_ms=T0 + 1000 * n))
        if n < 2:
            log.roll()

    def listed(timestamp: int, count: int) -> list[int]:
        wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=count)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])]
        )
        answer = client.call(LIST_OFFSETS, 0, request).topics[0].partitions[0]
        assert answer.error_code == 0
        return list(answer.old_style_offsets)

    assert listed(-1, 1) == [6]
    assert listed(-1, 10) == [6, 4, 2, 0]
    assert listed(-2, 10) == [0]
    assert listed(T0 + 1500, 10) == [2, 0]
    assert listed(T0 - 1, 10) == []
    assert listed(-1, 0) == listed(-1, -5) == []


def leader(node: Broker, topic: str):  # type: ignore[no-untyped-def]
    return node.server.node.replicas.leader_of(TopicPartition(topic, 0))


def test_by_timestamp(client: RawClient, topic: str) -> None:
    """ST-4: the first record that is as young or younger."""
    for n in range(10):
        fill(client, topic, batch(b"a", b"b", timestamp_ms=T0 + 1000 * n))
    answer = ask(client, topic, T0 + 3001)
    assert (answer.offset, answer.timestamp) == (7, T0 + 3001)
    assert ask(client, topic, T0 + 3002).offset == 8
    assert ask(client, topic, 0).offset == 0
    assert ask(client, topic, T0 + 9002).offset == -1


def test_the_offset_of_the_largest_timestamp(client: RawClient, topic: str) -> None:
    fill(client, topic, batch(b"young", timestamp_ms=T0 + 5000), batch(b"old", timestamp_ms=T0))
    answer = ask(client, topic, -3)
    assert (answer.offset, answer.timestamp) == (0, T0 + 5000)


def test_unknown_topic_and_epoch(client: RawClient, topic: str) -> None:
    assert ask(client, "no-such-topic", -1).error_code == UnknownTopicOrPartition.code
    assert ask(client, topic, -1, epoch=9).error_code == UnknownLeaderEpoch.code


@pytest.mark.parametrize(
    ("timestamp", "first_version"), [(-1, 1), (-2, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 99)]
)
def test_special_timestamps_belong_to_versions(
    client: RawClient, topic: str, timestamp: int, first_version: int
) -> None:
    """Older versions do not know them, and get an error."""
    fill(client, topic, batch(b"a", b"b"))
    for version in range(1, LIST_OFFSETS.max_version + 1):
        answer = ask(client, topic, timestamp, version)
        if version < first_version:
            assert answer.error_code == UnsupportedVersion.code
            assert (answer.offset, answer.timestamp, answer.leader_epoch) == (-1, -1, -1)
        else:
            assert answer.error_code == 0


def test_without_tiered_storage(client: RawClient, topic: str) -> None:
    """What is on this disk is all there is (KIP-405, KIP-1005)."""
    fill(client, topic, batch(b"a", b"b"))
    local, tiered = ask(client, topic, -4, 8), ask(client, topic, -5, 9)
    assert (local.offset, local.timestamp, local.leader_epoch) == (0, -1, 0)
    assert (tiered.offset, tiered.timestamp, tiered.leader_epoch) == (-1, -1, -1)


def test_what_one_cannot_read_is_not_found(node: Broker, client: RawClient, topic: str) -> None:
    """CO-6, CO-7: it ends at the high watermark, or the last stable offset, or the log's end."""
    for n in range(3):
        fill(client, topic, batch(b"a", b"b", timestamp_ms=T0 + 1000 * n))
    replica = leader(node, topic)
    replica.partition.high_watermark = 4  # as if the last batch were on no other replica yet
    assert ask(client, topic, -1).offset == 4
    assert ask(client, topic, -1, isolation_level=1).offset == 4
    assert ask(client, topic, -1, replica_id=1).offset == 6
    assert ask(client, topic, -1, replica_id=-2).offset == 6
    assert ask(client, topic, T0 + 1000).offset == 2
    assert ask(client, topic, T0 + 2000).offset == -1
    assert ask(client, topic, T0 + 2000, replica_id=1).offset == 4
    assert ask(client, topic, -3).offset == -1
    assert ask(client, topic, -3, replica_id=1).offset == 5


def test_a_partition_that_is_listed_twice(client: RawClient, topic: str) -> None:
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    other = ListOffsetsPartition(partition_index=1, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(name=topic, partitions=[partition, other]),
            ListOffsetsTopic(name=topic, partitions=[partition]),
        ],
    )
    answer = client.call(LIST_OFFSETS, 7, request)
    assert [part.error_code for found in answer.topics for part in found.partitions] == [
        InvalidRequest.code,
        0,
        InvalidRequest.code,
    ]


@pytest.mark.parametrize("version", range(1, LIST_OFFSETS.max_version + 1))
def test_a_new_leader_that_lags_does_not_send_clients_back(
    node: Broker, client: RawClient, topic: str, version: int
) -> None:
    """KIP-207: below where its epoch began, it does not know what its predecessor has shown."""
    fill(client, topic, batch(b"a", b"b", timestamp_ms=T0))
    shared = Shared(node, topic, topic_id_of(client, topic))
    shared.change_role(isr=(0, 1))
    assert shared.replica.high_watermark == 2
    fill_leader(client, topic, batch(b"c", b"d", timestamp_ms=T0 + 10))
    shared.change_role(isr=(0, 1))
    refusal = OffsetNotAvailable if version >= 5 else LeaderNotAvailable
    assert ask(client, topic, -1, version).error_code == refusal.code
    assert ask(client, topic, T0 + 10, version).error_code == refusal.code
    assert ask(client, topic, -2, version).offset == 0
    assert ask(client, topic, T0, version).offset == 0
    assert ask(client, topic, -1, version, replica_id=1).offset == 4
    with RawClient(node.bootstrap_servers) as raw:
        Follower(raw, shared).fetch(4)
    assert ask(client, topic, -1, version).offset == 4


def test_any_replica_is_asked_by_id_minus_two(node: Broker, client: RawClient, topic: str) -> None:
    fill(client, topic, batch(b"a", b"b"))
    shared = Shared(node, topic, topic_id_of(client, topic))
    shared.change_role(leader=1)
    assert ask(client, topic, -1).error_code == NotLeaderOrFollower.code
    assert ask(client, topic, -1, replica_id=1).error_code == NotLeaderOrFollower.code
    assert ask(client, topic, -1, replica_id=-2).offset == 2
