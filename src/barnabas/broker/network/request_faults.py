"""Injects faults between a router and its handlers, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.errors import BarnabasError
from barnabas.protocol.codec import Message


class ConnectionCut(BarnabasError):
    """Raised to close a connection on purpose; not logged as a warning."""


class RequestFaults(Protocol):
    """Decides what happens to each request; without faults, a router calls its handlers
    directly.
    """

    def handle(
        self, context: Context, request: Message, handler: Callable[[Context, Any], Outcome]
    ) -> Outcome:
        """Run stage one of a request; return the handler's outcome, or a different one.

        If this method or the awaited outcome raises ConnectionCut, the connection is closed.
        """
        ...
