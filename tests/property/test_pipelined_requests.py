"""Requests sent together on one connection are answered as if each had waited for the one before.

The same requests go twice to one broker, for topics and groups of different names: once all at
once, and once one by one. Error codes, offsets and records of the answers must be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas import Broker
from barnabas.protocol.api import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    FETCH,
    FIND_COORDINATOR,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    PRODUCE,
    Api,
)
from barnabas.protocol.codec import Message
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchTopic
from tests.kit.broker.fetches import fetch_request, only, values
from tests.kit.broker.offsets import committed
from tests.kit.broker.produces import produce_request
from tests.kit.effort import examples
from tests.kit.raw_client import RawClient, batch, once_found

LATEST = -1
NAMES = ("a", "b")
_NUMBERS = count()

Facts = tuple[Any, ...]


class Asked(NamedTuple):
    """One kind of request: how it is made for a topic and group, and what its answer tells."""

    api: Api
    version: int
    request: Callable[[str, str], Message]
    facts: Callable[[Any], Facts]


ASKED = {
    "create": Asked(
        CREATE_TOPICS,
        5,
        lambda topic, _: CreateTopicsRequest(
            topics=[CreatableTopic(name=topic, num_partitions=1, replication_factor=1)],
            timeout_ms=60_000,
        ),
        lambda answer: (answer.topics[0].error_code,),
    ),
    "delete": Asked(
        DELETE_TOPICS,
        5,
        lambda topic, _: DeleteTopicsRequest(topic_names=[topic], timeout_ms=60_000),
        lambda answer: (answer.responses[0].error_code,),
    ),
    "grow": Asked(
        CREATE_PARTITIONS,
        3,
        lambda topic, _: CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=topic, count=2)], timeout_ms=60_000
        ),
        lambda answer: (answer.results[0].error_code,),
    ),
    "produce": Asked(
        PRODUCE,
        9,
        lambda topic, _: produce_request(topic, {0: batch(b"record")}),
        lambda answer: produced_in(answer),
    ),
    "produce in doubt": Asked(  # its records are unpacked and walked first, in a thread
        PRODUCE,
        9,
        lambda topic, _: produce_request(topic, {0: batch(b"x" * 20_000, codec=1)}, 1),
        lambda answer: produced_in(answer),
    ),
    "fetch": Asked(
        FETCH,
        11,
        lambda topic, _: fetch_request(topic),
        lambda answer: (only(answer).error_code, values(only(answer))),
    ),
    "fetch that waits": Asked(
        FETCH,
        11,
        lambda topic, _: fetch_request(topic, max_wait_ms=20, min_bytes=1 << 20),
        lambda answer: (only(answer).error_code, values(only(answer))),
    ),
    "end": Asked(
        LIST_OFFSETS,
        5,
        lambda topic, _: ListOffsetsRequest(
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[ListOffsetsPartition(partition_index=0, timestamp=LATEST)],
                )
            ]
        ),
        lambda answer: (
            answer.topics[0].partitions[0].error_code,
            answer.topics[0].partitions[0].offset,
        ),
    ),
    "cut": Asked(
        DELETE_RECORDS,
        1,
        lambda topic, _: DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=1)]
                )
            ],
            timeout_ms=60_000,
        ),
        lambda answer: (answer.topics[0].partitions[0].error_code,),
    ),
    "metadata": Asked(
        METADATA,
        9,
        lambda topic, _: MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        ),
        lambda answer: (answer.topics[0].error_code, len(answer.topics[0].partitions)),
    ),
    "metadata that creates": Asked(
        METADATA,
        9,
        lambda topic, _: MetadataRequest(topics=[MetadataRequestTopic(name=topic)]),
        lambda answer: (answer.topics[0].error_code, len(answer.topics[0].partitions)),
    ),
    "commit": Asked(
        OFFSET_COMMIT,
        7,
        lambda topic, group: OffsetCommitRequest(
            group_id=group,
            topics=[
                OffsetCommitTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitPartition(
                            partition_index=0, committed_offset=7, committed_metadata="m"
                        )
                    ],
                )
            ],
        ),
        lambda answer: (answer.topics[0].partitions[0].error_code,),
    ),
    "committed": Asked(
        OFFSET_FETCH,
        5,
        lambda topic, group: OffsetFetchRequest(
            group_id=group, topics=[OffsetFetchTopic(name=topic, partition_indexes=[0])]
        ),
        lambda answer: (
            answer.error_code,
            answer.topics[0].partitions[0].committed_offset,
        ),
    ),
}


def produced_in(answer: Any) -> Facts:
    row = answer.responses[0].partition_responses[0]
    return (row.error_code, row.base_offset, row.log_start_offset)


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    with Broker() as broker:
        load_groups(broker)
        yield broker


def load_groups(broker: Broker) -> None:
    """Have the coordinator's topic made, so that no answer depends on when it was."""
    with RawClient(broker.bootstrap_servers) as client:
        find = FindCoordinatorRequest(key="none")
        once_found(lambda: client.call(FIND_COORDINATOR, 3, find))
        committed(client, "none", "none", 0)


@settings(max_examples=examples(40))
@given(st.lists(st.tuples(st.sampled_from(sorted(ASKED)), st.sampled_from(NAMES)), max_size=12))
def test_pipelined_requests_are_answered_as_if_sent_one_by_one(
    node: Broker, steps: list[tuple[str, str]]
) -> None:
    number = next(_NUMBERS)
    with RawClient(node.bootstrap_servers) as client:
        one_by_one = answers_of(client, steps, f"one{number}", is_pipelined=False)
        assert answers_of(client, steps, f"all{number}", is_pipelined=True) == one_by_one


@pytest.mark.parametrize(
    "steps",
    [
        ("create", "produce", "fetch", "end"),
        ("create", "delete", "produce", "metadata"),
        ("create", "delete", "create", "produce", "fetch"),
        ("create", "produce in doubt", "delete", "produce"),
        ("create", "grow", "metadata", "delete", "metadata that creates", "produce"),
        ("create", "fetch that waits", "produce", "fetch"),
        ("create", "commit", "committed", "delete", "committed"),
        ("create", "produce", "produce", "cut", "produce", "fetch"),
    ],
    ids=" ".join,
)
def test_these_sequences_once_overtook_each_other(node: Broker, steps: tuple[str, ...]) -> None:
    number = next(_NUMBERS)
    named = [(step, NAMES[0]) for step in steps]
    with RawClient(node.bootstrap_servers) as client:
        one_by_one = answers_of(client, named, f"one{number}", is_pipelined=False)
        for turn in range(3):
            together = answers_of(client, named, f"all{number}-{turn}", is_pipelined=True)
            assert together == one_by_one


def answers_of(
    client: RawClient, steps: list[tuple[str, str]], prefix: str, *, is_pipelined: bool
) -> list[tuple[str, Facts]]:
    """What the broker answers to the steps, for names of that prefix."""
    facts = []
    waiting = []
    for kind, name in steps:
        asked = ASKED[kind]
        request = asked.request(f"{prefix}-{name}", f"{prefix}-group")
        waiting.append((kind, client.send(asked.api, asked.version, request)))
        if not is_pipelined:
            facts += [received(client, *each) for each in waiting]
            waiting.clear()
    return facts + [received(client, *each) for each in waiting]


def received(client: RawClient, kind: str, correlation_id: int) -> tuple[str, Facts]:
    got, answer = client.receive(ASKED[kind].api, ASKED[kind].version)
    assert got == correlation_id
    return kind, ASKED[kind].facts(answer)
