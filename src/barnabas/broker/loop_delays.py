"""Reports delays of the broker's event loop, because no client gets a response during a delay
(IN-1).

The delays are measured with a timer that fires four times a second, so that turns of the event loop
do not become more expensive. The timer cannot tell what was running instead. For this reason, the
report compares CPU time with wall time. A loop that is busy computing uses CPU time. A process that
has been stopped, is waiting for a disk or is not being scheduled uses none.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from barnabas.broker.event_limit import EventLimit
from barnabas.clock import Clock, process_cpu_ns, spent_ns, thread_cpu_ns
from barnabas.counted import counted
from barnabas.events import Event, EventLog

_log = logging.getLogger(__name__)

KIND: Final = "event-loop-delayed"
LIMIT: Final = "barnabas.event.loop.delay.ms"
EVERY_MS: Final = 250
_NS_PER_MS: Final = 1_000_000
_LITTLE: Final = 10  # percent of the wall time


class LoopDelays:
    """Adds an event when the timer fires later than a limit allows, but at most once a minute."""

    __slots__ = ("_began", "_events", "_limit_ms", "_reports", "_timer")

    def __init__(self, events: EventLog, clock: Clock, limit_ms: int) -> None:
        """Create an instance that does not measure yet. Delays of at least `limit_ms` are reported.
        If it is 0, no delays are reported.
        """
        self._events = events
        self._limit_ms = limit_ms
        self._reports = EventLimit(clock, self._report_others, per_source=1, total=1)
        self._began = (0, 0, 0)  # wall time, CPU time of the thread and of the process
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Measure the delays of the running loop until `stop` is called."""
        if not self._limit_ms:
            return
        self._began = (spent_ns(), thread_cpu_ns(), process_cpu_ns())
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(EVERY_MS / 1_000, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        passed_ms = (spent_ns() - self._began[0]) // _NS_PER_MS
        if passed_ms - EVERY_MS >= self._limit_ms:
            self._report(passed_ms)
        self.start()

    def _report(self, passed_ms: int) -> None:
        more = self._reports.count(KIND, KIND)
        if more is None:
            return
        thread_ms = (thread_cpu_ns() - self._began[1]) // _NS_PER_MS
        process_ms = (process_cpu_ns() - self._began[2]) // _NS_PER_MS
        text = f"The event loop was delayed by {passed_ms - EVERY_MS} ms ({LIMIT}={self._limit_ms})"
        if more:
            text += f"; {counted(more, 'more delay')} since the last event"
        cause = (
            f"in the last {passed_ms} ms, the event loop's thread used {thread_ms} ms of CPU time, "
            f"and the whole process {process_ms} ms"
        )
        advice = ""
        if process_ms * 100 < passed_ms * _LITTLE:
            advice = (
                "the process hardly ran: check whether it was paused, waited for a disk, or had no "
                "CPU; the broker cannot tell these apart"
            )
        self._events.add(Event(KIND, text, cause, advice=advice), _log)

    def _report_others(self, left_out: int) -> None:
        text = f"The event loop was delayed {counted(left_out, 'more time')}"
        self._events.add(Event(KIND, text, "at most one event per minute reports a delay"), _log)
