"""ListOffsets: latest, earliest, by timestamp, in every version."""

from __future__ import annotations

import pytest

from barnabas.errors import UnknownLeaderEpoch, UnknownTopicOrPartition
from barnabas.protocol.api import LIST_OFFSETS
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.raw_client import RawClient, batch
from tests.unit.broker.handlers.test_fetch import fill

T0 = 1_700_000_000_000


def ask(
    client: RawClient, topic: str, timestamp: int, version: int = 7, epoch: int = -1
) -> ListOffsetsPartitionResponse:
    wanted = ListOffsetsPartition(
        partition_index=0, timestamp=timestamp, current_leader_epoch=epoch if version >= 4 else -1
    )
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])]
    )
    return client.call(LIST_OFFSETS, version, request).topics[0].partitions[0]


@pytest.mark.parametrize("version", range(1, LIST_OFFSETS.max_version + 1))
def test_latest_and_earliest_in_every_version(client: RawClient, topic: str, version: int) -> None:
    fill(client, topic, batch(b"a", b"b"), batch(b"c"))
    assert ask(client, topic, -1, version).offset == 3
    assert ask(client, topic, -2, version).offset == 0


def test_version_0_lists_offsets(client: RawClient, topic: str) -> None:
    fill(client, topic, batch(b"a", b"b"))
    wanted = ListOffsetsPartition(partition_index=0, timestamp=-1, max_num_offsets=1)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])]
    )
    answer = client.call(LIST_OFFSETS, 0, request).topics[0].partitions[0]
    assert answer.old_style_offsets == [2]


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
