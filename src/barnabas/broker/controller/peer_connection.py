"""Connections to other brokers, as far as the controller uses them, and how answers are passed on.

`broker.inter_broker.peers` makes the real ones.
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
"""Gets the broker that has answered, its request, and an error code for each partition of it."""
VersionsKnown = Callable[[BrokerImage, Versions], None]
"""Gets a broker, by its registration, and its answer to ApiVersions."""
Deposed = Callable[[Exception], None]
"""Gets the error that makes it pointless to continue: a broker knows a later controller epoch."""


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
        """The highest version of both sides, up to `at_most`; raises UnsupportedVersion."""
        ...

    def send(self, api: Api, message: Message, version: int) -> Awaitable[Message]:
        """The response; raises ConnectionLost, NoAnswer, CorruptData."""
        ...

    def close(self) -> None:
        """Send nothing more."""
        ...


class Peers(Protocol):
    """Connects to brokers."""

    async def connect(self, broker: BrokerImage, purpose: str, timeout_ms: int) -> PeerConnection:
        """`timeout_ms`: how long a response may take. Raises ConnectionLost, NoAnswer."""
        ...
