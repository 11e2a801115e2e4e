"""EventLog: order, limits, and text from outside (IN-1)."""

from __future__ import annotations

import logging
import re

import pytest

from barnabas.events import (
    KEPT_CHARACTERS,
    KEPT_EVENTS,
    KINDS,
    MOST_CHARACTERS,
    Event,
    EventLog,
)
from barnabas.metrics import Registry
from tests.kit.foreign import CHECKOUT

START_MS = 1_000
OPERATIONS = CHECKOUT / "docs" / "operations.md"


def _event_log() -> EventLog:
    return EventLog(lambda: START_MS, Registry())


def test_events_are_numbered_in_their_order() -> None:
    """IN-1: with time and number; those after a number, and no more than asked for."""
    log = _event_log()
    begun = log.last
    for text in "abc":
        log.add(Event("kind", text, "why"))
    assert [each.text for each in log.after(0, 10)] == ["a", "b", "c"]
    assert [each.sequence for each in log.after(0, 10)] == [begun + 1, begun + 2, begun + 3]
    assert [each.text for each in log.after(begun + 1, 1)] == ["b"]
    assert log.after(begun + 3, 10) == []
    assert (log.first, log.last) == (begun + 1, begun + 3)
    assert log.after(0, 1)[0].at_ms == START_MS


def test_a_number_from_before_a_restart_gets_every_event() -> None:
    """IN-1: numbers rise over restarts, unless the clock was set back in between."""
    log = _event_log()
    log.add(Event("kind", "a"))
    assert [each.text for each in log.after(log.last + 1_000_000, 10)] == ["a"]
    later = EventLog(lambda: START_MS + 1, Registry())
    assert later.first > log.last


def test_only_the_last_events_are_kept() -> None:
    """IN-1: the number of events is limited."""
    log = _event_log()
    begun = log.last
    for number in range(KEPT_EVENTS + 10):
        log.add(Event("kind", str(number)))
    assert len(log.after(0, 2 * KEPT_EVENTS)) == KEPT_EVENTS
    assert log.after(0, 1)[0].text == "10"
    assert log.first == begun + 11
    assert [each.text for each in log.after(begun + 12, 1)] == ["12"]


def test_the_size_of_all_events_is_limited() -> None:
    """IN-1: long lines push out more of the older events, and each line is cut."""
    log = _event_log()
    for _ in range(KEPT_EVENTS // 2):
        log.add(Event("kind", "x" * 10_000, "y" * 10_000))
    kept = log.after(0, KEPT_EVENTS)
    assert sum(len(each.text) + len(each.cause) for each in kept) <= KEPT_CHARACTERS
    assert len(kept) == KEPT_CHARACTERS // (2 * MOST_CHARACTERS)
    assert kept[-1].sequence == log.last


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2J", "\u202e", "\ud800", "\0" * 5_000])
def test_names_from_outside_stay_on_their_line(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """IN-1: a hostile name can neither end a line nor control a terminal."""
    log = _event_log()
    with caplog.at_level(logging.INFO):
        log.add(Event("kind", f"group {name}", f"{name} joined"), logging.getLogger("t"))
    (event,) = log.after(0, 1)
    assert event.text.isprintable()
    assert event.cause.isprintable()
    assert len(event.text) <= MOST_CHARACTERS
    assert [(each.levelname, each.message) for each in caplog.records] == [("INFO", event.text)]


def test_in_1_routine_events_have_a_share_of_each_minute(caplog: pytest.LogCaptureFixture) -> None:
    """IN-1: the work on many partitions does not push everything else out of the log."""
    now_ms = 600_000
    metrics = Registry()
    log = EventLog(lambda: now_ms, metrics)
    with caplog.at_level(logging.INFO):
        for number in range(250):
            log.add_routine(Event("retention", f"r{number}"), logging.getLogger("t"))
    log.add_routine(Event("compaction", "c"), logging.getLogger("t"))
    assert [each.text for each in log.after(0, 1_000)] == [*(f"r{n}" for n in range(100)), "c"]
    assert [each.message for each in caplog.records][:250] == [f"r{n}" for n in range(250)]
    now_ms += 60_000
    log.add_routine(Event("retention", "next"), logging.getLogger("t"))
    assert [each.text for each in log.after(0, 1_000)][101:] == [
        "150 more events in an earlier minute; see the broker's log",
        "next",
    ]
    (read,) = metrics
    counts = {each.labels[0][1]: each.value for each in read()[0].samples}  # type: ignore[index]
    assert counts == {"retention": 252, "compaction": 1}


def test_events_are_counted_by_kind() -> None:
    """IN-1: events that are no longer kept count too."""
    metrics = Registry()
    log = EventLog(lambda: START_MS, metrics)
    for kind in ("a", "b", "a"):
        log.add(Event(kind, "text"))
    (read,) = metrics
    (family,) = read()
    assert family.name == "barnabas_events_total"
    assert {each.labels: each.value for each in family.samples} == {
        (("kind", "a"),): 2,
        (("kind", "b"),): 1,
    }


def test_in_2_the_page_for_operators_lists_each_kind() -> None:
    """IN-2: the type of `Event.kind` names all of them."""
    rows = re.findall(r"^\| (`[^|]*`) \| the ", OPERATIONS.read_text("utf-8"), re.MULTILINE)
    listed = {kind for row in rows for kind in re.findall("`([a-z-]+)`", row)}
    assert set(KINDS) <= listed
