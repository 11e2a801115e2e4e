"""Adds an event when connections hit the limit of an address, a listener or the broker (IN-1).

Rejected clients retry at once, so at most one event per minute is added for each address and limit.
The event says how often the limit was hit since the previous event. The total number of events is
limited too (`broker.event_limit`). An accepted connection adds no work here.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.event_limit import EventLimit
from barnabas.counted import counted
from barnabas.events import Event

if TYPE_CHECKING:
    from barnabas.broker.quotas.ip_quotas import Excess
    from barnabas.clock import Clock
    from barnabas.events import EventLog, Kind
    from barnabas.net.connection import Address

_log = logging.getLogger(__name__)

EVENTS_PER_SOURCE: Final = 10
EVENTS: Final = 50
"""The maximum number of events per minute, across all addresses and listeners."""

_TOO_MANY = "close connections that are not used, or raise {}"
_TOO_FAST = "open connections less often and reuse them, or raise {}"


class ConnectionThrottles:
    """Adds the events of one broker within these limits."""

    __slots__ = ("_events", "_limit")

    def __init__(self, events: EventLog, clock: Clock) -> None:
        self._events = events
        self._limit = EventLimit(
            clock, self._report_others, per_source=EVENTS_PER_SOURCE, total=EVENTS
        )

    def on_refused(self, address: Address, limit: str, cause: str) -> None:
        """Report a connection that was closed at once because its address has too
        many connections.
        """
        host, port = address
        event = Event(
            "connection-refused",
            f"connection refused from {host}:{port}: {cause}",
            cause,
            is_harmless=False,
            advice=_TOO_MANY.format(limit),
        )
        self._add(event, (limit, host))

    def on_throttled(self, host: str, excess: Excess, throttle_ms: int) -> None:
        """Report a connection that will be closed later without being read, because its address
        opens connections too fast.
        """
        limit, rate = excess
        cause = (
            f"connection_creation_rate of the address is {limit:.10g} connections/s, and the "
            f"measured rate is {rate:.2f} connections/s"
        )
        text = f"address {host} is throttled for {throttle_ms} ms: {cause}"
        self._add(_throttle(text, cause, _TOO_FAST, "its quota"), ("rate", host))

    def on_delayed(self, listener: str, limit: str, cause: str) -> None:
        """Report that a listener does not accept the connections that are waiting."""
        text = f"listener {listener} leaves connections waiting: {cause}"
        words = _TOO_FAST if limit == "max.connection.creation.rate" else _TOO_MANY
        self._add(_throttle(text, cause, words, limit), (limit, listener))

    def _add(self, event: Event, about: tuple[str, str]) -> None:
        more = self._limit.count(about, about[1])
        if more is None:
            return
        if more:
            event = event._replace(text=f"{event.text} ({counted(more, 'more time')} before)")
        self._events.add(event, _log)

    def _report_others(self, left_out: int) -> None:
        text = f"connections were kept out {counted(left_out, 'more time')} without an event"
        cause = "at most one event per minute reports the same limit, and only some addresses"
        self._events.add(Event("throttle", text, cause), _log)


def _throttle(text: str, cause: str, words: str, limit: str) -> Event:
    kind: Kind = "throttle"
    return Event(kind, text, cause, is_harmless=False, advice=words.format(limit))
