"""How the controller's requests reach the brokers: its own at once, the others by their channels.

What is for this broker is carried out when `send` returns, in the order in which it was decided.
What is for another one waits in that broker's channel and is told in the same order, or, if it has
gathered for long, as what it comes to; its answer comes later. A broker that has gone, or
registered anew, gets nothing any more of what was decided for its registration before.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.cluster.controller_requests import ControlRequest, LeaderAndIsr, UpdateMetadata
from barnabas.cluster.image import ClusterImage
from barnabas.errors import NONE
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.controller.broker_channel import ControlChannel
    from barnabas.broker.inter_broker.peers import Peers
    from barnabas.controller.controller import Send

_log = logging.getLogger(__name__)

_PARTITIONS_AT_ONCE = 1_000
"""Made or removed between two waits for the disk."""

Codes = Mapping[TopicPartition, int]
Deliver = Callable[[ControlRequest], Awaitable[object]]
Answered = Callable[[int, ControlRequest, Codes], None]
"""Told of the broker that has answered, of what it was asked, and of an error code for each
partition in it."""


def _nobody(broker_id: int, request: ControlRequest, codes: Codes) -> None:
    """Nobody asked to be told."""


def _go_on(error: Exception) -> None:
    """Nobody asked to be told."""


class Deliveries:
    """One controller's ways to the brokers; they last as long as its epoch."""

    __slots__ = (
        "_broker_id",
        "_channels",
        "_deliver",
        "_peers",
        "on_answer",
        "on_deposed",
        "timeout_ms",
    )

    def __init__(self, broker_id: int, deliver: Deliver, peers: Peers | None) -> None:
        """`deliver` hands a request to this broker, which has carried it out when that returns; it
        may raise OSError."""
        self._broker_id = broker_id
        self._deliver = deliver
        self._peers = peers
        self._channels: dict[int, ControlChannel] = {}
        self.timeout_ms = 30_000
        """How long another broker may take for an answer before it is asked anew."""
        self.on_answer: Answered = _nobody
        self.on_deposed: Callable[[Exception], None] = _go_on
        """Told when it makes no sense to go on: a broker knows of a later controller."""

    async def send(self, requests: Sequence[Send], image: ClusterImage) -> None:
        """Have them told; returns when this broker has carried out what is for it.

        `image`: the cluster as it is from now on; only its brokers are spoken to.
        """
        self._reach(image)
        for broker_id, request in requests:
            if broker_id == self._broker_id:
                await self._hand_over(request)
            elif broker_id in self._channels:
                self._channels[broker_id].send(request, image)
            elif self._peers is None:
                _log.error(
                    "broker %d cannot be told of %s: this one was made to be alone",
                    broker_id,
                    type(request).__name__,
                )

    def _reach(self, image: ClusterImage) -> None:
        for broker_id, channel in list(self._channels.items()):
            broker = image.brokers.get(broker_id)
            if broker is None or broker.epoch != channel.broker.epoch:
                channel.close()
                del self._channels[broker_id]
        if self._peers is None or len(image.brokers) < 2:
            return
        from barnabas.broker.controller.broker_channel import (
            ControlChannel,  # one node never needs it
        )

        for broker_id, broker in image.brokers.items():
            if broker_id != self._broker_id and broker_id not in self._channels:
                self._channels[broker_id] = ControlChannel(
                    broker, self._peers, self.timeout_ms, self._answered, self._deposed
                )

    def close(self) -> None:
        """Nothing is told any more."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()

    async def _hand_over(self, request: ControlRequest) -> None:
        for part in _parts(request):
            try:
                codes = await self._deliver(part)
            except OSError as error:
                # A log that cannot be made or removed is that broker's trouble, and its
                # clients learn of it there; the other topics go on.
                _log.error("%s was not carried out: %s", type(part).__name__, error)
                codes = None
            if not isinstance(part, UpdateMetadata):
                self._answered(self._broker_id, part, _codes(part, codes))

    def _answered(self, broker_id: int, request: ControlRequest, codes: Codes) -> None:
        self.on_answer(broker_id, request, codes)

    def _deposed(self, error: Exception) -> None:
        self.on_deposed(error)


def _codes(request: ControlRequest, said: object) -> Codes:
    """What this broker says of each partition; nothing means that all is well."""
    if isinstance(said, Mapping):
        return said
    if isinstance(request, UpdateMetadata):
        return {}
    if isinstance(request, LeaderAndIsr):
        return {state.topic_partition: NONE for state in request.partitions}
    return dict.fromkeys(request.partitions, NONE)


def _parts(request: ControlRequest) -> Iterator[ControlRequest]:
    """The same request in pieces that do not keep the broker from its clients for long."""
    if isinstance(request, UpdateMetadata) or len(request.partitions) <= _PARTITIONS_AT_ONCE:
        yield request
        return
    for first in range(0, len(request.partitions), _PARTITIONS_AT_ONCE):
        some = request.partitions[first : first + _PARTITIONS_AT_ONCE]
        yield request._replace(partitions=some)  # type: ignore[arg-type]
