"""Implements the part of `Admin` that asks brokers about their replicas and log directories.

The log end offset of a replica is read with a Fetch request from a debugging consumer (replica id
-2), which followers answer too. The request asks for an offset beyond any log, in an epoch that no
log has reached, so the response contains the log end offset and no records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.client import arguments
from barnabas.client.admin import admin_arguments
from barnabas.client.admin.admin_calls import AdminCalls
from barnabas.client.channel import BrokerAddress
from barnabas.client.errors import Unreachable, broker_error, check
from barnabas.errors import BrokerNotAvailable, KafkaError, error_for_code
from barnabas.protocol.api import ALTER_REPLICA_LOG_DIRS, DESCRIBE_LOG_DIRS, FETCH
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from barnabas.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.types import TopicPartition, by_topic

_VERSION = 12  # the first version with diverging epochs, and the last with topic names
_ANY_REPLICA = -2
_BEYOND_ALL = 2**62
_AFTER_ALL = 2**31 - 1


class ReplicaEnd(NamedTuple):
    """The log end offset of a replica on one broker."""

    end_offset: int
    epoch: int  # the last batch's epoch; -1: there is no batch
    high_watermark: int  # as this broker knows it; a follower lags behind the leader


class ReplicaSize(NamedTuple):
    """A replica in a log directory, with its size."""

    size_bytes: int
    offset_lag: int  # records behind the high watermark, or the replica being replaced
    is_future: bool  # the replica is being moved to this directory


class LogDirDescription(NamedTuple):
    """A log directory of a broker, with its replicas."""

    path: str
    error: str | None  # why the broker cannot use the directory
    replicas: Mapping[TopicPartition, ReplicaSize]
    total_bytes: int  # size of the volume; -1 if unknown
    usable_bytes: int
    strays: Mapping[str, int] = {}  # size in bytes of each log set aside (`-stray`)


class ReplicaAdmin(AdminCalls):
    """Queries individual brokers about their replicas, and moves replicas between directories."""

    async def describe_log_dirs(self) -> dict[int, tuple[LogDirDescription, ...]]:
        """Return the log directories of each live broker and the replicas in them, by broker id."""
        described = {}
        for broker_id, node in sorted(self._cluster.metadata.view.nodes.items()):

            async def attempt(node: BrokerAddress = node) -> DescribeLogDirsResponse:
                answer = await self._cluster.call(
                    node, DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(), DescribeLogDirsResponse
                )
                check(answer.error_code, "describing log directories")
                return answer

            answer = await self._persist(attempt)
            described[broker_id] = tuple(map(_log_dir, answer.results))
        return described

    async def alter_replica_log_dirs(
        self, broker_id: int, log_dirs: Mapping[TopicPartition, str]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Start moving replicas of a broker to other log directories of the same broker (KIP-113).

        `log_dirs` contains absolute paths, as returned by `describe_log_dirs`, which also shows the
        progress of a move (`is_future`). To cancel a move, pass the replica's current directory.
        Returns an error for each partition, or None if the move has started or there is nothing to
        do. The error is LogDirNotFound, KafkaStorageError (a directory is offline),
        UnknownTopicOrPartition, ReplicaNotAvailable (the broker has no replica of the partition; if
        it gets one later, the replica is created in that directory) or ClusterAuthorizationFailed.
        Raises BrokerNotAvailable if the broker does not exist.

            await admin.alter_replica_log_dirs(1, {TopicPartition("test", 0): "/disk2/kafka"})
        """
        broker_id = arguments.whole_number(broker_id, "broker_id", most=arguments.INT32_MAX)
        by_path: dict[str, list[TopicPartition]] = {}
        for name, path in arguments.by_partition(log_dirs, "log_dirs").items():
            by_path.setdefault(arguments.text(path, "log_dirs"), []).append(name)
        request = AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(
                    path=path,
                    topics=[
                        AlterReplicaLogDirTopic(name=topic, partitions=numbers)
                        for topic, numbers in by_topic(names).items()
                    ],
                )
                for path, names in by_path.items()
            ]
        )

        async def attempt() -> AlterReplicaLogDirsResponse:
            node = self._cluster.metadata.view.nodes.get(broker_id)
            if node is None:
                self._cluster.metadata.request_refresh()  # the broker may exist by the next attempt
                raise BrokerNotAvailable(f"there is no broker {broker_id}")
            return await self._cluster.call(
                node, ALTER_REPLICA_LOG_DIRS, request, AlterReplicaLogDirsResponse
            )

        answer = await self._persist(attempt)
        codes = {
            TopicPartition(topic.topic_name, each.partition_index): each.error_code
            for topic in answer.results
            for each in topic.partitions
        }
        return {
            name: broker_error(code, f"partition {name}") if code else None
            for name, code in codes.items()
        }

    async def replica_ends(
        self, replicas: Mapping[TopicPartition, Sequence[int]]
    ) -> dict[TopicPartition, dict[int, ReplicaEnd]]:
        """Return the log end offsets of the replicas of these partitions, by partition and broker.

        A broker is left out if it does not answer within `request.timeout.ms` or has no replica of
        the partition. A Barnabas broker always reports the log end offset; a Kafka broker does so
        only if the replica has a known epoch.

            ends = await admin.replica_ends({TopicPartition("test", 0): [1, 2, 3]})
        """
        replicas = admin_arguments.brokers_by_partition(replicas)
        by_broker: dict[int, list[TopicPartition]] = {}
        for name, brokers in replicas.items():
            for broker_id in brokers:
                by_broker.setdefault(broker_id, []).append(name)
        nodes = self._cluster.metadata.view.nodes
        if not by_broker.keys() <= nodes.keys():
            self._cluster.metadata.request_refresh()  # the broker may be back by the next attempt
        answers = await asyncio.gather(
            *(
                self._ask_ends(nodes[broker_id], names)
                for broker_id, names in by_broker.items()
                if broker_id in nodes
            )
        )
        found: dict[TopicPartition, dict[int, ReplicaEnd]] = {name: {} for name in replicas}
        for broker_id, ends in answers:
            for name, end in ends.items():
                found[name][broker_id] = end
        return found

    async def _ask_ends(
        self, node: BrokerAddress, names: Sequence[TopicPartition]
    ) -> tuple[int, dict[TopicPartition, ReplicaEnd]]:
        try:
            answer = await self._cluster.call(node, FETCH, _request(names), FetchResponse, _VERSION)
        except Unreachable:
            # Omit the replicas of a broker that is down.
            self._cluster.metadata.request_refresh()
            return node.node_id, {}
        return node.node_id, {
            TopicPartition(topic.topic, each.partition_index): ReplicaEnd(
                each.diverging_epoch.end_offset, each.diverging_epoch.epoch, each.high_watermark
            )
            for topic in answer.responses
            for each in topic.partitions
            if not each.error_code and each.diverging_epoch.end_offset >= 0
        }


def _log_dir(result: DescribeLogDirsResult) -> LogDirDescription:
    error = error_for_code(result.error_code).meaning if result.error_code else None
    return LogDirDescription(
        result.log_dir,
        error,
        {
            TopicPartition(topic.name, partition.partition_index): ReplicaSize(
                partition.partition_size, partition.offset_lag, partition.is_future_key
            )
            for topic in result.topics
            for partition in topic.partitions
        },
        result.total_bytes,
        result.usable_bytes,
        {each.name: each.size for each in result.strays},
    )


def _request(names: Sequence[TopicPartition]) -> FetchRequest:
    return FetchRequest(
        replica_id=_ANY_REPLICA,
        max_bytes=0,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=number,
                        fetch_offset=_BEYOND_ALL,
                        last_fetched_epoch=_AFTER_ALL,
                        partition_max_bytes=0,
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(names).items()
        ],
    )
