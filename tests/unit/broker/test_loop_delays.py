"""Delays of the event loop: how long, how often, and how much CPU time was used (IN-1)."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable

from barnabas.broker.event_limit import MINUTE_MS
from barnabas.broker.loop_delays import EVERY_MS, LoopDelays
from barnabas.events import Event, EventLog
from barnabas.metrics import Registry
from tests.kit.set_clock import SetClock

LIMIT_MS = 100
BLOCKED_S = 0.8
CAUSE = re.compile(
    r"in the last (\d+) ms, the event loop's thread used (\d+) ms of CPU time, and the whole "
    r"process (\d+) ms"
)


class Watched:
    """A loop that a test delays."""

    def __init__(self, limit_ms: int = LIMIT_MS) -> None:
        self.clock = SetClock()
        self.log = EventLog(lambda: 0, Registry())
        self.delays = LoopDelays(self.log, self.clock, limit_ms)

    @property
    def events(self) -> list[Event]:
        return self.log.after(0, 100)

    async def delay(self, block: Callable[[], None]) -> None:
        """Block the loop for a while, and let the timer notice."""
        self.delays.start()
        block()
        # The timer is due before this one.
        await asyncio.sleep(2 * EVERY_MS / 1_000)
        self.delays.stop()


def compute() -> None:
    until = time.thread_time() + BLOCKED_S
    while time.thread_time() < until:
        pass


def wait() -> None:
    time.sleep(BLOCKED_S)


def test_in_1_a_loop_that_computes_has_used_cpu_time() -> None:
    """IN-1: the event says how much; what was running is not known, and not guessed."""
    watched = Watched()
    asyncio.run(watched.delay(compute))
    event = watched.events[0]
    assert event.kind == "event-loop-delayed"
    late = re.match(r"The event loop was delayed by (\d+) ms ", event.text)
    cause = CAUSE.fullmatch(event.cause)
    assert late is not None and cause is not None
    passed, thread, process = map(int, cause.groups())
    assert int(late[1]) == passed - EVERY_MS >= LIMIT_MS
    assert BLOCKED_S * 1_000 - 1 <= thread <= passed
    assert process >= thread - 1


def test_in_1_a_loop_that_waits_has_not() -> None:
    """IN-1: the advice names what cannot be told apart."""
    watched = Watched()
    asyncio.run(watched.delay(wait))
    event = watched.events[0]
    assert "the process hardly ran" in event.advice
    cause = CAUSE.fullmatch(event.cause)
    assert cause is not None and int(cause[3]) * 10 < int(cause[1])


def test_in_1_delays_have_one_event_a_minute() -> None:
    """IN-1: the next one says how many there were; a loop that is in time has none."""
    watched = Watched()
    asyncio.run(watched.delay(lambda: None))
    before = len(watched.events)  # a busy machine delays any loop
    asyncio.run(watched.delay(wait))
    asyncio.run(watched.delay(wait))
    assert len(watched.events) == max(before, 1)
    watched.clock.at_ms += MINUTE_MS
    asyncio.run(watched.delay(wait))
    assert re.search("; [1-9] more delays? since the last event$", watched.events[-1].text)


def test_in_1_a_limit_of_zero_reports_nothing() -> None:
    """IN-1: whoever does not want the events has no timer either."""
    watched = Watched(0)
    asyncio.run(watched.delay(wait))
    assert watched.events == []
