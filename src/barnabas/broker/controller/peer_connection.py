"""Interfaces for the controller's connections to other brokers.

`broker.inter_broker.peers` creates the real connections.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from barnabas.cluster.controller_requests import ControlRequest
from barnabas.cluster.image import BrokerImage
from barnabas.controller.broker_versions import Versions
from barnabas.protocol.api import Api
from barnabas.protocol.message import Message
from barnabas.types import TopicPartition

Codes = Mapping[TopicPartition, int]
Answered = Callable[[int, ControlRequest, Codes], None]
"""Receives the broker that responded, the request, and an error code for each partition."""
VersionsKnown = Callable[[BrokerImage, Versions], None]
"""Receives a registered broker and its response to ApiVersions."""
Deposed = Callable[[Exception], None]
"""Receives the error that ends the term: a broker has seen a later controller epoch."""


class PeerConnection(Protocol):
    """A connection to one broker."""

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        ...

    @property
    def versions(self) -> Versions:
        """The peer's response to ApiVersions."""
        ...

    def version(self, api: Api, at_most: int | None = None) -> int:
        """Return the highest common version, up to `at_most`. Raises UnsupportedVersion."""
        ...

    def send(self, api: Api, message: Message, version: int) -> Awaitable[Message]:
        """Send a request and return the response. Raises ConnectionLost, NoAnswer or
        CorruptData.
        """
        ...

    def close(self) -> None:
        """Stop sending."""
        ...


class Peers(Protocol):
    """Connects to brokers."""

    async def connect(self, broker: BrokerImage, purpose: str, timeout_ms: int) -> PeerConnection:
        """Connect to a broker; `timeout_ms` limits the wait for each response. Raises
        ConnectionLost or NoAnswer.
        """
        ...
