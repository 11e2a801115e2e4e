"""Injects faults between a router and its handlers for tests that need failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.errors import BarnabasError
from barnabas.protocol.codec import Message


class ConnectionCut(BarnabasError):
    """Raised to close a connection on purpose, so its log line is not a warning."""


class RequestFaults(Protocol):
    """Decides what happens to each request; a router without faults calls its handlers directly."""

    def handle(
        self, context: Context, request: Message, handler: Callable[[Context, Any], Outcome]
    ) -> Outcome:
        """Run stage one of a request; return the handler's outcome or something else.

        ConnectionCut, raised here or by the awaited outcome, closes the connection.
        """
        ...
