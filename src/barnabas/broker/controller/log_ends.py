"""Asks replicas where their logs end, for a controller that can elect nobody before it knows that.

A Fetch as a debugging consumer (replica id -2), which followers answer, too: from an offset that no
log has, with the epoch that the controller knows to be the latest. The answer says where the
replica's log leaves it: the epoch of its last batch, and its end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from barnabas.controller.controller import LogEnd
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

    from barnabas.broker.inter_broker.peers import Peers
    from barnabas.cluster.image import BrokerImage, ClusterImage

_log = logging.getLogger(__name__)

_VERSION = 12  # the first with diverging epochs, the last that names topics
_ANY_REPLICA = -2
_BEYOND_ALL = 2**62
_PARTITIONS_AT_ONCE = 4000
_BACKOFF_S = 0.1
_MAX_BACKOFF_S = 2.0

Said = Mapping[TopicPartition, Mapping[int, LogEnd]]


class EndsInquiry:
    """Asks as long as there is something to ask; one at a time in a tenure."""

    __slots__ = ("_heard", "_peers", "_task", "_timeout_ms", "_wanted")

    def __init__(
        self,
        peers: Peers,
        timeout_ms: int,
        wanted: Callable[[], tuple[ClusterImage, frozenset[TopicPartition]]],
        heard: Callable[[Said], None],
    ) -> None:
        """`wanted`: the cluster, and the partitions whose ends are to be asked at the moment;
        `heard` is told what has been answered."""
        self._peers = peers
        self._timeout_ms = timeout_ms
        self._wanted = wanted
        self._heard = heard
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def is_over(self) -> bool:
        return self._task.done()

    def close(self) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        backoff_s = _BACKOFF_S
        while True:
            image, wanted = self._wanted()
            if not wanted:
                return
            _log.warning(
                "%d partitions wait until every replica has said where its log ends, such as %s",
                len(wanted),
                min(wanted),
            )
            for broker in image.brokers.values():
                epochs = {
                    name: partition.leader_epoch
                    for name in sorted(wanted)
                    for partition in [image.topics[name.topic].partitions[name.partition]]
                    if broker.broker_id in partition.replicas
                }
                if epochs:
                    await self._ask(broker, epochs)
            await asyncio.sleep(backoff_s)  # meanwhile what was heard is decided on
            backoff_s = min(backoff_s * 2, _MAX_BACKOFF_S)

    async def _ask(self, broker: BrokerImage, epochs: Mapping[TopicPartition, int]) -> None:
        try:
            channel = await self._peers.connect(broker, "log-ends", self._timeout_ms)
            try:
                channel.version(FETCH, _VERSION)
                names = list(epochs)
                for first in range(0, len(names), _PARTITIONS_AT_ONCE):
                    some = names[first : first + _PARTITIONS_AT_ONCE]
                    answer = await channel.send(FETCH, _request(some, epochs), _VERSION)
                    self._hear(broker, cast(FetchResponse, answer))
            finally:
                channel.close()
        except BarnabasError as error:
            _log.info("broker %d does not say where its logs end: %s", broker.broker_id, error)

    def _hear(self, broker: BrokerImage, answer: FetchResponse) -> None:
        said = {}
        for topic in answer.responses:
            for each in topic.partitions:
                name = TopicPartition(topic.topic, each.partition_index)
                diverging = each.diverging_epoch
                if each.error_code != NONE:
                    _log.info(
                        "broker %d does not say where %s ends: error %d",
                        broker.broker_id,
                        name,
                        each.error_code,
                    )
                elif diverging.end_offset < 0:
                    raise CorruptData(f"broker {broker.broker_id} has no end of {name}")
                else:
                    end = LogEnd(diverging.epoch, diverging.end_offset, broker.epoch)
                    said[name] = {broker.broker_id: end}
        if said:
            self._heard(said)


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
                        # Who has not heard of this epoch yet may still be adding to its log.
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
