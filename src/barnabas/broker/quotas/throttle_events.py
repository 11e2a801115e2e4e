"""Adds an event when a quota begins to throttle clients, and another event when the throttling has
ended (IN-1).

Clients that share a quota are treated as one entity. An entity is considered throttled until no
request has been throttled for a whole quota window (`quota.window.num` times
`quota.window.size.seconds`). A client that stays at its limit therefore causes only two events,
however many requests it sends. The number of entities with events is limited, but a counter
includes every throttled request. Requests that are not throttled add no work here.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.broker.quotas.client_quotas import FETCH, MUTATION, PRODUCE, REQUEST
from barnabas.broker.quotas.entity import decode_name
from barnabas.counted import counted
from barnabas.events import Event
from barnabas.metrics import Family, Registry, Sample, counter
from barnabas.printable import printable_within

if TYPE_CHECKING:
    from barnabas.broker.quotas.entity import Entity
    from barnabas.broker.quotas.measures import Windows
    from barnabas.clock import Clock
    from barnabas.events import EventLog

_log = logging.getLogger(__name__)

MOST_ENTITIES: Final = 200
"""The largest number of entities that can be reported as throttled at the same time."""
EVENTS: Final = 200
"""The largest number of events per minute that report the beginning of throttling."""

_MINUTE_MS = 60_000
_LONGEST_NAME = 249
_UNITS = {
    PRODUCE: " bytes/s",
    FETCH: " bytes/s",
    REQUEST: "% of one core",
    MUTATION: " partitions/s",
}
_ADVICE = "send less, or raise the quota (`barnabas configs alter`)"


class Meter(Protocol):
    """The parts of a meter that are used for events."""

    limit: float

    def per_second(self, now_ms: int) -> float: ...


class _Throttled:
    """An entity that is being throttled."""

    __slots__ = ("began_ms", "limit", "longest_ms", "times", "until_ms")

    def __init__(self, now_ms: int, limit: float) -> None:
        self.began_ms = self.until_ms = now_ms
        self.limit = limit
        self.longest_ms = 0
        self.times = 0


class ThrottleEvents:
    """Tracks which entities are being throttled on one broker."""

    __slots__ = (
        "_began_at_ms",
        "_clock",
        "_counts",
        "_events",
        "_left_out",
        "_now",
        "_reported",
        "_timer",
        "_window_ms",
    )

    def __init__(self, events: EventLog, clock: Clock, windows: Windows, metrics: Registry) -> None:
        self._events = events
        self._clock = clock
        self._window_ms = windows.kept * windows.length_ms
        self._now: dict[tuple[str, Entity], _Throttled] = {}
        self._timer: asyncio.TimerHandle | None = None  # None if no entity is throttled
        self._began_at_ms = -_MINUTE_MS
        self._reported = 0  # since then
        self._left_out = 0  # throttled requests since then whose entities had no event
        self._counts: Counter[str] = Counter()
        metrics.declare(self._families)

    def add(self, kind: str, entity: Entity, meter: Meter, throttle_ms: int) -> None:
        """Count a throttled request, and add an event if it is its entity's first."""
        self._counts[kind] += 1
        now_ms = self._clock.monotonic_ms()
        key = kind, entity
        one = self._now.get(key)
        if one is None:
            if not self._may_report(now_ms):
                self._left_out += 1
                return
            one = self._now[key] = _Throttled(now_ms, meter.limit)
            self._events.add(_beginning(kind, entity, meter, throttle_ms, now_ms), _log)
            if self._timer is None:
                self._start_timer()
        one.times += 1
        one.longest_ms = max(one.longest_ms, throttle_ms)
        one.until_ms = max(one.until_ms, now_ms + throttle_ms)

    def on_limits_changed(self, limit_of: Callable[[str, Entity], float | None]) -> None:
        """End the throttling of all entities whose limit has been changed or removed.

        If an entity exceeds its new limit, its throttling begins again.
        """
        now_ms = self._clock.monotonic_ms()
        for (kind, entity), one in list(self._now.items()):
            limit = limit_of(kind, entity)
            if limit != one.limit:
                change = "removed" if limit is None else f"changed to {_amount(kind, limit)}"
                self._end(kind, entity, now_ms, f"its quota was {change}")

    def close(self) -> None:
        """Stop waiting for throttling to end."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _may_report(self, now_ms: int) -> bool:
        if now_ms - self._began_at_ms >= _MINUTE_MS:
            self._began_at_ms, self._reported = now_ms, 0
            left_out, self._left_out = self._left_out, 0
            if left_out:
                text = f"{counted(left_out, 'throttled request')} of other clients without an event"
                cause = "only some of the clients that are throttled at the same time have events"
                self._events.add(Event("throttle", text, cause), _log)
        if self._reported >= EVENTS or len(self._now) >= MOST_ENTITIES:
            return False
        self._reported += 1
        return True

    def _start_timer(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._window_ms / 1_000, self._look)

    def _look(self) -> None:
        """Report entities that have not been throttled for a whole window."""
        self._timer = None
        now_ms = self._clock.monotonic_ms()
        for (kind, entity), one in list(self._now.items()):
            if now_ms - one.until_ms >= self._window_ms:
                cause = f"no request was throttled for {self._window_ms} ms, the quota's window"
                self._end(kind, entity, now_ms, cause)
        if self._now:
            self._start_timer()

    def _end(self, kind: str, entity: Entity, now_ms: int, cause: str) -> None:
        one = self._now.pop((kind, entity))
        text = (
            f"{_name(entity)} is no longer throttled by {kind} after "
            f"{counted(one.times, 'throttled request')} in {now_ms - one.began_ms} ms, the longest "
            f"for {one.longest_ms} ms: {cause}"
        )
        self._events.add(Event("throttle", text, cause, is_harmless=True), _log)

    def _families(self) -> Iterable[Family]:
        samples = [Sample(count, (("quota", kind),)) for kind, count in self._counts.items()]
        sentence = "Requests of clients that a quota has throttled, by the quota's key"
        return (counter("barnabas_throttled_requests_total", sentence, samples),)


def _beginning(kind: str, entity: Entity, meter: Meter, throttle_ms: int, now_ms: int) -> Event:
    measured = _amount(kind, meter.per_second(now_ms))
    cause = f"{kind} is {_amount(kind, meter.limit)}, and the measured rate is {measured}"
    return Event(
        "throttle",
        f"{_name(entity)} is throttled for {throttle_ms} ms: {cause}",
        cause,
        is_harmless=False,
        advice=_ADVICE,
    )


def _amount(kind: str, value: float) -> str:
    return f"{value:.10g}{_UNITS[kind]}" if value == int(value) else f"{value:.2f}{_UNITS[kind]}"


def _name(entity: Entity) -> str:
    """Return a name such as `user alice, client-id web`, sanitised and truncated."""
    parts = (("user", entity.user), ("client-id", entity.client_id))
    return ", ".join(f"{part} {_short(name)}" for part, name in parts if name)


def _short(encoded: str) -> str:
    return printable_within(decode_name(encoded) or "<default>", _LONGEST_NAME)
