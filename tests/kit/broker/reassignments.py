"""Reassignments asked for over a raw connection."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.api import ALTER_PARTITION_REASSIGNMENTS
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.kit.raw_client import RawClient


def alter(client: RawClient, topics: dict[str, dict[int, list[int] | None]]) -> Any:
    request = AlterPartitionReassignmentsRequest(timeout_ms=60_000)
    for name, wanted in topics.items():
        partitions = [
            ReassignablePartition(partition_index=number, replicas=replicas)
            for number, replicas in wanted.items()
        ]
        request.topics.append(ReassignableTopic(name=name, partitions=partitions))
    return client.call(ALTER_PARTITION_REASSIGNMENTS, 0, request)


def codes(answer: Any) -> dict[tuple[str, int], int]:
    assert (answer.error_code, answer.error_message) == (0, "")
    for topic in answer.responses:
        for each in topic.partitions:
            assert (each.error_message is None) == (each.error_code == 0)
    return {
        (topic.name, each.partition_index): each.error_code
        for topic in answer.responses
        for each in topic.partitions
    }
