"""Faults on request: what stands between a router and the handlers while a test wants failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.errors import BarnabasError
from barnabas.protocol.codec import Message


class ConnectionCut(BarnabasError):
    """A connection is closed on purpose, so its log line is no warning."""


class RequestFaults(Protocol):
    """Decides what happens to each request; a router without any calls its handlers."""

    def handle(
        self, context: Context, request: Message, handler: Callable[[Context, Any], Outcome]
    ) -> Outcome:
        """Stage one of a request: what the handler returns, or something else.

        ConnectionCut, raised here or by what is awaited later, closes the connection.
        """
        ...
