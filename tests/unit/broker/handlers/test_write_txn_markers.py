"""WriteTxnMarkers: the end of transactions in partitions, as other brokers and admins send it."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.errors import (
    InvalidProducerEpoch,
    TransactionCoordinatorFenced,
    UnknownTopicOrPartition,
)
from barnabas.protocol.api import LIST_OFFSETS, WRITE_TXN_MARKERS
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.kit.broker.transactional import write_marker
from tests.kit.raw_client import RawClient


def end_of(client: RawClient, topic: str) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])]
    )
    answer: Any = client.call(LIST_OFFSETS, 5, request)
    return int(answer.topics[0].partitions[0].offset)


@pytest.mark.parametrize("version", [0, 1])
def test_a_marker_takes_an_offset(client: RawClient, topic: str, version: int) -> None:
    assert write_marker(client, topic, (7, 0), 3, version=version) == 0
    assert write_marker(client, topic, (7, 0), 3, is_commit=True, version=version) == 0
    assert end_of(client, topic) == 2


def test_older_producers_and_coordinators_are_fenced(client: RawClient, topic: str) -> None:
    assert write_marker(client, topic, (7, 5), 3) == 0
    assert write_marker(client, topic, (7, 4), 3) == InvalidProducerEpoch.code
    assert write_marker(client, topic, (7, 5), 2) == TransactionCoordinatorFenced.code
    assert write_marker(client, topic, (8, 0), 2) == 0, "another producer's is another matter"
    assert end_of(client, topic) == 2


def test_each_partition_has_its_own_answer(client: RawClient, topic: str) -> None:
    topics = [
        WritableTxnMarkerTopic(name=topic, partition_indexes=[0, 1, 2]),
        WritableTxnMarkerTopic(name="no-such-topic", partition_indexes=[0]),
    ]
    markers = [
        WritableTxnMarker(producer_id=producer_id, topics=topics, coordinator_epoch=0)
        for producer_id in (1, 2)
    ]
    answer: Any = client.call(WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest(markers=markers))
    unknown = UnknownTopicOrPartition.code
    assert [
        (
            marker.producer_id,
            each.name,
            [(one.partition_index, one.error_code) for one in each.partitions],
        )
        for marker in answer.markers
        for each in marker.topics
    ] == [
        (producer_id, *facts)
        for producer_id in (1, 2)
        for facts in (
            (topic, [(0, 0), (1, 0), (2, unknown)]),
            ("no-such-topic", [(0, unknown)]),
        )
    ]


def test_nothing_asked_nothing_answered(client: RawClient) -> None:
    answer: Any = client.call(WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest())
    assert answer.markers == []
