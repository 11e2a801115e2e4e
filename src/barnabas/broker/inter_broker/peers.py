"""Opens connections to the other brokers in the cluster.

A peer is reached through its inter-broker listener. This is the listener named in
`inter.broker.listener.name` or, if that is not set, the listener named after the protocol in
`security.inter.broker.protocol`. Controllers use the listener in `control.plane.listener.name` if
it is set. Every caller has its own persistent connection, because responses arrive in order and a
long poll must not delay other requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.listener_names import (
    control_plane_listener,
    inter_broker_listener,
    security_protocols,
)
from barnabas.client.errors import ConnectionLost
from barnabas.security.protocol import SecurityProtocol

if TYPE_CHECKING:
    from barnabas.broker.configs.current_config import CurrentConfig
    from barnabas.client.channel import Channel
    from barnabas.client.security.config import SecurityConfig
    from barnabas.clock import Clock, Random
    from barnabas.cluster.image import BrokerImage, Endpoint
    from barnabas.net.memory import MemoryPool


CONTROLLER = "controller"
"""The purpose of the connections that a controller opens."""


class Peers:
    """Opens connections. The caller must close them."""

    __slots__ = ("_clock", "_config", "_random")

    def __init__(self, config: CurrentConfig, clock: Clock, random: Random) -> None:
        self._config = config
        self._clock = clock
        self._random = random

    async def connect(
        self,
        broker: BrokerImage,
        purpose: str,
        timeout_ms: int,
        memory: MemoryPool | None = None,
    ) -> Channel:
        """Open a connection and return it. `timeout_ms` is the maximum time that a response may
        take.

        `purpose` becomes part of the client id, which the peer logs. If `memory` is given, it
        provides the receive buffers. Raises ConnectionLost or NoAnswer.
        """
        # Imported here so that a standalone broker never loads them.
        from barnabas.client.channel import BrokerAddress, Channel, Seams, dial_tcp
        from barnabas.client.config import ClientConfig

        listener = self._listener(purpose)
        endpoint = _endpoint(broker, listener)
        config = ClientConfig(
            client_id=f"broker-{self._config.int('broker.id')}-{purpose}",
            request_timeout_ms=timeout_ms,
            security=self._security(listener),
        )
        address = BrokerAddress(broker.broker_id, endpoint.host, endpoint.port)
        channel = Channel(address, config, Seams(self._clock, self._random, dial_tcp), memory)
        await channel.open()
        return channel

    def _listener(self, purpose: str) -> str:
        config = self._config.value
        control = control_plane_listener(config) if purpose == CONTROLLER else ""
        return control or inter_broker_listener(config)[0]

    def _security(self, listener: str) -> SecurityConfig:
        """Return the security options for a connection to this listener on another broker."""
        config = self._config.value
        from barnabas.client.security.config import SecurityConfig

        protocol = security_protocols(config)[listener]
        if protocol is SecurityProtocol.PLAINTEXT:
            return SecurityConfig()
        # Imported here so that brokers which use neither SASL nor TLS between them never load it.
        from barnabas.broker.security.own_login import own_login

        return own_login(config, listener, protocol)


def _endpoint(broker: BrokerImage, listener: str) -> Endpoint:
    for endpoint in broker.endpoints:
        if endpoint.listener == listener:
            return endpoint
    raise ConnectionLost(
        f"broker {broker.broker_id} does not advertise {listener}, the inter-broker listener; it "
        f"advertises {', '.join(each.listener for each in broker.endpoints)}"
    )
