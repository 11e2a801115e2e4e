"""Limits the time and memory of connections whose clients have not yet authenticated.

A client must authenticate within `barnabas.connection.login.deadline.ms` after its connection is
accepted. This includes the TLS handshake, if there is one. Until the client has authenticated, its
connection has only a small buffer. A message that does not fit uses memory that all these
connections share, or waits for such memory. If there are too many of these connections, the oldest
is closed, because legitimate clients authenticate quickly.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from barnabas.net.memory import MemoryPool

if TYPE_CHECKING:
    from barnabas.broker.network.complaints import Complaints
    from barnabas.clock import Clock
    from barnabas.net.connection import Connection

_DEADLINE: Final = "barnabas.connection.login.deadline.ms"

BUFFER_BYTES: Final = 16 * 1024
"""The size of the receive buffer of each connection.

It is large enough for all authentication messages except for some tokens.
"""

MOST: Final = 2_000
MEMORY_BYTES: Final = 32 * 1024 * 1024
"""The limit on the memory that all connections share for longer messages.

The buffers of the connections use at most the same amount of memory in addition.
"""


class UnauthenticatedConnections:
    """The connections of one listener whose clients have not authenticated yet."""

    __slots__ = ("_clock", "_complaints", "_deadline_ms", "_timer", "_waiting", "memory")

    def __init__(self, deadline_ms: int, clock: Clock, complaints: Complaints) -> None:
        self._deadline_ms = deadline_ms
        self._clock = clock
        self._complaints = complaints
        self._waiting: dict[Connection, int] = {}  # deadlines by connection, oldest first
        self._timer: asyncio.TimerHandle | None = None
        self.memory = MemoryPool(MEMORY_BYTES)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, connection: Connection) -> None:
        """Start watching a connection that was accepted."""
        # Close the oldest connection, so that legitimate clients can still connect during a flood
        # of connections.
        if len(self._waiting) >= MOST:
            self._close(
                next(iter(self._waiting)),
                f"{MOST} newer connections are also waiting to authenticate",
            )
        self._waiting[connection] = self._clock.monotonic_ms() + self._deadline_ms
        self._set_timer()

    def remove(self, connection: Connection) -> None:
        """Forget a connection that has authenticated or was closed."""
        self._waiting.pop(connection, None)

    def close(self) -> None:
        """Stop closing connections."""
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self) -> None:
        if self._timer is None and self._waiting:
            left_ms = next(iter(self._waiting.values())) - self._clock.monotonic_ms()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(left_ms, 0) / 1000, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now_ms = self._clock.monotonic_ms()
        late = [each for each, until_ms in self._waiting.items() if until_ms <= now_ms]
        for connection in late:
            self._close(
                connection, f"no authentication within {self._deadline_ms} ms ({_DEADLINE})"
            )
        self._set_timer()

    def _close(self, connection: Connection, reason: str) -> None:
        del self._waiting[connection]
        self._complaints.report(
            connection.peer_address, "connection closed", reason, level=logging.INFO
        )
        connection.abort()
