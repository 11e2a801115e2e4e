"""Connections to other brokers, as the controller uses them, and how answers are passed on.

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
"""Gets the broker that answered, its request, and an error code for each of its partitions."""
VersionsKnown = Callable[[BrokerImage, Versions], None]
"""Gets a broker, in its current registration, and its answer to ApiVersions."""
Deposed = Callable[[Exception], None]
"""Gets the error that makes continuing pointless: a broker knows a later controller epoch."""


class PeerConnection(Protocol):
    """A connection to one broker."""

    @property
    def is_open(self) -> bool:
        """True while requests can be sent."""
        ...

    @property
    def versions(self) -> Versions:
        """The peer's answer to ApiVersions."""
        ...

    def version(self, api: Api, at_most: int | None = None) -> int:
        """Return the highest common version, up to `at_most`. Raises UnsupportedVersion."""
        ...

    def send(self, api: Api, message: Message, version: int) -> Awaitable[Message]:
        """Return the response. Raises ConnectionLost, NoAnswer or CorruptData."""
        ...

    def close(self) -> None:
        """Stop sending."""
        ...


class Peers(Protocol):
    """Connects to brokers."""

    async def connect(self, broker: BrokerImage, purpose: str, timeout_ms: int) -> PeerConnection:
        """`timeout_ms` is how long a response may take. Raises ConnectionLost or NoAnswer."""
        ...
