"""Keeps the latest events from all brokers, without duplicates, and filters them. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from barnabas.client.admin.event_admin import BrokerEvents, by_time
from barnabas.console.shapes import EventRow, Events
from barnabas.events import KINDS, ROUTINE, Event

KEPT: Final = 10_000
_MOST_CHARACTERS: Final = 8_000_000


class EventFilter(NamedTuple):
    """Selects events. An empty field matches all events. `broker` matches the reporter or the
    subject.
    """

    kind: str = ""
    topic: str = ""
    group: str = ""
    broker: int | None = None
    since_ms: int = 0
    with_routine: bool = False

    def has(self, row: EventRow) -> bool:
        """Return whether to show this event. A routine event is shown only if `with_routine` is set
        or its kind is selected.
        """
        return (
            row["at"] >= self.since_ms
            and (row["kind"] == self.kind if self.kind else self._has_by_default(row))
            and (not self.topic or row["topic"] == self.topic)
            and (not self.group or row["group"] == self.group)
            and (self.broker is None or self.broker in (row["reporter"], row["broker"]))
        )

    def _has_by_default(self, row: EventRow) -> bool:
        return self.with_routine or row["kind"] not in ROUTINE


class EventBook:
    """Holds the latest events, in order of arrival."""

    def __init__(self) -> None:
        self._rows: deque[tuple[int, EventRow]] = deque()
        self._characters = 0
        self._last = 0
        self.after: dict[int, int] = {}
        """The positions to pass to the next call of `Admin.events`."""
        self.silent: list[int] = []

    @property
    def last(self) -> int:
        """The number of the newest event. Later events have higher numbers."""
        return self._last

    def add(self, reports: Mapping[int, BrokerEvents]) -> bool:
        """Add the events reported by the brokers, and return whether any of them was new."""
        before = self._last
        for broker_id, event in by_time(reports):
            row = event_row(broker_id, event)
            self._last += 1
            self._rows.append((self._last, row))
            self._characters += _size(row)
        while len(self._rows) > KEPT or self._characters > _MOST_CHARACTERS:
            self._characters -= _size(self._rows.popleft()[1])
        self.after |= {each.broker_id: each.after for each in reports.values()}
        self.silent = sorted(
            each.broker_id for each in reports.values() if each.problem and not each.after
        )
        return self._last > before

    def newer(self, number: int, wanted: EventFilter) -> list[tuple[int, EventRow]]:
        """Return the events after this number together with their own numbers, oldest first."""
        first = bisect_right(self._rows, number, key=lambda one: one[0])
        return [one for one in islice(self._rows, first, None) if wanted.has(one[1])]

    def latest(self, wanted: EventFilter, limit: int) -> list[EventRow]:
        """Return the latest events, with the newest first according to the brokers' clocks."""
        found = [row for _, row in self._rows if wanted.has(row)]
        found.sort(key=lambda row: (row["at"], row["reporter"], row["sequence"]), reverse=True)
        return found[:limit]

    def of_kinds(self, kinds: Collection[str], limit: int) -> list[EventRow]:
        """Return the events of these kinds that arrived last, newest first."""
        return list(islice(self._matching(lambda row: row["kind"] in kinds), limit))

    def find(self, is_wanted: Callable[[EventRow], bool]) -> EventRow | None:
        """Return the latest matching event. Routine events are included."""
        return next(self._matching(is_wanted), None)

    def _matching(self, is_wanted: Callable[[EventRow], bool]) -> Iterator[EventRow]:
        return (row for _, row in reversed(self._rows) if is_wanted(row))

    def shape(self, wanted: EventFilter, limit: int) -> Events:
        """Return the answer of `/api/events`."""
        return Events(events=self.latest(wanted, limit), kinds=list(KINDS), silent=self.silent)


def event_row(broker_id: int, event: Event) -> EventRow:
    """Return the row for an event reported by a broker."""
    return EventRow(
        at=event.at_ms,
        reporter=broker_id,
        sequence=event.sequence,
        kind=event.kind,
        text=event.text,
        cause=event.cause,
        topic=event.topic,
        partition=event.partition,
        group=event.group,
        broker=event.broker,
        harmless=event.is_harmless,
        advice=event.advice,
        severity="WARNING" if event.is_warning else "INFO",
    )


def _size(row: EventRow) -> int:
    texts = (row["text"], row["cause"], row["topic"], row["group"], row["advice"])
    return 500 + sum(map(len, texts))
