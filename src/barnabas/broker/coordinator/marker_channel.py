"""Sends markers to the brokers that lead their partitions, with only one WriteTxnMarkers in flight
to each broker.

Markers that arrive while a request is in flight are sent in the next request, so that many small
transactions need few requests. A transaction with a very large number of partitions is split,
because a request must neither exceed the size that a broker accepts nor block its event loop. The
sender of each marker receives the response for each partition. If a broker does not respond, all
markers sent to it fail and are sent again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from barnabas.client.errors import Unreachable
from barnabas.errors import (
    BarnabasError,
    CoordinatorNotAvailable,
    KafkaError,
    error_for_code,
)
from barnabas.protocol.api import WRITE_TXN_MARKERS
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.types import TopicPartition, by_topic

if TYPE_CHECKING:
    from barnabas.broker.configs.current_config import CurrentConfig
    from barnabas.broker.coordinator.marker_append import Ending
    from barnabas.broker.inter_broker.peer_links import PeerLinks

_log = logging.getLogger(__name__)

_VERSION = 1
_REQUEST_BYTES = 64 * 1024  # the approximate total size of the markers in a request
_PARTITIONS_AT_ONCE = 2_000
_MARKER_BYTES, _TOPIC_BYTES, _PARTITION_BYTES = 20, 8, 4  # without the topic name

Answered = Callable[[Mapping[TopicPartition, KafkaError | None]], None]


class WaitingMarker(NamedTuple):
    """A marker for some partitions, and the callback that receives the responses for them."""

    ending: Ending
    partitions: Sequence[TopicPartition]
    answered: Answered
    size_bytes: int
    """The approximate size of this marker in a request."""


class MarkerChannels:
    """Holds the queues of markers, one queue for each broker."""

    __slots__ = ("_config", "_links", "_queues", "_tasks")

    def __init__(self, config: CurrentConfig, links: PeerLinks) -> None:
        self._config = config
        self._links = links
        self._queues: dict[int, list[WaitingMarker]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def send(
        self,
        broker_id: int,
        ending: Ending,
        partitions: Sequence[TopicPartition],
        answered: Answered,
    ) -> None:
        """Send the marker to a broker.

        `answered` receives an error, or None, for each partition.
        """
        queue = self._queues.setdefault(broker_id, [])
        for some, size_bytes in split(partitions):
            queue.append(WaitingMarker(ending, some, answered, size_bytes))
        if broker_id not in self._tasks:
            work = self._work(broker_id, queue)
            self._tasks[broker_id] = asyncio.get_running_loop().create_task(work)

    def close(self) -> None:
        """Stop, because the broker is stopping.

        The next coordinators will send all markers again.
        """
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        self._queues.clear()

    async def _work(self, broker_id: int, queue: list[WaitingMarker]) -> None:
        try:
            while queue:
                count = fitting(queue)
                batch = queue[:count]
                del queue[:count]
                codes = await self._ask(broker_id, batch)
                for waiting, errors in zip(batch, codes, strict=True):
                    waiting.answered(errors)
        finally:
            self._tasks.pop(broker_id, None)

    async def _ask(
        self, broker_id: int, batch: Sequence[WaitingMarker]
    ) -> list[dict[TopicPartition, KafkaError | None]]:
        request = request_of(batch)
        timeout_ms = self._config.int("request.timeout.ms")
        try:
            answer = await self._links.ask(
                broker_id, WRITE_TXN_MARKERS, request, timeout_ms, _VERSION
            )
        except (Unreachable, BarnabasError) as error:
            _log.info("cannot send transaction markers to broker %d: %s", broker_id, error)
            refused = CoordinatorNotAvailable(str(error))
            return [dict.fromkeys(waiting.partitions, refused) for waiting in batch]
        markers = cast(WriteTxnMarkersResponse, answer).markers
        silent = CoordinatorNotAvailable("the response lacks this partition")
        found: list[dict[TopicPartition, KafkaError | None]] = []
        for at, waiting in enumerate(batch):
            errors: dict[TopicPartition, KafkaError | None] = dict.fromkeys(
                waiting.partitions, silent
            )
            for topic in markers[at].topics if at < len(markers) else ():
                for each in topic.partitions:
                    name = TopicPartition(topic.name, each.partition_index)
                    errors[name] = error_for_code(each.error_code)() if each.error_code else None
            found.append(errors)
        return found


def split(
    partitions: Sequence[TopicPartition],
) -> list[tuple[Sequence[TopicPartition], int]]:
    """Split the partitions into parts that fit into one request each, and return each part with its
    size.
    """
    parts: list[tuple[Sequence[TopicPartition], int]] = []
    part: list[TopicPartition] = []
    topics: set[str] = set()
    size_bytes = _MARKER_BYTES
    for topic_partition in partitions:
        name = topic_partition.topic
        more = _PARTITION_BYTES
        if name not in topics:
            more += _TOPIC_BYTES + len(name)
        if part and (size_bytes + more > _REQUEST_BYTES or len(part) == _PARTITIONS_AT_ONCE):
            parts.append((part, size_bytes))
            part, topics = [], set()
            size_bytes = _MARKER_BYTES
            more = _PARTITION_BYTES + _TOPIC_BYTES + len(name)
        part.append(topic_partition)
        topics.add(name)
        size_bytes += more
    return [*parts, (part, size_bytes)]


def fitting(queue: Sequence[WaitingMarker]) -> int:
    """Return how many of the next markers fit into one request. The result is at least 1."""
    size_bytes = partitions = 0
    for count, waiting in enumerate(queue):
        size_bytes += waiting.size_bytes
        partitions += len(waiting.partitions)
        if count and (size_bytes > _REQUEST_BYTES or partitions > _PARTITIONS_AT_ONCE):
            return count
    return len(queue)


def request_of(markers: Sequence[WaitingMarker]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(markers=[_marker(waiting) for waiting in markers])


def _marker(waiting: WaitingMarker) -> WritableTxnMarker:
    ending = waiting.ending
    return WritableTxnMarker(
        producer_id=ending.producer_id,
        producer_epoch=ending.producer_epoch,
        transaction_result=ending.is_commit,
        coordinator_epoch=ending.coordinator_epoch,
        topics=[
            WritableTxnMarkerTopic(name=name, partition_indexes=numbers)
            for name, numbers in by_topic(waiting.partitions).items()
        ],
    )
