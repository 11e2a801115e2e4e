"""Counts connections and enforces the connection limits (KIP-402, KIP-612).

    max.connections.per.ip (.overrides)    refused: the connection is closed immediately
    max.connections, total or by listener  not accepted until another one closes
    max.connection.creation.rate           not accepted before its time
    connection_creation_rate per address   accepted, then closed late and unread
    RLIMIT_NOFILE                          not accepted while only reserved descriptors are left

This module only counts connections and makes the decisions. The acceptors carry them out, and are
notified when a connection closes.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from barnabas.broker.network.complaints import Complaints
from barnabas.broker.quotas.ip_quotas import CONNECTION_RATE, IpQuotas
from barnabas.broker.quotas.measures import Windows
from barnabas.broker.runtime.descriptors import Descriptors, plenty
from barnabas.clock import Clock
from barnabas.config import BrokerConfig
from barnabas.counted import counted
from barnabas.metrics import Family, Sample, counter, gauge
from barnabas.security.acl_host import java_host

if TYPE_CHECKING:
    from barnabas.broker.network.connection_throttles import ConnectionThrottles
    from barnabas.broker.network.failed_logins import FailedLogin, FailedLogins
    from barnabas.events import EventLog
    from barnabas.net.connection import Address

_log = logging.getLogger(__name__)

UNTIL_ONE_CLOSES = -1
_UNTIL_SOME_ARE_FREE_MS = 1000
_COUNT_EVERY = 256  # connections, or
_COUNT_EVERY_MS = 1000  # counting open descriptors is slow if many are open


class Connections:
    """The connections of a broker, counted by listener and by address."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        events: EventLog,
        descriptors: Callable[[], Descriptors] = plenty,
    ) -> None:
        self._clock = clock
        self._events = events
        self._descriptors = descriptors
        self._count_at_ms = 0
        self._free = 0  # connections to accept before descriptors are counted again
        self._is_short = False  # True once the shortage has been logged
        self._by_listener: Counter[str] = Counter()
        self._opened: Counter[str] = Counter()  # since startup, by listener
        self._failed: Counter[str] = Counter()  # authentications since startup, by listener
        self._failed_logins: FailedLogins | None = None  # None until one fails
        self._throttles: ConnectionThrottles | None = None  # None until a limit is reached
        self._refused: Counter[str] = Counter()  # connections since startup, by limit
        self._by_host: Counter[str] = Counter()
        self._next_at_ms: dict[str, float] = {}  # by listener, "" for all of them
        self._freed: list[Callable[[], None]] = []
        self.complaints = Complaints(_log, clock)
        self.ip_quotas = IpQuotas(
            Windows(config.int("quota.window.num"), 1_000 * config.int("quota.window.size.seconds"))
        )
        self.configure(config)

    def configure(self, config: BrokerConfig) -> None:
        """Apply new limits. Open connections stay open."""
        self._config = config
        self._per_host = config.int(_PER_HOST)
        self._overrides = _overrides(config.str("max.connections.per.ip.overrides"))
        self._wake()

    def __len__(self) -> int:
        return self._by_listener.total()

    def families(self) -> Iterator[Family]:
        """Yield the number of connections of each listener, under the names of Kafka's network
        processors.
        """
        mbean = "kafka_server_socket_server_metrics_"
        failures = {listener: self._failed[listener] for listener in self._opened}
        for kind, name, sentence, counts in (
            (gauge, "connection_count", "Open connections (connection-count)", self._by_listener),
            (counter, "connection_creation_total", "Connections accepted", self._opened),
            (
                counter,
                "failed_authentication_total",
                "Connections whose authentication failed, by SASL or in the TLS handshake",
                failures,
            ),
        ):
            yield kind(
                f"{mbean}{name}",
                sentence,
                [
                    Sample(count, (("listener", listener), ("networkProcessor", "0")))
                    for listener, count in counts.items()
                ],
            )
        samples = [Sample(count, (("limit", limit),)) for limit, count in self._refused.items()]
        sentence = "Connections that were closed at a limit of their address, by limit"
        yield counter("barnabas_refused_connections_total", sentence, samples)

    def add_listener(self, callback: Callable[[], None]) -> None:
        """Register a callback that is called when a connection closes and when the
        limits change.
        """
        self._freed.append(callback)

    def wait_ms(self, listener: str) -> int:
        """Return how long the listener must wait before it accepts the next connection.

        UNTIL_ONE_CLOSES tells the listener to wait for the callback that was passed to
        `add_listener`.
        """
        if len(self) >= self._limit(_MOST):
            return UNTIL_ONE_CLOSES
        # A listener with its own limit leaves connections for the other listeners, in particular
        # for the inter-broker listener (KIP-402).
        if self._by_listener[listener] >= self._limit(_MOST, listener):
            return UNTIL_ONE_CLOSES
        if self._are_descriptors_short():
            return _UNTIL_SOME_ARE_FREE_MS
        now_ms = self._clock.monotonic_ms()
        next_at_ms = max(self._next_at_ms.get(name, 0.0) for name in ("", listener))
        return max(0, int(next_at_ms - now_ms))

    def _are_descriptors_short(self) -> bool:
        """Return whether another connection would use a file descriptor that is reserved
        for files.
        """
        now_ms = self._clock.monotonic_ms()
        if self._free <= 0 or now_ms >= self._count_at_ms:
            self._count_at_ms = now_ms + _COUNT_EVERY_MS
            found = self._descriptors()
            if found.are_short != self._is_short:
                self._is_short = found.are_short
                _report(found)
            # Use only half of the free descriptors, because logs also have to open files.
            self._free = min((found.left - found.reserve) // 2 + 1, _COUNT_EVERY)
        return self._is_short

    def refusal(self, host: str) -> str | None:
        """Return the reason why this address may not open another connection, or None if it may."""
        # An override may write an address in any notation, so normalized forms are compared.
        limit = self._overrides.get(java_host(host), self._per_host)
        if self._by_host[host] < limit:
            return None
        return f"{host} already has {limit} connections, the limit set by {_PER_HOST}"

    def throttle_ms(self, host: str) -> int:
        """Return how long to hold a throttled connection before it is closed, or 0 to accept it at
        once.
        """
        if not self.ip_quotas.is_active:
            return 0
        return self.ip_quotas.throttle_ms(host, self._clock.monotonic_ms())

    def on_opened(self, listener: str, host: str) -> None:
        self._by_listener[listener] += 1
        self._opened[listener] += 1
        self._by_host[host] += 1
        self._free -= 1
        now_ms = self._clock.monotonic_ms()
        for name in ("", listener):
            rate = self._limit(_MOST_PER_SECOND, name)
            if rate < _UNLIMITED:
                # Each connection uses up a fraction of a second. After an idle second, a burst of
                # as many connections as fit into one second is allowed.
                earliest = max(self._next_at_ms.get(name, 0.0), now_ms - 1000)
                self._next_at_ms[name] = earliest + 1000 / max(1, rate)

    def on_refused(self, address: Address, reason: str) -> None:
        """Report a connection that was closed for this reason (see `refusal`)."""
        self._refused[_PER_HOST] += 1
        self._events_of_limits().on_refused(address, _PER_HOST, reason)

    def on_throttled(self, host: str, throttle_ms: int) -> None:
        """Report a connection that is held for this time and then closed (see `throttle_ms`)."""
        self._refused[CONNECTION_RATE] += 1
        excess = self.ip_quotas.last_excess(host)
        self._events_of_limits().on_throttled(host, excess, throttle_ms)

    def on_delayed(self, listener: str) -> None:
        """Report that the listener leaves a connection waiting (see `wait_ms`)."""
        if self._is_short:  # an error has been logged
            return
        for name in ("", listener):
            most = self._limit(_MOST, name)
            count = self._by_listener[name] if name else len(self)
            whose = f" of listener {name}" if name else ""
            if count >= most:
                cause = f"{_MOST}{whose} is {most}, and {counted(count, 'connection')} are open"
                self._events_of_limits().on_delayed(listener, _MOST, cause)
                return
        now_ms = self._clock.monotonic_ms()
        for name in ("", listener):
            if self._next_at_ms.get(name, 0.0) > now_ms:
                whose = f" of listener {name}" if name else ""
                most = self._limit(_MOST_PER_SECOND, name)
                cause = f"{_MOST_PER_SECOND}{whose} is {most} connections/s, and more are waiting"
                self._events_of_limits().on_delayed(listener, _MOST_PER_SECOND, cause)
                return

    def _events_of_limits(self) -> ConnectionThrottles:
        if self._throttles is None:
            from barnabas.broker.network.connection_throttles import ConnectionThrottles

            self._throttles = ConnectionThrottles(self._events, self._clock)
        return self._throttles

    def on_login_failed(self, login: FailedLogin) -> None:
        """Count a failed authentication, and add an event if the limits allow it."""
        self._failed[login.listener] += 1
        if self._failed_logins is None:
            from barnabas.broker.network.failed_logins import FailedLogins  # loaded on first use

            self._failed_logins = FailedLogins(self._events, self._clock)
        self._failed_logins.add(login)

    def on_closed(self, listener: str, host: str) -> None:
        self._by_listener[listener] -= 1
        self._by_host[host] -= 1
        # Drop addresses that have no connections, so that the table cannot grow without limit.
        if not self._by_host[host]:
            del self._by_host[host]
        self._wake()

    def _wake(self) -> None:
        for callback in self._freed:
            callback()

    def _limit(self, name: str, listener: str = "") -> int:
        if not listener:
            return self._config.int(name)
        # A listener without its own limit is subject only to the limit for all connections.
        own = self._config.listener_int(listener, name)
        return _UNLIMITED if own is None else own


_UNLIMITED = 2**31 - 1
_PER_HOST = "max.connections.per.ip"
_MOST = "max.connections"
_MOST_PER_SECOND = "max.connection.creation.rate"


def _report(found: Descriptors) -> None:
    if found.are_short:
        _log.error(
            "%d of %d file descriptors are free, and %d are reserved for files: accepting no "
            "connections until more are free. Raise the limit (ulimit -n) or set max.connections",
            found.left,
            found.limit,
            found.reserve,
        )
    else:
        _log.info("accepting connections again: %d file descriptors are free", found.left)


def _overrides(text: str) -> dict[str, int]:
    """Parse the limits for individual addresses: `127.0.0.1:200,::1:50`."""
    pairs = (entry.strip().rpartition(":") for entry in text.split(",") if entry.strip())
    return {java_host(host): int(limit) for host, _, limit in pairs}
