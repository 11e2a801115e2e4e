"""WriteTxnMarkers (key 27): end transactions in partitions that this broker leads (KIP-98).

Sent by coordinators on other brokers, and by admin clients to abort what hangs (KIP-664).
"""

from __future__ import annotations

import asyncio

from barnabas.broker.authorization import CLUSTER_NAME, Operation, ResourceType
from barnabas.broker.channel import Later, Outcome, Staged
from barnabas.broker.context import Context
from barnabas.broker.markers import Ending, Placed, append_marker
from barnabas.errors import (
    ClusterAuthorizationFailed,
    KafkaError,
    KafkaStorageError,
    RequestTimedOut,
)
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.types import TopicPartition


def handle(context: Context, request: WriteTxnMarkersRequest) -> Outcome:
    return _Ended(context, request)


class _Ended(Staged):
    """One request: the markers that are in the logs, and what will be answered."""

    __slots__ = ("_context", "_placed", "_response")

    def __init__(self, context: Context, request: WriteTxnMarkersRequest) -> None:
        self._context = context
        self._placed: list[tuple[Placed, WritableTxnMarkerPartitionResult]] = []
        is_allowed = context.allowed(CLUSTER_NAME) or context.allowed_to(
            Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME
        )
        self._response = WriteTxnMarkersResponse()
        for marker in request.markers:
            ending = Ending(
                marker.producer_id,
                marker.producer_epoch,
                marker.transaction_result,
                marker.coordinator_epoch,
            )
            topics = []
            for topic in marker.topics:
                results = [
                    self._append(TopicPartition(topic.name, partition), ending)
                    if is_allowed
                    else _failed(partition, ClusterAuthorizationFailed())
                    for partition in topic.partition_indexes
                ]
                topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=results))
            self._response.markers.append(
                WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics)
            )

    def _append(
        self, topic_partition: TopicPartition, ending: Ending
    ) -> WritableTxnMarkerPartitionResult:
        try:
            placed = append_marker(self._context.node, topic_partition, ending)
        except KafkaError as error:
            return _failed(topic_partition.partition, error)
        result = WritableTxnMarkerPartitionResult(partition_index=topic_partition.partition)
        self._placed.append((placed, result))
        return result

    def answer(self) -> WriteTxnMarkersResponse | Later:
        waiting = []
        for placed, result in self._placed:
            if placed.replica.log.is_failed:
                result.error_code = KafkaStorageError.code
            elif placed.is_committed:
                placed.tell(self._context.node)
            else:
                waiting.append((placed, result))
        return self._wait(waiting) if waiting else self._response

    async def _wait(
        self, waiting: list[tuple[Placed, WritableTxnMarkerPartitionResult]]
    ) -> WriteTxnMarkersResponse:
        """The markers count when the whole ISR has them."""
        node = self._context.node
        timeout_s = node.config.int("request.timeout.ms") / 1000
        deadline = asyncio.get_running_loop().time() + timeout_s
        for placed, result in waiting:
            try:
                async with asyncio.timeout_at(deadline):
                    await placed.replica.wait_for(placed.end_offset)
                placed.tell(node)
            except TimeoutError:
                result.error_code = RequestTimedOut.code
            except KafkaError as error:
                result.error_code = error.code
        return self._response


def _failed(partition: int, error: KafkaError) -> WritableTxnMarkerPartitionResult:
    return WritableTxnMarkerPartitionResult(partition_index=partition, error_code=error.code)
