"""Limits how fast each address may open connections (KIP-612). The limits are stored in the
metadata tree.

If an address exceeds its rate, the connection is accepted but not read or counted, and it is closed
after the throttle time. This delays that client's next attempt without affecting other clients.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.broker.quotas.measures import Rate, Windows
from barnabas.cluster.config_changes import DEFAULT
from barnabas.named_tuple import NamedTuple

CONNECTION_RATE = "connection_creation_rate"

_MOST_ADDRESSES = 20_000  # the maximum number of addresses measured at the same time
_INACTIVE_MS = 60 * 60 * 1_000


class Excess(NamedTuple):
    """An address's limit, and its rate including the connection that exceeded the limit."""

    limit: float
    rate: float


class _Meter:
    __slots__ = ("excess", "last_used_ms", "rate")

    def __init__(self, windows: Windows) -> None:
        self.rate = Rate(windows)
        self.excess = Excess(0.0, 0.0)
        self.last_used_ms = 0


class IpQuotas:
    """The connection limits by address, and the measured rate of each address that has a limit."""

    __slots__ = ("_limits", "_meters", "_sweep_at_ms", "_windows", "is_active")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._limits: dict[str, float] = {}
        self._meters: dict[str, _Meter] = {}
        self._sweep_at_ms = 0
        self.is_active = False
        """Whether any address has a limit."""

    def set(self, address: str, limit: float | None) -> None:
        """Set the limit of an address or, with DEFAULT, of all addresses that have no limit of
        their own. None removes the limit.
        """
        if limit is None:
            self._limits.pop(address, None)
        else:
            self._limits[address] = limit
        self.is_active = bool(self._limits)
        if not self.is_active:
            self._meters.clear()

    def throttle_ms(self, address: str, now_ms: int) -> int:
        """Count a new connection and return 0, or return the throttle time in milliseconds if the
        connection comes too early.

        A connection that exceeds the limit is not counted, and is closed after the throttle time.
        """
        limit = self._limits.get(address, self._limits.get(DEFAULT))
        # There is no limit for this address and no default.
        if limit is None:
            return 0
        meter = self._meter(address, now_ms)
        meter.rate.record(1, now_ms)
        # As in Kafka, throttle for no longer than one window, because every connection that waits
        # here uses a descriptor.
        throttle_ms = min(meter.rate.throttle_ms(limit, now_ms), self._windows.length_ms)
        if throttle_ms:
            meter.excess = Excess(limit, meter.rate.per_second(now_ms))
            # If rejected attempts were counted, a client that keeps trying would never be served.
            meter.rate.record(-1, now_ms)
        return throttle_ms

    def last_excess(self, address: str) -> Excess:
        """Return the limit and the rate that applied when this address was last throttled."""
        return self._meters[address].excess

    def rates(self, now_ms: int) -> Iterator[tuple[str, float]]:
        """Yield each address that is measured, with its connections per second."""
        return ((address, meter.rate.per_second(now_ms)) for address, meter in self._meters.items())

    def _meter(self, address: str, now_ms: int) -> _Meter:
        if now_ms >= self._sweep_at_ms:
            self._sweep_at_ms = now_ms + _INACTIVE_MS // 4
            for name, meter in list(self._meters.items()):
                if now_ms - meter.last_used_ms >= _INACTIVE_MS:
                    del self._meters[name]
        found = self._meters.get(address)
        if found is None:
            if len(self._meters) >= _MOST_ADDRESSES:
                del self._meters[next(iter(self._meters))]
            found = self._meters[address] = _Meter(self._windows)
        found.last_used_ms = now_ms
        return found
