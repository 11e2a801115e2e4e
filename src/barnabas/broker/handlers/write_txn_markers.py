"""WriteTxnMarkers (key 27): end transactions in the partitions that this broker leads (KIP-98).

The request is sent by coordinators on other brokers, and by admin clients that abort hanging
transactions (KIP-664).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from barnabas.broker.context import Context
from barnabas.broker.coordinator.marker_append import Ending, PlacedMarker
from barnabas.broker.outcome import Later, Outcome, Staged
from barnabas.broker.pieces import Lists, in_pieces
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
from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType
from barnabas.shielded import shielded
from barnabas.types import TopicPartition

_Waiting = tuple[asyncio.Future[None], WritableTxnMarkerPartitionResult]


_LISTS = Lists(("markers", "topics", "partition_indexes"), ("markers", "topics", "partitions"))


def handle(context: Context, request: WriteTxnMarkersRequest) -> Outcome:
    return in_pieces(context, request, _LISTS, _handle)


def _handle(context: Context, request: WriteTxnMarkersRequest) -> Outcome:
    return _Ended(context, request)


class _Ended(Staged):
    """A request in progress, with the markers appended so far and its response."""

    __slots__ = ("_context", "_placed", "_response")

    def __init__(self, context: Context, request: WriteTxnMarkersRequest) -> None:
        self._context = context
        self._placed: list[tuple[PlacedMarker, WritableTxnMarkerPartitionResult]] = []
        # An administrator needs ALTER on the cluster to abort a hanging transaction (KIP-664); a
        # broker has CLUSTER_ACTION. Either permission is sufficient, so a denial of ALTER is not
        # logged.
        is_allowed = context.may(
            Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME
        ) or context.is_allowed(CLUSTER_NAME)
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
                    else _failure(partition, ClusterAuthorizationFailed())
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
            placed = self._context.node.marker_append.append(topic_partition, ending)
        except KafkaError as error:
            return _failure(topic_partition.partition, error)
        result = WritableTxnMarkerPartitionResult(partition_index=topic_partition.partition)
        self._placed.append((placed, result))
        return result

    def answer(self) -> WriteTxnMarkersResponse | Later:
        waiting: list[_Waiting] = []
        for placed, result in self._placed:
            if placed.replica.log.health.is_failed:
                result.error_code = KafkaStorageError.code
            elif placed.is_committed:
                placed.on_committed()
            else:
                waiting.append((placed.when_committed(), result))
        return self._wait(waiting) if waiting else self._response

    async def _wait(self, waiting: list[_Waiting]) -> WriteTxnMarkersResponse:
        """Wait until the markers have reached the whole ISR.

        The markers may belong to many transactions. If the response were not sent before the
        sender's request times out, a single stuck partition would hold up all other partitions
        indefinitely.
        """
        timeout_s = self._context.node.config.int("request.timeout.ms") / 1000
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s / 2):
                for future, _ in waiting:
                    with suppress(KafkaError):
                        await shielded(future)  # the task notifies them even if nothing waits here
        for future, result in waiting:
            error = future.exception() if future.done() else RequestTimedOut()
            if isinstance(error, KafkaError):
                result.error_code = error.code
        return self._response


def _failure(partition: int, error: KafkaError) -> WritableTxnMarkerPartitionResult:
    return WritableTxnMarkerPartitionResult(partition_index=partition, error_code=error.code)
