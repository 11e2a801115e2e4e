"""Topics and partitions, as pages show them."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.admin.replica_admin import ReplicaEnd
from barnabas.console.brokers import broker_rows
from barnabas.console.query import PAGE_ROWS, paging
from barnabas.console.rates import Growth
from barnabas.console.shapes import BrokerRow, PartitionRow, TopicRow
from barnabas.console.snapshot import NO_DISKS, ClusterLook, DiskLook
from barnabas.console.topics import SORTS, Sources, partition_rows, topic_list, topic_row
from barnabas.types import TopicPartition
from tests.kit.cluster_looks import look, topic
from tests.kit.shapes import misfits

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC = topic("t", (1, (1, 2), (1,)), (-1, (4,), (4,)))


def sources(seen: ClusterLook, disks: DiskLook = NO_DISKS) -> Sources:
    return Sources(seen, disks, Growth())


def test_a_row_tells_what_is_known_and_none_for_the_rest() -> None:
    row = topic_row(TOPIC, sources(look(TOPIC, ends={T0: 7})))
    assert list(misfits(row, TopicRow)) == []
    assert row == {
        "name": "t",
        "is_internal": False,
        "partitions": 2,
        "replication_factor": 2,
        "leaderless": 1,
        "under_replicated": 1,
        "records": 7,
        "size": None,
        "records_in": None,
    }


def test_partitions_with_replicas_that_are_dead_or_behind() -> None:
    disks = DiskLook({}, {T0: {1: 100, 2: 90}})
    ends = {T0: {1: ReplicaEnd(7, 3, 7)}}
    first, second = partition_rows(TOPIC, sources(look(TOPIC, ends={T0: 7}), disks), ends)
    assert list(misfits([first, second], list[PartitionRow])) == []
    leader, follower = first["replicas"]
    assert (leader["is_leader"], leader["in_sync"], leader["end"]) == (True, True, 7)
    assert (follower["in_sync"], follower["is_alive"], follower["end"]) == (False, True, None)
    assert (first["size"], first["high_watermark"]) == (190, 7)
    assert (second["leader"], second["replicas"][0]["is_alive"]) == (None, False)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["a", "b", "c"]),
        ({"descending": "1"}, ["c", "b", "a"]),
        ({"sort": "records"}, ["c", "a", "b"]),  # those of b are not known
        ({"sort": "records", "descending": "1"}, ["a", "c", "b"]),
        ({"search": "B"}, ["b"]),
        ({"page": "1"}, []),
    ],
)
def test_lists_are_sorted_and_what_is_unknown_comes_last(
    query: dict[str, str], names: list[str]
) -> None:
    one = (1, (1,), (1,))
    topics = [topic(name, one) for name in ("b", "c", "a", "__internal")]
    ends = {TopicPartition("a", 0): 9, TopicPartition("c", 0): 2}
    found = topic_list(sources(look(*topics, ends=ends)), paging(query, SORTS), with_internal=False)
    assert [row["name"] for row in found["topics"]] == names


def test_a_page_has_a_limited_number_of_rows() -> None:
    topics = [topic(f"t{number:03}") for number in range(PAGE_ROWS + 5)]
    query: dict[str, Any] = {"page": "1"}
    found = topic_list(sources(look(*topics)), paging(query, SORTS), with_internal=False)
    assert (len(found["topics"]), found["matching"]) == (5, PAGE_ROWS + 5)


def test_brokers_with_their_partitions() -> None:
    rows = broker_rows(look(TOPIC, topic("u", (2, (1, 2), (1, 2)))), NO_DISKS)
    assert list(misfits(rows, list[BrokerRow])) == []
    counts = [(row["leaders"], row["replicas"], row["out_of_sync"]) for row in rows]
    assert counts == [(1, 2, 0), (1, 2, 1), (0, 0, 0)]
    assert [row["is_controller"] for row in rows] == [True, False, False]
