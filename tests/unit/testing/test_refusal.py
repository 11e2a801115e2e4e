"""Answers that are nothing but an error, and requests of which a rule is about a part."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.api import FETCH, OFFSET_FETCH, PRODUCE, WRITE_TXN_MARKERS
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchTopic,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.testing.faults.refusal import merge, put_errors, refusal
from barnabas.testing.faults.selection import Narrowed, select

NOT_LEADER = 6
TOPIC_ID = bytes(15) + b"\x07"


def produce_request() -> ProduceRequest:
    return ProduceRequest(
        acks=-1,
        topic_data=[
            TopicProduceData(
                name=name,
                partition_data=[PartitionProduceData(index=index) for index in (0, 1)],
            )
            for name in ("orders", "clicks")
        ],
    )


def rows_of(answer: Any) -> list[tuple[str, int, int]]:
    return [
        (topic.name, row.index, row.error_code)
        for topic in answer.responses
        for row in topic.partition_responses
    ]


def test_tk_4_a_request_is_refused_in_each_of_its_rows() -> None:
    answer = refusal(PRODUCE, 9, produce_request(), NOT_LEADER, whole=False)
    assert rows_of(answer) == [
        ("orders", 0, NOT_LEADER),
        ("orders", 1, NOT_LEADER),
        ("clicks", 0, NOT_LEADER),
        ("clicks", 1, NOT_LEADER),
    ]


def test_tk_4_the_refusal_of_a_part_is_put_into_the_answer_to_the_rest() -> None:
    chosen, rest = select(produce_request(), Narrowed("orders", 1), {})
    assert chosen is not None and rest is not None
    answer = refusal(PRODUCE, 9, rest, 0, whole=False)
    assert rows_of(answer) == [("orders", 0, 0), ("clicks", 0, 0), ("clicks", 1, 0)]
    merge(answer, refusal(PRODUCE, 9, chosen, NOT_LEADER, whole=False))
    assert sorted(rows_of(answer)) == [
        ("clicks", 0, 0),
        ("clicks", 1, 0),
        ("orders", 0, 0),
        ("orders", 1, NOT_LEADER),
    ]


def test_tk_4_a_topic_is_found_by_its_id() -> None:
    request = FetchRequest(
        topics=[FetchTopic(topic_id=TOPIC_ID, partitions=[FetchPartition(partition=3)])]
    )
    chosen, rest = select(request, Narrowed("orders", 3), {TOPIC_ID: "orders"})
    assert chosen is not None and rest is None
    answer: Any = refusal(FETCH, 13, chosen, NOT_LEADER, whole=False)
    (topic,) = answer.responses
    (row,) = topic.partitions
    assert (topic.topic_id, row.partition_index, row.error_code) == (TOPIC_ID, 3, NOT_LEADER)
    assert row.records == b"" and row.high_watermark == -1


def test_tk_4_an_error_of_the_whole_stands_once_and_outermost() -> None:
    topics = [OffsetFetchTopic(name="orders", partition_indexes=[0])]
    several = OffsetFetchRequest(groups=[OffsetFetchGroup(group_id="g", topics=topics)])
    answer: Any = refusal(OFFSET_FETCH, 8, several, 16, whole=True)
    assert [(each.group_id, each.error_code, each.topics) for each in answer.groups] == [
        ("g", 16, [])
    ]
    one = OffsetFetchRequest(group_id="g", topics=topics)
    answer = refusal(OFFSET_FETCH, 7, one, 16, whole=True)
    assert (answer.error_code, answer.topics) == (16, [])
    answer = refusal(OFFSET_FETCH, 1, one, 16, whole=True)  # a version without such a place
    assert answer.topics[0].partitions[0].error_code == 16


def test_tk_4_a_marker_keeps_its_producer_id() -> None:
    topics = [WritableTxnMarkerTopic(name="orders", partition_indexes=[2])]
    request = WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer_id=5, topics=topics)])
    answer: Any = refusal(WRITE_TXN_MARKERS, 1, request, NOT_LEADER, whole=False)
    assert answer.markers[0].producer_id == 5
    assert answer.markers[0].topics[0].partitions[0].partition_index == 2


def test_tk_4_metadata_gets_errors_where_it_was_answered() -> None:
    def answer() -> MetadataResponse:
        partitions = [MetadataResponsePartition(partition_index=index) for index in (0, 1)]
        return MetadataResponse(
            topics=[MetadataResponseTopic(name="orders", partitions=partitions)]
        )

    of_topic = answer()
    put_errors(Narrowed("orders"), 5, of_topic)
    assert (of_topic.topics[0].error_code, of_topic.topics[0].partitions) == (5, [])
    of_partition = answer()
    put_errors(Narrowed("orders", 1), 5, of_partition)
    assert [each.error_code for each in of_partition.topics[0].partitions] == [0, 5]
    of_other = answer()
    put_errors(Narrowed("clicks"), 5, of_other)
    assert of_other == answer()
