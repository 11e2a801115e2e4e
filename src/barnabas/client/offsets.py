"""Finds the offsets of partitions: the start, the end, and the first record at or after a time.

Each leader is sent one ListOffsets request. It contains the leader epoch from the metadata, so that
a deposed leader rejects it. Transient errors are retried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.client.channel import BrokerAddress
from barnabas.client.cluster import Cluster
from barnabas.client.errors import Unreachable, broker_error
from barnabas.client.view import unknown_partition
from barnabas.errors import KafkaError, LeaderNotAvailable
from barnabas.protocol.api import LIST_OFFSETS
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.types import TopicPartition

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
"""The special timestamps of ListOffsets. The last one requires version 7 (KIP-734)."""

READ_UNCOMMITTED, READ_COMMITTED = 0, 1


class OffsetAndTimestamp(NamedTuple):
    offset: int  # -1: no record is that recent
    timestamp_ms: int  # the record's timestamp; -1 unless a time was requested
    leader_epoch: int


class OffsetFinder:
    """Asks partition leaders for offsets."""

    def __init__(self, cluster: Cluster, isolation_level: int) -> None:
        self._cluster = cluster
        self._isolation_level = isolation_level

    async def find(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Return the offset of each partition's first record at or after the timestamp.

        The timestamps are in ms since the epoch, or LATEST, EARLIEST or MAX_TIMESTAMP. If a
        partition still has no offset after `timeout_ms`, its KafkaError or Unreachable is raised.
        """
        found: dict[TopicPartition, OffsetAndTimestamp] = {}

        async def attempt() -> None:
            # Leaders fail independently, so request only partitions without a result.
            missing = {tp: at for tp, at in timestamps.items() if tp not in found}
            by_leader = await self._by_leader(missing, timeout_ms)
            answers = await asyncio.gather(
                *(self.ask(node, times) for node, times in by_leader.items()),
                return_exceptions=True,
            )
            errors = [answer for answer in answers if isinstance(answer, BaseException)]
            for answer in answers:
                if isinstance(answer, BaseException):
                    continue
                for topic_partition, at in answer.items():
                    if isinstance(at, KafkaError):
                        errors.append(at)
                    else:
                        found[topic_partition] = at
            if errors:
                raise min(errors, key=is_passing)  # permanent errors take precedence

        await self._cluster.persist(attempt, timeout_ms)
        return {tp: found[tp] for tp in timestamps}

    async def _by_leader(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: int
    ) -> dict[BrokerAddress, dict[TopicPartition, int]]:
        metadata = self._cluster.metadata
        by_leader: dict[BrokerAddress, dict[TopicPartition, int]] = {}
        for topic_partition, timestamp in timestamps.items():
            topic = await metadata.topic(topic_partition.topic, timeout_ms, create=False)
            # Partitions may have been added since the topic was described.
            if topic_partition.partition not in topic.partitions:
                topic = (await metadata.refresh()).topics.get(topic.name, topic)
            if topic_partition.partition not in topic.partitions:
                raise unknown_partition(topic, topic_partition.partition)
            leader = metadata.view.leader(topic_partition)
            if leader is None:
                raise broker_error(LeaderNotAvailable.code, f"partition {topic_partition}")
            by_leader.setdefault(leader, {})[topic_partition] = timestamp
        return by_leader

    async def ask(
        self, node: BrokerAddress, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | KafkaError]:
        """Send a leader one request. Raises Unreachable, or KafkaError if the request fails."""
        view = self._cluster.metadata.view
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for topic_partition, timestamp in timestamps.items():
            partition = ListOffsetsPartition(
                partition_index=topic_partition.partition,
                current_leader_epoch=view.leader_epoch(topic_partition),
                timestamp=timestamp,
            )
            topics.setdefault(topic_partition.topic, []).append(partition)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=self._isolation_level,
            topics=[
                ListOffsetsTopic(name=topic, partitions=partitions)
                for topic, partitions in topics.items()
            ],
        )
        response = await self._cluster.call(node, LIST_OFFSETS, request, ListOffsetsResponse)
        outcomes: dict[TopicPartition, OffsetAndTimestamp | KafkaError] = {}
        for answered in response.topics:
            for answer in answered.partitions:
                topic_partition = TopicPartition(answered.name, answer.partition_index)
                if answer.error_code:
                    error = broker_error(answer.error_code, f"offsets of {topic_partition}")
                    outcomes[topic_partition] = error
                else:
                    outcomes[topic_partition] = OffsetAndTimestamp(
                        answer.offset, answer.timestamp, answer.leader_epoch
                    )
        return outcomes


def is_passing(error: BaseException) -> bool:
    """Return whether a retry may succeed."""
    return isinstance(error, Unreachable) or (isinstance(error, KafkaError) and error.retriable)
