"""Markers for partitions that other brokers lead: WriteTxnMarkers, one request at a time each.

What comes while a request is under way goes together with the next one, so many small transactions
cost few requests. The answers go back to the sender of each marker, partition by partition; a
broker that does not answer has refused all of them, and their sender sends them again.
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
    from barnabas.broker.coordination.marker_append import Ending
    from barnabas.broker.inter_broker.peer_links import PeerLinks

_log = logging.getLogger(__name__)

_VERSION = 1
_MARKERS_AT_ONCE = 500

Answered = Callable[[Mapping[TopicPartition, KafkaError | None]], None]


class _Waiting(NamedTuple):
    ending: Ending
    partitions: Sequence[TopicPartition]
    answered: Answered


class MarkerChannels:
    """One queue for each broker that was ever sent a marker."""

    __slots__ = ("_config", "_links", "_queues", "_tasks")

    def __init__(self, config: CurrentConfig, links: PeerLinks) -> None:
        self._config = config
        self._links = links
        self._queues: dict[int, list[_Waiting]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def send(
        self,
        broker_id: int,
        ending: Ending,
        partitions: Sequence[TopicPartition],
        answered: Answered,
    ) -> None:
        """Send the marker there; `answered` gets an error or None for each partition."""
        queue = self._queues.setdefault(broker_id, [])
        queue.append(_Waiting(ending, partitions, answered))
        if broker_id not in self._tasks:
            work = self._work(broker_id, queue)
            self._tasks[broker_id] = asyncio.get_running_loop().create_task(work)

    def close(self) -> None:
        """The broker stops: the next coordinators send all markers again."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        self._queues.clear()

    async def _work(self, broker_id: int, queue: list[_Waiting]) -> None:
        try:
            while queue:
                batch = queue[:_MARKERS_AT_ONCE]
                del queue[:_MARKERS_AT_ONCE]
                codes = await self._ask(broker_id, batch)
                for waiting, errors in zip(batch, codes, strict=True):
                    waiting.answered(errors)
        finally:
            self._tasks.pop(broker_id, None)

    async def _ask(
        self, broker_id: int, batch: Sequence[_Waiting]
    ) -> list[dict[TopicPartition, KafkaError | None]]:
        request = WriteTxnMarkersRequest(markers=[_marker(waiting) for waiting in batch])
        timeout_ms = self._config.int("request.timeout.ms")
        try:
            answer = await self._links.ask(
                broker_id, WRITE_TXN_MARKERS, request, timeout_ms, _VERSION
            )
        except (Unreachable, BarnabasError) as error:
            _log.info("markers for broker %d: %s", broker_id, error)
            refused = CoordinatorNotAvailable(str(error))
            return [dict.fromkeys(waiting.partitions, refused) for waiting in batch]
        markers = cast(WriteTxnMarkersResponse, answer).markers
        silent = CoordinatorNotAvailable("the answer lacks this partition")
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


def _marker(waiting: _Waiting) -> WritableTxnMarker:
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
