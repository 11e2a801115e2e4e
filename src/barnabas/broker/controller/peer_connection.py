"""Defines the interfaces of the controller's connections to other brokers.

The real connections are created by `broker.inter_broker.peers`.
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
"""Called with the id of the broker that responded, the request, and the error code of each
partition.
"""
VersionsKnown = Callable[[BrokerImage, Versions], None]
"""Called with a registered broker and its response to ApiVersions."""
Deposed = Callable[[Exception], None]
"""Called with the error that ends the term because a broker has seen a later controller epoch."""


class PeerConnection(Protocol):
    """A connection to one broker."""

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent over this connection."""
        ...

    @property
    def versions(self) -> Versions:
        """The peer's response to ApiVersions."""
        ...

    def version(self, api: Api, at_most: int | None = None) -> int:
        """Return the highest version that both sides support, but at most `at_most`. Raises
        UnsupportedVersion.
        """
        ...

    def send(self, api: Api, message: Message, version: int) -> Awaitable[Message]:
        """Send a request, and return its response.

        Raises ConnectionLost, NoAnswer or CorruptData.
        """
        ...

    def close(self) -> None:
        """Stop sending."""
        ...


class Peers(Protocol):
    """Opens connections to other brokers."""

    async def connect(self, broker: BrokerImage, purpose: str, timeout_ms: int) -> PeerConnection:
        """Connect to a broker. `timeout_ms` is the longest wait for a response. Raises
        ConnectionLost or NoAnswer.
        """
        ...
