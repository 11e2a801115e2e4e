"""What it costs a broker to record an event, and to watch for delays of its event loop.

    python -m benchmarks.events [--count N] [--json FILE]

In one process, without a network: CPU time of this thread, which the load of the machine disturbs
less than wall time does. An event has the text, cause and topic of a shrunk ISR. It is recorded
while the log is full, so that each one also drops the oldest, and without its line in the broker's
log, which would otherwise cost several times as much. The timer for delays is measured as the CPU
time of an event loop that does nothing else.
"""

from __future__ import annotations

import asyncio
import statistics
import time

from barnabas.broker.loop_delays import LoopDelays
from barnabas.clock import SystemClock
from barnabas.events import KEPT_EVENTS, Event, EventLog
from barnabas.metrics import Registry
from benchmarks.figures import Figure, parser_of, show

COMMAND = "python -m benchmarks.events"
COUNT, ROUNDS = 100_000, 5
WATCHED_S = 5.0
LIMIT_MS = 100


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    given = parser.parse_args()
    rounds = [microseconds_per_event(given.count) for _ in range(ROUNDS)]
    print("rounds, us:", ", ".join(f"{each:.2f}" for each in rounds))
    figures = [
        Figure("CPU of an event", "us", statistics.median(rounds), 2.0, command=COMMAND),
        Figure("CPU of the delay timer, per second", "us", timer_us_per_s(), command=COMMAND),
    ]
    show("events", figures, given.json)


def microseconds_per_event(count: int) -> float:
    """Return the CPU time of one event in a full log."""
    events = EventLog(SystemClock().wall_ms, Registry())
    _record(events, KEPT_EVENTS)
    began_ns = time.thread_time_ns()
    _record(events, count)
    return (time.thread_time_ns() - began_ns) / count / 1_000


def _record(events: EventLog, count: int) -> None:
    text = "ISR of orders-3 shrank from [1, 2, 3] to [1, 2]"
    cause = "follower 3 has not caught up for 30000 ms (replica.lag.time.max.ms)"
    for _ in range(count):
        events.add(
            Event("isr-shrink", text, cause, topic="orders", partition=3, broker=3, is_warning=True)
        )


def timer_us_per_s() -> float:
    """Return the CPU time that the timer adds to an idle event loop, per second."""

    async def idle(is_watched: bool) -> float:
        clock = SystemClock()
        events = EventLog(clock.wall_ms, Registry())
        delays = LoopDelays(events, clock, LIMIT_MS if is_watched else 0)
        delays.start()
        began_ns = time.thread_time_ns()
        await asyncio.sleep(WATCHED_S)
        spent_ns = time.thread_time_ns() - began_ns
        delays.stop()
        return spent_ns / 1_000 / WATCHED_S

    asyncio.run(idle(True))  # without the first turns of the code
    return asyncio.run(idle(True)) - asyncio.run(idle(False))


if __name__ == "__main__":
    main()
