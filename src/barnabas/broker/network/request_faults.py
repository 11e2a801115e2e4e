"""Injects faults between a router and its handlers, for use in tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.errors import BarnabasError
from barnabas.protocol.codec import Message


class ConnectionCut(BarnabasError):
    """Raised to close a connection on purpose. No warning is logged for it."""


class RequestFaults(Protocol):
    """Decides what happens to each request. Without it, a router calls its handlers directly."""

    def handle(
        self, context: Context, request: Message, handler: Callable[[Context, Any], Outcome]
    ) -> Outcome:
        """Run stage one of a request, and return the handler's outcome or a replacement for it.

        The connection is closed if ConnectionCut is raised, either by this method or when the
        returned outcome is awaited.
        """
        ...
