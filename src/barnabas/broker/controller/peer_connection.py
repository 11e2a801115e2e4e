"""Connections to other brokers, as far as the controller uses them.

`broker.inter_broker.peers` makes the real ones.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from barnabas.cluster.image import BrokerImage
from barnabas.protocol.api import Api
from barnabas.protocol.message import Message


class PeerConnection(Protocol):
    """To one broker."""

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
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
