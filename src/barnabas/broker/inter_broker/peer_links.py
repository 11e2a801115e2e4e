"""Sends requests to other brokers. Each broker has a persistent connection, which is reopened if it
is lost.

These links are used for markers, verification and ISR changes, which are occasional requests whose
order does not matter. A connection can have several requests in flight. When a broker has
registered again, the connection to its earlier registration is no longer used.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.client.errors import ConnectionLost
from barnabas.shielded import shielded

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.cluster_view import ClusterView
    from barnabas.broker.inter_broker.peers import Peers
    from barnabas.client.channel import Channel
    from barnabas.cluster.image import BrokerImage
    from barnabas.protocol.api import Api
    from barnabas.protocol.message import Message


class PeerLinks:
    """The connections to other brokers that are used for one purpose."""

    __slots__ = ("_links", "_peers", "_purpose", "_view")

    def __init__(self, view: ClusterView, peers: Peers, purpose: str) -> None:
        self._view = view
        self._peers = peers
        self._purpose = purpose
        self._links: dict[int, _Link] = {}

    async def ask(
        self,
        broker_id: int,
        api: Api,
        request: Message | Callable[[int], Message],
        timeout_ms: int,
        at_most: int,
    ) -> Message:
        """Send a request in the highest version that both sides support, up to `at_most`, and
        return the response. If the request depends on that version, pass a function of it.

        Raises UnsupportedVersion, ConnectionLost or NoAnswer. After the last two, the outcome is
        unknown.
        """
        broker = self._view.image.brokers.get(broker_id)
        if broker is None:
            raise ConnectionLost(f"broker {broker_id} is not registered")
        link = self._links.get(broker_id)
        # A new registration indicates a new process, which may have a different address.
        if link is None or link.broker.epoch != broker.epoch:
            if link is not None:
                link.close()
            link = self._links[broker_id] = _Link(broker)
        channel = await link.channel(self._peers, self._purpose, timeout_ms)
        version = channel.version(api, at_most)
        message = request(version) if callable(request) else request
        return await channel.send(api, message, version, timeout_ms=timeout_ms)

    def drop_old(self) -> None:
        """Drop the links to brokers that have failed or have registered again.

        Requests on these links fail with ConnectionLost immediately. A machine that has lost power
        does not close its connections, so the requests would otherwise have to time out.
        """
        brokers = self._view.image.brokers
        for broker_id, link in list(self._links.items()):
            broker = brokers.get(broker_id)
            if broker is None or broker.epoch != link.broker.epoch:
                del self._links[broker_id]
                link.close()

    def close(self) -> None:
        """Fail all requests in progress with ConnectionLost."""
        for link in self._links.values():
            link.close()
        self._links.clear()


class _Link:
    """The connection to a single registration of a broker."""

    __slots__ = ("_channel", "_opening", "broker")

    def __init__(self, broker: BrokerImage) -> None:
        self.broker = broker
        self._channel: Channel | None = None
        self._opening: asyncio.Task[Channel] | None = None

    async def channel(self, peers: Peers, purpose: str, timeout_ms: int) -> Channel:
        if self._channel is not None and self._channel.is_open:
            return self._channel
        opening = self._opening
        # All requests that are waiting for the connection share one attempt to open it.
        if opening is None:
            connecting = peers.connect(self.broker, purpose, timeout_ms)
            opening = self._opening = asyncio.get_running_loop().create_task(connecting)
            opening.add_done_callback(self._on_opened)
        try:
            # If one of the requests is cancelled, the others must not be affected.
            return await shielded(opening)
        except asyncio.CancelledError:
            asker = asyncio.current_task()
            if not opening.cancelled() or (asker is not None and asker.cancelling()):
                raise
            # The attempt to connect was cancelled. This must not cancel the tasks that are waiting
            # for it.
            raise ConnectionLost(f"broker {self.broker.broker_id} has re-registered") from None

    def _on_opened(self, opening: asyncio.Task[Channel]) -> None:
        if self._opening is not opening:  # it was closed in the meantime
            if not opening.cancelled() and opening.exception() is None:
                opening.result().close()
            return
        self._opening = None
        if not opening.cancelled() and opening.exception() is None:
            self._channel = opening.result()

    def close(self) -> None:
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
        if self._channel is not None:
            self._channel.close()
