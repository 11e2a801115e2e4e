"""Connections from a simulated controller to the other brokers, over the world's network.

They offer what the real channels use (`controller.peer_connection`). A connection is made
immediately and without a handshake, because all brokers have the same versions; the first request
shows whether the peer exists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.client.errors import ConnectionLost
from barnabas.cluster.image import BrokerImage
from barnabas.controller.broker_versions import Versions
from barnabas.protocol.api import APIS, Api
from barnabas.protocol.message import Message
from simulation.network import Connection
from simulation.wire import ApiRequest

if TYPE_CHECKING:
    from simulation.sim_broker import SimBroker

CONTROLLER = "controller"


class SimChannel:
    """A connection, until it breaks or is closed."""

    __slots__ = ("_connection", "_peer", "_timeout_ms", "is_open")

    def __init__(self, connection: Connection, peer: BrokerImage, timeout_ms: int) -> None:
        self._connection = connection
        self._peer = peer
        self._timeout_ms = timeout_ms
        self.is_open = True

    @property
    def versions(self) -> Versions:
        return {key: (api.min_version, api.max_version) for key, api in APIS.items()}

    def version(self, api: Api, at_most: int | None = None) -> int:
        return api.max_version if at_most is None else min(at_most, api.max_version)

    async def send(self, api: Api, message: Message, version: int) -> Message:
        request = ApiRequest(api, message, version)
        answer: Message | None = await self._connection.call(request, self._timeout_ms)
        if answer is None:
            self.is_open = False
            raise ConnectionLost(f"broker {self._peer.broker_id} has not answered")
        return answer

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._connection.close()


class SimPeers:
    """The connections of one life of a broker; a closed connection is used again."""

    __slots__ = ("_broker", "_connections")

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker
        self._connections: dict[tuple[int, str], Connection] = {}

    async def connect(self, broker: BrokerImage, purpose: str, timeout_ms: int) -> SimChannel:
        own, key = self._broker, (broker.broker_id, purpose)
        if key not in self._connections:
            self._connections[key] = own.cluster.network.connect(
                own.broker_id,
                own.life,
                broker.broker_id,
                may_be_late=purpose != CONTROLLER or own.cluster.machines.has_late_control,
            )
        return SimChannel(self._connections[key], broker, timeout_ms)


class SimLinks:
    """Occasional requests to other brokers, as a broker's `PeerLinks` makes them."""

    __slots__ = ("_broker",)

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker

    async def ask(
        self,
        broker_id: int,
        api: Api,
        request: Message | Callable[[int], Message],
        timeout_ms: int,
        at_most: int,
    ) -> Message:
        """Return a broker's answer, like `PeerLinks`. Raises ConnectionLost."""
        broker = self._broker.image.brokers.get(broker_id)
        if broker is None:
            raise ConnectionLost(f"broker {broker_id} is not registered at the moment")
        channel = await self._broker.peers.connect(broker, "broker", timeout_ms)
        version = channel.version(api, at_most)
        message = request(version) if callable(request) else request
        return await channel.send(api, message, version)
