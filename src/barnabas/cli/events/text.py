"""Selects and formats events for `barnabas events`. Pure.

2026-11-27T20:15:02.311Z broker 1 isr-shrink orders-3: [Partition orders-3 broker=1] ISR ...
    cause: broker 3 is 523 records behind and last had all records 10012 ms ago
    harmless
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from barnabas.cli.groups.instants import instant_text
from barnabas.events import ROUTINE, Event


class Selection(NamedTuple):
    """Selects the events to show. An option that is left out selects all events.

    The very frequent kinds in `ROUTINE` must be selected by name or by `with_routine`.
    """

    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    brokers: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ()
    since_ms: int = 0
    with_routine: bool = False

    def has(self, broker_id: int, event: Event) -> bool:
        """Return whether to show this event, reported by this broker."""
        return (
            event.at_ms >= self.since_ms
            and (not self.topics or event.topic in self.topics)
            and (not self.groups or event.group in self.groups)
            and (event.kind in self.kinds if self.kinds else self._has_by_default(event))
            # Once a broker has failed, other brokers report what happens to it.
            and (not self.brokers or not {broker_id, event.broker}.isdisjoint(self.brokers))
        )

    def _has_by_default(self, event: Event) -> bool:
        return self.with_routine or event.kind not in ROUTINE


def event_lines(broker_id: int, event: Event) -> Iterator[str]:
    """Yield the lines for an event reported by this broker."""
    about = f" {subject}" if (subject := _subject(event)) else ""
    warning = " WARNING" if event.is_warning else ""
    when = instant_text(event.at_ms)
    yield f"{when} broker {broker_id} {event.kind}{about}{warning}: {event.text}"
    if event.cause:
        yield f"    cause: {event.cause}"
    if event.is_harmless is not None:
        yield "    clients are not affected" if event.is_harmless else "    clients are affected"
    if event.advice:
        yield f"    what to do: {event.advice}"


def event_values(broker_id: int, event: Event) -> dict[str, Any]:
    """Return one event as values for JSON. A field that does not apply is null."""
    return {
        "at": instant_text(event.at_ms),
        "reported_by": broker_id,
        "sequence": event.sequence,
        "kind": event.kind,
        "severity": event.severity,
        "topic": event.topic or None,
        "partition": None if event.partition < 0 else event.partition,
        "group": event.group or None,
        "broker": None if event.broker < 0 else event.broker,
        "text": event.text,
        "cause": event.cause or None,
        "harmless": event.is_harmless,
        "advice": event.advice or None,
    }


def _subject(event: Event) -> str:
    if event.topic:
        return event.topic if event.partition < 0 else f"{event.topic}-{event.partition}"
    return event.group
