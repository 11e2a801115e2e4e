"""Events that clients cause: one per minute and kind, within limits (IN-1)."""

from __future__ import annotations

from barnabas.broker.event_limit import MINUTE_MS, EventLimit
from tests.kit.set_clock import SetClock


class Limited:
    def __init__(self) -> None:
        self.clock = SetClock()
        self.reported: list[int] = []
        self.limit = EventLimit(self.clock, self.reported.append, per_source=3, total=5)


def test_in_1_a_kind_has_one_event_a_minute() -> None:
    """IN-1: the next event says how many there were since the last one."""
    limited = Limited()
    assert [limited.limit.count("kind", "a") for _ in range(4)] == [0, None, None, None]
    limited.clock.at_ms += MINUTE_MS
    assert limited.limit.count("kind", "a") == 3
    assert limited.reported == []


def test_in_1_one_source_and_all_of_them_have_a_limit() -> None:
    """IN-1: the next minute begins with the number of occurrences without an event."""
    limited = Limited()
    events = [limited.limit.count(number, "a") for number in range(10)]
    assert events.count(0) == 3
    events = [limited.limit.count(("other", number), number) for number in range(10)]
    assert events.count(0) == 2
    limited.clock.at_ms += MINUTE_MS
    assert limited.limit.count("kind", "a") == 0
    assert limited.reported == [7 + 8]


def test_in_1_a_kind_that_does_not_occur_again_is_forgotten() -> None:
    """IN-1: what happened after its last event is reported nevertheless."""
    limited = Limited()
    for _ in range(4):
        limited.limit.count("kind", "a")
    limited.clock.at_ms += 2 * MINUTE_MS
    limited.limit.count("another", "a")
    assert limited.reported == [3]
    assert limited.limit.count("kind", "a") == 0
