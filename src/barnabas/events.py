"""Defines events: decisions of a broker that are visible to clients, each with its cause.

The part of a broker that carries out a decision adds the event and logs its line in one call:

    replicas.events.add(Event("isr-shrink", line, cause, topic="orders", partition=3), _log)

The event log keeps the latest events in memory, so that tools can read them (decision 38), and
counts events by kind. Events are not part of the state, so they are lost when the broker stops.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Literal, get_args

from barnabas.counted import counted
from barnabas.metrics import Family, Registry, Sample, counter
from barnabas.named_tuple import NamedTuple
from barnabas.printable import printable_within

if TYPE_CHECKING:
    import logging

KEPT_EVENTS: Final = 4_096
KEPT_CHARACTERS: Final = 1_000_000
MOST_CHARACTERS: Final = 2_000
"""The maximum length of a line or of a cause."""

ROUTINE: Final = ("compaction", "follower", "leader", "retention")
"""The kinds with one event per replica. There are so many of these events that tools show them only
on request.
"""
Kind = Literal[
    "access-denied",
    "authentication-failed",
    "broker-failed",
    "broker-registered",
    "compaction",
    "connection-refused",
    "controller-elected",
    "directory-lost",
    "election",
    "event-loop-delayed",
    "follower",
    "group-generation",
    "isr-expand",
    "isr-shrink",
    "leader",
    "partitions-added",
    "reassignment",
    "retention",
    "topic-created",
    "topic-deleted",
    "throttle",
    "transaction-aborted",
    "truncation",
]
KINDS: Final = get_args(Kind)

_INFO, _WARNING = 20, 30  # the levels of `logging`
_PER_MS = 1_000
_PER_MINUTE = 100
_MINUTE_MS = 60_000
_new = tuple.__new__


class Event(NamedTuple):
    """A decision that is visible to clients. A field that does not apply has its default value.

    `EventLog.add` sets `at_ms` and `sequence`.
    """

    kind: Kind
    text: str
    """The line written to the broker's log."""
    cause: str = ""
    """The cause in a short clause, provided by the machine that made the decision."""
    topic: str = ""
    partition: int = -1
    group: str = ""
    broker: int = -1
    """The broker that the event is about, if any."""
    is_harmless: bool | None = None
    """True if clients are unaffected, or None if this is unknown."""
    advice: str = ""
    """Says what to do about the event, if that is known."""
    is_warning: bool = False
    at_ms: int = 0
    sequence: int = 0
    """A number that is higher than that of every earlier event on this broker, including events
    from before a restart.
    """

    @property
    def severity(self) -> str:
        """The level at which the line is written to the broker's log: INFO or WARNING."""
        return "WARNING" if self.is_warning else "INFO"


class EventLog:
    """Keeps a broker's latest events in order. Their number and size are bounded."""

    __slots__ = ("_characters", "_counts", "_events", "_now_ms", "_shares", "first", "last")

    def __init__(self, now_ms: Callable[[], int], metrics: Registry) -> None:
        """`now_ms` returns the wall-clock time."""
        self._now_ms = now_ms
        self._events: deque[Event] = deque()
        self._characters = 0
        self._counts: dict[str, int] = {}
        self._shares: dict[Kind, _Share] = {}
        # After a restart, a tool may pass a number from before the restart.
        self.last = now_ms() * _PER_MS
        """The sequence number of the last event."""
        self.first = self.last + 1
        """The sequence number of the oldest event that is still kept."""
        metrics.declare(self._families)

    def add(self, event: Event, log: logging.Logger | None = None) -> None:
        """Keep and count an event, and log its line unless it is reported by another line."""
        kind, text, cause, topic, part, group, broker, harmless, advice, warns, _, _ = event
        size = len(text) + len(cause)
        if size > MOST_CHARACTERS or not (text.isprintable() and cause.isprintable()):
            text, cause = _one_line(text), _one_line(cause)
            size = len(text) + len(cause)
        sequence = self.last = self.last + 1
        events, counts = self._events, self._counts
        now_ms = self._now_ms()
        # Keyword arguments would take several times as long.
        # fmt: off
        kept = (
            kind, text, cause, topic, part, group, broker, harmless, advice, warns, now_ms, sequence
        )
        # fmt: on
        events.append(_new(Event, kept))
        counts[kind] = counts.get(kind, 0) + 1
        self._characters += size + len(group) + len(topic) + len(advice)
        if self._characters > KEPT_CHARACTERS or len(events) > KEPT_EVENTS:
            self._drop_oldest()
        if log is not None:
            log.log(_WARNING if warns else _INFO, "%s", text)

    def add_routine(self, event: Event, log: logging.Logger) -> None:
        """Keep an event unless events of its kind have used up their share of the current minute.

        In any case, the line is logged and the event is counted. Work on ten thousand partitions
        therefore does not push out all other events.
        """
        kind, minute = event.kind, self._now_ms() // _MINUTE_MS
        share = self._shares.get(kind)
        if share is None or share.minute != minute:
            if share is not None and share.left_out:
                more = counted(share.left_out, "more event")
                text = f"{more} in an earlier minute; see the broker's log"
                self.add(Event(kind, text, "each kind of routine event has a share of the log"))
            share = self._shares[kind] = _Share(minute)
        if share.count < _PER_MINUTE:
            share.count += 1
            self.add(event, log)
            return
        share.left_out += 1
        self._counts[kind] = self._counts.get(kind, 0) + 1
        log.info("%s", _one_line(event.text))

    def _drop_oldest(self) -> None:
        events = self._events
        while self._characters > KEPT_CHARACTERS or len(events) > KEPT_EVENTS:
            _, text, cause, topic, _, group, _, _, advice, _, _, _ = events.popleft()
            self._characters -= len(text) + len(cause) + len(topic) + len(group) + len(advice)
        self.first = self.last + 1 - len(events)

    def after(self, sequence: int, limit: int) -> list[Event]:
        """Return at most `limit` events after this sequence number, oldest first.

        If this broker has not reached the number yet, the number is from before a restart, when the
        clock was ahead, and all events are returned.
        """
        if sequence > self.last:
            sequence = 0
        skipped = max(0, sequence + 1 - self.first)
        kept = len(self._events)
        return [self._events[place] for place in range(skipped, min(kept, skipped + limit))]

    def _families(self) -> Iterable[Family]:
        samples = [Sample(count, (("kind", kind),)) for kind, count in self._counts.items()]
        return (
            counter("barnabas_events_total", "Decisions that clients can see, by kind", samples),
        )


class _Share:
    """Counts the events of one routine kind within one minute."""

    __slots__ = ("count", "left_out", "minute")

    def __init__(self, minute: int) -> None:
        self.minute = minute
        self.count = 0
        self.left_out = 0
        """The number of events that were logged and counted but not kept."""


def _one_line(text: str) -> str:
    """Escape untrusted names, so that the result is a single safe line of limited length."""
    return printable_within(text, MOST_CHARACTERS)
