"""Sends the controller's requests to all brokers.

By the time `send` returns, the requests for this broker have been applied in the order in which
they were decided. A request to another broker is queued in the channel to that broker, which
preserves the order and merges queued requests. The response arrives later. A broker that has left
or registered again never receives requests that were meant for its earlier registration.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.cluster.controller_requests import ControlRequest, LeaderAndIsr, UpdateMetadata
from barnabas.cluster.image import BrokerImage, ClusterImage
from barnabas.errors import NONE

if TYPE_CHECKING:
    from barnabas.broker.controller.broker_channel import BrokerChannel
    from barnabas.broker.controller.peer_connection import Answered, Codes, Deposed, Peers
    from barnabas.controller.broker_versions import Versions
    from barnabas.controller.controller import Send

_log = logging.getLogger(__name__)

_PARTITIONS_AT_ONCE = 1_000
"""The number of partitions that are created or removed between two disk syncs."""

Deliver = Callable[[ControlRequest], Awaitable[object]]
"""Applies a request on this broker and then returns. May raise OSError."""


class BrokerChannels:
    """A controller's channels to the brokers for one controller epoch."""

    __slots__ = (
        "_answered", "_broker_id", "_channels", "_deliver", "_deposed", "_learned", "_peers",
        "_timeout_ms", "versions",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913  (three are its callbacks)
        self,
        broker_id: int,
        deliver: Deliver,
        peers: Peers | None,
        timeout_ms: int,
        answered: Answered,
        deposed: Deposed,
        learned: Callable[[], None],
    ) -> None:
        """A request to another broker is retried if there is no response within `timeout_ms`.

        `learned` is called when the versions that a broker supports have been added to `versions`.
        """
        self._broker_id = broker_id
        self._deliver = deliver
        self._peers = peers
        self._timeout_ms = timeout_ms
        self._answered = answered
        self._deposed = deposed
        self._learned = learned
        self._channels: dict[int, BrokerChannel] = {}
        self.versions: dict[int, tuple[int, Versions]] = {}
        """The ApiVersions responses by broker id, each with the broker epoch that it applies to.

        Like the connections, they are kept when a term ends.
        """

    async def send(self, requests: Sequence[Send], image: ClusterImage) -> None:
        """Send the requests, and wait until the requests for this broker have been applied.

        `image` is the new state of the cluster. Requests are sent only to brokers in the image.
        """
        self._connect_to(image)
        for broker_id, request in requests:
            if broker_id == self._broker_id:
                # Await one request after another, so that committed decisions are in effect on this
                # broker when `send` returns.
                await self._carry_out(request)
            elif broker_id in self._channels:
                self._channels[broker_id].send(request, image)
            elif self._peers is None:
                _log.error(
                    "cannot send %s to broker %d: this broker is not part of a cluster",
                    type(request).__name__,
                    broker_id,
                )

    def _connect_to(self, image: ClusterImage) -> None:
        for broker_id, channel in list(self._channels.items()):
            broker = image.brokers.get(broker_id)
            if broker is None or broker.epoch != channel.broker.epoch:
                channel.close()
                del self._channels[broker_id]
        if self._peers is None or len(image.brokers) < 2:
            return
        from barnabas.broker.controller.broker_channel import (
            BrokerChannel,  # not needed on a standalone broker
        )

        for broker_id, broker in image.brokers.items():
            if broker_id != self._broker_id and broker_id not in self._channels:
                self._channels[broker_id] = BrokerChannel(
                    broker,
                    self._peers,
                    self._timeout_ms,
                    self._answered,
                    self._deposed,
                    self._on_versions,
                )

    def _on_versions(self, broker: BrokerImage, versions: Versions) -> None:
        self.versions[broker.broker_id] = (broker.epoch, versions)
        self._learned()

    def close(self) -> None:
        """Stop sending."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()

    async def _carry_out(self, request: ControlRequest) -> None:
        for part in _parts(request):
            try:
                codes = await self._deliver(part)
            except OSError as error:
                # If a log cannot be created or removed, only its replica fails.
                _log.error("%s failed: %s", type(part).__name__, error)
                # It is then unknown which replicas this broker hosts, as it would be for a remote
                # broker.
                codes = {} if isinstance(part, LeaderAndIsr) else None
            # UpdateMetadata has no error codes per partition.
            if not isinstance(part, UpdateMetadata):
                self._answered(self._broker_id, part, _codes(part, codes))


def _codes(request: ControlRequest, answer: object) -> Codes:
    """Return the error code of each partition on this broker, or None if there was no error."""
    if isinstance(answer, Mapping):
        return answer
    if isinstance(request, UpdateMetadata):
        return {}
    if isinstance(request, LeaderAndIsr):
        return {state.topic_partition: NONE for state in request.partitions}
    return dict.fromkeys(request.partitions, NONE)


def _parts(request: ControlRequest) -> Iterator[ControlRequest]:
    """Split the request into parts that are small enough not to block the event loop for long."""
    if isinstance(request, UpdateMetadata) or len(request.partitions) <= _PARTITIONS_AT_ONCE:
        yield request
        return
    for first in range(0, len(request.partitions), _PARTITIONS_AT_ONCE):
        some = request.partitions[first : first + _PARTITIONS_AT_ONCE]
        yield request._replace(partitions=some)  # type: ignore[arg-type]
