"""Connections to the other brokers of the cluster.

A peer is reached by the listener that is meant for brokers: `inter.broker.listener.name`, else the
first one of the protocol `security.inter.broker.protocol`. Each asker has a connection of its own
and keeps it: answers come in order, and a long poll must not hold back a vote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.client.channel import BrokerAddress, Channel, Seams, dial_tcp
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ConnectionLost
from barnabas.client.security.config import SecurityConfig
from barnabas.security.protocol import SecurityProtocol

if TYPE_CHECKING:
    from barnabas.clock import Clock, Random
    from barnabas.cluster.image import BrokerImage, Endpoint
    from barnabas.config import BrokerConfig
    from barnabas.net.memory import MemoryPool


class Peers:
    """Makes connections; the caller closes them."""

    __slots__ = ("_config", "_seams")

    def __init__(self, config: BrokerConfig, clock: Clock, random: Random) -> None:
        self._config = config
        self._seams = Seams(clock, random, dial_tcp)

    async def connect(
        self,
        broker: BrokerImage,
        purpose: str,
        timeout_ms: int,
        memory: MemoryPool | None = None,
    ) -> Channel:
        """A connection on which requests can be sent; `timeout_ms` is how long an answer may take.

        `purpose` goes into its client id, for the peer's logs; `memory` has the buffers into which
        answers are received, if not the connection's own. Raises ConnectionLost, NoAnswer.
        """
        endpoint = self._endpoint(broker)
        if endpoint is None:
            raise ConnectionLost(
                f"broker {broker.broker_id} has no listener for other brokers: it advertises "
                f"{', '.join(each.listener for each in broker.endpoints)}"
            )
        config = ClientConfig(
            client_id=f"broker-{self._config.int('broker.id')}-{purpose}",
            request_timeout_ms=timeout_ms,
            security=self._security(endpoint),
        )
        address = BrokerAddress(broker.broker_id, endpoint.host, endpoint.port)
        channel = Channel(address, config, self._seams, memory)
        await channel.open()
        return channel

    def _security(self, endpoint: Endpoint) -> SecurityConfig:
        """How to connect to a listener. Raises ConfigError."""
        if endpoint.security_protocol == SecurityProtocol.PLAINTEXT.value:
            return SecurityConfig()
        # Only here, so that brokers that do not log in load nothing for it.
        from barnabas.broker.security.own_login import own_login

        return own_login(
            self._config, endpoint.listener, SecurityProtocol(endpoint.security_protocol)
        )

    def _endpoint(self, broker: BrokerImage) -> Endpoint | None:
        name = self._config.str("inter.broker.listener.name")
        protocol = self._config.str("security.inter.broker.protocol")
        for endpoint in broker.endpoints:
            if endpoint.listener == name or (not name and endpoint.security_protocol == protocol):
                return endpoint
        return None
