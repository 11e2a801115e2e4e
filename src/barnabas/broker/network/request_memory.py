"""Limits the memory of requests being received, and of large requests until they are decoded.

The limit is `queued.max.request.bytes`, or an eighth of the machine's memory if that is not set. A
request that fits into its connection's buffer is not counted. Requests between brokers have their
own share of memory, so that clients cannot stop replication by using up the memory.

A connection reserves memory only for bytes that its client has already sent, so merely announcing a
large request costs nothing. A client that stops in the middle of a request would keep its memory
reserved. Therefore, the client's connection is closed if other requests are waiting for memory and
the client makes too little progress within `barnabas.request.stalled.ms`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.authorization import BETWEEN_BROKERS
from barnabas.net.connection import Connection
from barnabas.net.memory import MemoryPool
from barnabas.net.reservation import Preferred
from barnabas.protocol.api import APIS, FETCH

if TYPE_CHECKING:
    from barnabas.broker.network.complaints import Complaints
    from barnabas.clock import Clock
    from barnabas.config import BrokerConfig

LEAST_BYTES: Final = 128 * 1024 * 1024
SHARE: Final = 8
"""The machine's memory is divided by this number to get the default limit."""
LEAST_PROGRESS_BYTES: Final = 256 * 1024
"""A request is stalled if fewer bytes than this arrive within the stall time."""

_UNLIMITED: Final = -1
_STALLED: Final = "barnabas.request.stalled.ms"
_LOOKS: Final = 4  # checks per stall time
_BROKERS_SHARE: Final = 4  # the brokers' extra share is the limit divided by this
_BROKERS_KEYS: Final = frozenset(
    key for key, api in APIS.items() if api is FETCH or api.stem in BETWEEN_BROKERS
)


def limit_bytes(config: BrokerConfig, machine_bytes: int) -> int:
    """Return the limit for all requests in bytes.

    A negative number means that there is no limit.
    """
    if config.is_set("queued.max.request.bytes"):
        given = config.int("queued.max.request.bytes")
        return given if given > 0 else _UNLIMITED  # as in Kafka, 0 or less means no limit
    return max(machine_bytes // SHARE, LEAST_BYTES)


class RequestMemory:
    """The memory for requests on all listeners of a broker."""

    __slots__ = ("_clock", "_complaints", "_preferred", "_seen", "_stalled_ms", "_timer", "pool")

    def __init__(
        self, config: BrokerConfig, machine_bytes: int, clock: Clock, complaints: Complaints
    ) -> None:
        limit = limit_bytes(config, machine_bytes)
        self.pool = MemoryPool(limit)
        of_brokers = MemoryPool(limit if limit < 0 else max(1, limit // _BROKERS_SHARE))
        self._preferred = Preferred(_BROKERS_KEYS, of_brokers)
        self._clock = clock
        self._complaints = complaints
        self._stalled_ms = config.int(_STALLED)
        # (bytes received of its request, time of the last progress)
        self._seen: dict[Connection, tuple[int, int]] = {}
        self._timer: asyncio.TimerHandle | None = None
        for pool in self._pools:
            pool.when_short = self._watch

    @property
    def _pools(self) -> tuple[MemoryPool, MemoryPool]:
        return self.pool, self._preferred.memory

    def serve(self, connection: Connection) -> None:
        """Let the requests on this connection use the brokers' share, because it comes from a
        broker.
        """
        connection.reservation.preferred = self._preferred

    def close(self) -> None:
        """Stop closing connections."""
        if self._timer is not None:
            self._timer.cancel()

    def _watch(self) -> None:
        """Start watching the connections that hold memory.

        The watch ends when memory is no longer short.
        """
        if self._timer is None:
            self._look()

    def _look(self) -> None:
        self._timer = None
        now_ms = self._clock.monotonic_ms()
        seen, self._seen = self._seen, {}
        # A slow client does no harm while no request is waiting for memory.
        short = [pool for pool in self._pools if pool.is_short]
        for pool in short:
            for connection in pool.holders:
                assert isinstance(connection, Connection)
                got, since_ms = seen.get(connection, (-LEAST_PROGRESS_BYTES, now_ms))
                held = connection.held_bytes
                # This broker has paused reading, so the client cannot make any progress.
                is_ours = connection.is_held_up or connection.reservation.is_kept
                if is_ours or not got <= held < got + LEAST_PROGRESS_BYTES:
                    got, since_ms = held, now_ms
                self._seen[connection] = got, since_ms
                if now_ms - since_ms >= self._stalled_ms:
                    self._close(connection, held)
        if short:
            wait_s = max(self._stalled_ms, 1) / _LOOKS / 1000
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._look)

    def _close(self, connection: Connection, held_bytes: int) -> None:
        self._complaints.report(
            connection.peer_address,
            "connection closed",
            f"a request stalled for {self._stalled_ms} ms after {held_bytes} bytes while other "
            f"requests were waiting for its memory ({_STALLED}, queued.max.request.bytes)",
        )
        connection.abort()
