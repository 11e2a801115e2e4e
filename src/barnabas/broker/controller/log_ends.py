"""Asks replicas for their log end offsets, which a controller may need in order to elect a leader.

The query is a Fetch request from a debugging consumer (replica id -2), which followers answer as
well. Its offset is beyond the end of any log, and its epoch is the latest leader epoch. The
diverging epoch in the response contains the last batch's epoch and the log end offset.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from barnabas.controller.controller import LogEnd
from barnabas.counted import counted
from barnabas.errors import NONE, BarnabasError, CorruptData
from barnabas.protocol.api import FETCH
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.types import TopicPartition, by_topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.controller.peer_connection import Peers
    from barnabas.cluster.image import BrokerImage, ClusterImage

_log = logging.getLogger(__name__)

_VERSION = 12  # the first with diverging epochs, the last with topic names
_ANY_REPLICA = -2
_BEYOND_ALL = 2**62
_PARTITIONS_AT_ONCE = 4000
_BACKOFF_S = 0.1
_MAX_BACKOFF_S = 2.0

LogEnds = Mapping[TopicPartition, Mapping[int, LogEnd]]


class LogEndQuery:
    """Queries log ends until they are all known. A term runs only one query at a time."""

    __slots__ = ("_answered", "_peers", "_task", "_timeout_ms", "_unknown")

    def __init__(
        self,
        peers: Peers,
        timeout_ms: int,
        unknown: Callable[[], tuple[ClusterImage, frozenset[TopicPartition]]],
        answered: Callable[[LogEnds], None],
    ) -> None:
        """`unknown` returns the image and the partitions whose log ends are not known yet."""
        self._peers = peers
        self._timeout_ms = timeout_ms
        self._unknown = unknown
        self._answered = answered
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def is_over(self) -> bool:
        return self._task.done()

    def close(self) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        backoff_s = _BACKOFF_S
        while True:
            image, unknown = self._unknown()
            if not unknown:
                return
            _log.warning(
                "electing no leader for %s, such as %s, until the log end offset of every "
                "replica is known",
                counted(len(unknown), "partition"),
                min(unknown),
            )
            for broker in image.brokers.values():
                epochs = {
                    name: partition.leader_epoch
                    for name in sorted(unknown)
                    for partition in [image.topics[name.topic].partitions[name.partition]]
                    if broker.broker_id in partition.replicas
                }
                if epochs:
                    await self._ask(broker, epochs)
            await asyncio.sleep(backoff_s)  # responses are processed during the pause
            backoff_s = min(backoff_s * 2, _MAX_BACKOFF_S)

    async def _ask(self, broker: BrokerImage, epochs: Mapping[TopicPartition, int]) -> None:
        try:
            connection = await self._peers.connect(broker, "log-ends", self._timeout_ms)
            try:
                connection.version(FETCH, _VERSION)
                names = list(epochs)
                for first in range(0, len(names), _PARTITIONS_AT_ONCE):
                    some = names[first : first + _PARTITIONS_AT_ONCE]
                    answer = await connection.send(FETCH, _request(some, epochs), _VERSION)
                    self._take(broker, cast(FetchResponse, answer))
            finally:
                connection.close()
        except BarnabasError as error:
            _log.info("broker %d returned no log end offsets: %s", broker.broker_id, error)

    def _take(self, broker: BrokerImage, answer: FetchResponse) -> None:
        ends = {}
        for topic in answer.responses:
            for each in topic.partitions:
                name = TopicPartition(topic.topic, each.partition_index)
                diverging = each.diverging_epoch
                # The broker may host the partition in a different leader epoch, or may not host it
                # yet, so ask again later.
                if each.error_code != NONE:
                    _log.info(
                        "broker %d returned no log end offset for %s: error %d",
                        broker.broker_id,
                        name,
                        each.error_code,
                    )
                elif diverging.end_offset < 0:
                    raise CorruptData(
                        f"broker {broker.broker_id} returned no log end offset for {name}"
                    )
                else:
                    end = LogEnd(diverging.epoch, diverging.end_offset, broker.epoch)
                    ends[name] = {broker.broker_id: end}
        if ends:
            self._answered(ends)


def _request(names: list[TopicPartition], epochs: Mapping[TopicPartition, int]) -> FetchRequest:
    numbers = by_topic(names)
    return FetchRequest(
        replica_id=_ANY_REPLICA,
        max_bytes=0,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=number,
                        # A replica that is in an earlier leader epoch may still be appending to its
                        # log.
                        current_leader_epoch=epochs[TopicPartition(topic, number)],
                        fetch_offset=_BEYOND_ALL,
                        last_fetched_epoch=epochs[TopicPartition(topic, number)],
                        partition_max_bytes=0,
                    )
                    for number in numbers[topic]
                ],
            )
            for topic in numbers
        ],
    )
