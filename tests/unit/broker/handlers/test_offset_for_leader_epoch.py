"""OffsetForLeaderEpoch: where epochs ended, and who may ask in which epoch."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.errors import FencedLeaderEpoch, UnknownLeaderEpoch, UnknownTopicOrPartition
from barnabas.protocol.api import OFFSET_FOR_LEADER_EPOCH
from barnabas.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.types import TopicPartition
from tests.kit.broker.produces import fill
from tests.kit.raw_client import RawClient, batch

LATEST = OFFSET_FOR_LEADER_EPOCH.max_version


def ask(
    client: RawClient,
    topic: str,
    epoch: int,
    version: int = LATEST,
    partition: int = 0,
    current: int = -1,
) -> EpochEndOffset:
    wanted = OffsetForLeaderPartition(
        partition=partition, leader_epoch=epoch, current_leader_epoch=current
    )
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[wanted])]
    )
    (found,) = client.call(OFFSET_FOR_LEADER_EPOCH, version, request).topics
    assert found.topic == topic
    return found.partitions[0]


@pytest.mark.parametrize("version", range(LATEST + 1))
def test_the_present_epoch_ends_with_the_log(client: RawClient, topic: str, version: int) -> None:
    fill(client, topic, batch(b"a", b"b", b"c"))
    answer = ask(client, topic, 0, version)
    assert (answer.error_code, answer.partition, answer.end_offset) == (0, 0, 3)
    assert answer.leader_epoch == (0 if version >= 1 else -1)


def test_epochs_that_were(node: Broker, client: RawClient, topic: str) -> None:
    """KIP-279: the answer is the greatest epoch that is not above the asked one."""
    fill(client, topic, batch(b"a", b"b"))
    log = node.server.node.replicas.leader_of(TopicPartition(topic, 0)).log
    log.epochs.assign(4, 2)  # as a leader of epoch 4 would
    assert (ask(client, topic, 0).leader_epoch, ask(client, topic, 0).end_offset) == (0, 2)
    assert (ask(client, topic, 3).leader_epoch, ask(client, topic, 3).end_offset) == (0, 2)
    assert (ask(client, topic, 4).leader_epoch, ask(client, topic, 4).end_offset) == (4, 2)


def test_an_epoch_to_come_is_unknown(client: RawClient, topic: str) -> None:
    answer = ask(client, topic, 9)
    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (0, -1, -1)


def test_a_wrong_current_epoch_gets_an_error(client: RawClient, topic: str) -> None:
    """KIP-320"""
    assert ask(client, topic, 0, current=0).error_code == 0
    newer = ask(client, topic, 0, current=7)
    assert (newer.error_code, newer.end_offset) == (UnknownLeaderEpoch.code, -1)


def test_who_lives_in_the_past_is_fenced(node: Broker, client: RawClient, topic: str) -> None:
    replica = node.server.node.replicas.leader_of(TopicPartition(topic, 0))
    replica.partition.leader_epoch = 3
    try:
        assert ask(client, topic, 0, current=1).error_code == FencedLeaderEpoch.code
    finally:
        replica.partition.leader_epoch = 0


def test_what_is_not_there(client: RawClient, topic: str) -> None:
    assert ask(client, "no-such-topic", 0).error_code == UnknownTopicOrPartition.code
    assert ask(client, topic, 0, partition=9).error_code == UnknownTopicOrPartition.code
