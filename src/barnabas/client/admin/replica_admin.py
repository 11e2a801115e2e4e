"""The ends of the replicas of partitions, asked of each broker that has one: a part of `Admin`.

A Fetch as a debugging consumer (replica id -2), which followers answer, too, from an offset that no
log has, in an epoch that no log has seen: the answer has the end of the log, and no records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.client.admin import admin_arguments
from barnabas.client.channel import BrokerAddress
from barnabas.client.cluster import Cluster
from barnabas.client.errors import Unreachable
from barnabas.protocol.api import FETCH
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.types import TopicPartition, by_topic

_VERSION = 12  # the first with diverging epochs, the last that names topics
_ANY_REPLICA = -2
_BEYOND_ALL = 2**62
_AFTER_ALL = 2**31 - 1


class ReplicaEnd(NamedTuple):
    """The end of one broker's replica."""

    end_offset: int
    epoch: int  # of its last batch; -1: it has none
    high_watermark: int  # as far as this broker knows: a follower learns of it later


class ReplicaAdmin:
    """Methods of `Admin`."""

    _cluster: Cluster

    async def replica_ends(
        self, replicas: Mapping[TopicPartition, Sequence[int]]
    ) -> dict[TopicPartition, dict[int, ReplicaEnd]]:
        """The ends of partitions' replicas on these brokers, by partition and broker.

        A broker that does not answer within `request.timeout.ms`, or does not have the replica, is
        left out. Brokers of this project answer; Kafka's only if a replica is in a known epoch.

            ends = await admin.replica_ends({TopicPartition("test", 0): [1, 2, 3]})
        """
        replicas = admin_arguments.brokers_by_partition(replicas)
        by_broker: dict[int, list[TopicPartition]] = {}
        for name, brokers in replicas.items():
            for broker_id in brokers:
                by_broker.setdefault(broker_id, []).append(name)
        nodes = self._cluster.metadata.view.nodes
        if not by_broker.keys() <= nodes.keys():
            self._cluster.metadata.request_refresh()  # it may be back the next time
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
