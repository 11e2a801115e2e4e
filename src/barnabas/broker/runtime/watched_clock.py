"""Watches the wall clock for jumps, because it determines the age of records.

The clock is read every second and also before anything is removed by age, so that a jump is noticed
in time. `clock_jumps` makes the decisions, while this class reads the clock and logs the jumps.
"""

from __future__ import annotations

import asyncio
import logging

from barnabas.broker.runtime.clock_jumps import LASTING_MS, ClockJumps, Finding, Turn
from barnabas.clock import Clock

_log = logging.getLogger(__name__)

_LOOK_EVERY_S = 1.0


class WatchedClock:
    """A clock that reports wall times only if they can be trusted."""

    __slots__ = ("_jumps", "_timer", "monotonic_ms", "wall_ms")

    def __init__(self, clock: Clock) -> None:
        # Use the original clock's methods directly, so that watching the clock does not slow
        # Produce requests down.
        self.monotonic_ms = clock.monotonic_ms
        self.wall_ms = clock.wall_ms
        self._jumps = ClockJumps()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, seen_ms: int | None) -> None:
        """Perform the first check.

        `seen_ms` is the latest wall time that has been trusted so far.
        """
        # If no time has been stored yet (on a new disk), trust the clock.
        if seen_ms is not None:
            finding = self._jumps.begin(self.monotonic_ms(), self.wall_ms(), seen_ms)
            if finding is not None:
                _report(finding)

    def earliest_wall_ms(self) -> int:
        """Return the wall time to use for a removal by age that cannot be deferred (see
        `ClockJumps`).
        """
        return self._jumps.earliest_ms(*self._look())

    def trusted_wall_ms(self) -> int | None:
        """Return the wall time to use for removal by age, or None while the clock is not trusted
        after a jump.
        """
        _, wall_ms = self._look()
        return wall_ms if self._jumps.are_over else None

    def latest_wall_ms(self) -> int:
        """Return the wall time for timestamps whose age will be computed (see `ClockJumps`)."""
        return self._jumps.latest_ms(*self._look())

    def start(self) -> None:
        """Read the clock every second until `stop` is called."""
        self._look()
        self._timer = asyncio.get_running_loop().call_later(_LOOK_EVERY_S, self.start)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> tuple[int, int]:
        """Compare the monotonic time with the wall time, and return both."""
        now_ms, wall_ms = self.monotonic_ms(), self.wall_ms()
        finding = self._jumps.look(now_ms, wall_ms)
        if finding is not None:
            _report(finding)
        return now_ms, wall_ms


def _report(finding: Finding) -> None:
    if finding.turn is Turn.STARTED:
        # Only a clock that is behind the stored time is certainly wrong.
        is_late = finding.by_ms > 0
        _log.log(
            # Do not warn, because this happens whenever the broker was stopped for a long time.
            logging.INFO if is_late else logging.WARNING,
            "the wall clock is %s %s the latest time recorded by this broker%s: nothing is "
            "removed by age until the clock has been stable for %d minutes",
            _span(abs(finding.by_ms)),
            "after" if is_late else "before",
            ", which is expected if the broker was stopped for that long"
            if is_late
            else "; correct it",
            LASTING_MS // 60_000,
        )
    elif finding.turn is Turn.JUMPED:
        _log.warning(
            "the wall clock has jumped %s by %s: nothing is removed by age (retention by time, "
            "compaction, committed offsets, producer ids, transactional ids) until the clock has "
            "been stable for %d minutes; set the clock if it is wrong",
            "forwards" if finding.by_ms > 0 else "backwards",
            _span(abs(finding.by_ms)),
            LASTING_MS // 60_000,
        )
    elif finding.turn is Turn.CORRECTED:
        _log.info("the wall clock has been corrected: removal by age continues")
    else:
        _log.info("the wall clock has been stable: removal by age continues")


def _span(ms: int) -> str:
    """Format a duration for the log: `30 days 0:00:06`."""
    minutes, seconds = divmod((ms + 500) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    clock = f"{hours}:{minutes:02}:{seconds:02}"
    return f"{days} day{'s' if days > 1 else ''} {clock}" if days else clock
