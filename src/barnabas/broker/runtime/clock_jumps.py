"""Decides whether the wall clock can be trusted for the age of a record (ST-6). Pure.

Data removed by age is lost permanently, and the wall clock can be changed by an operator, by NTP,
or when a virtual machine resumes. Each check therefore compares wall time with monotonic time. If
they diverge by more than a minute between two checks, the wall clock has jumped, and nothing is
removed by age until the new time has lasted long enough. If the clock jumps back before then, the
previous state is restored. Slow drift is not a jump.

The first check compares the clock with the latest wall time that an earlier run of the broker
trusted. A clock that is ahead may be right, since the broker may have been stopped for a long time;
but waiting does no harm. Without a stored time, the clock at startup is trusted.
"""

from __future__ import annotations

from enum import Enum

from barnabas.named_tuple import NamedTuple

JUMP_MS = 60_000
"""How far the wall clock may deviate from the monotonic clock between two checks."""
LASTING_MS = 300_000
"""How long the new time must last, on the monotonic clock. This is the default interval of the
retention check. It gives NTP time to correct the clock of a resumed machine.
"""


START_LEAP_MS = LASTING_MS
"""How far the wall clock may be from the latest recorded time at startup: the time is recorded only
occasionally, and a broker may be down for a while.
"""


class Turn(Enum):
    """The kinds of wall clock events."""

    STARTED = "started"

    JUMPED = "jumped"
    CORRECTED = "corrected"
    LASTED = "lasted"


class Finding(NamedTuple):
    """An event to be logged."""

    turn: Turn
    by_ms: int
    """How far the wall clock moved relative to the monotonic clock since the last check (at
    startup, since the latest stored time); negative if backwards.
    """


class ClockJumps:
    """Tracks the last check of a machine's two clocks, and the time before a jump."""

    __slots__ = ("_ahead_ms", "_jumped_at_ms", "_trusted_ahead_ms")

    def __init__(self) -> None:
        self._ahead_ms: int | None = None  # wall time minus monotonic time at the last check
        self._trusted_ahead_ms = 0  # the same, before the first pending jump
        self._jumped_at_ms: int | None = None  # the monotonic time of the last such jump

    @property
    def are_over(self) -> bool:
        """Return whether the last check found the wall clock trustworthy."""
        return self._jumped_at_ms is None

    def latest_ms(self, now_ms: int, wall_ms: int) -> int:
        """Return the wall time; if a jump is pending, the later of the times with and without it.

        An age computed from this time is never too large, whichever time is right.
        """
        return wall_ms if self.are_over else max(wall_ms, now_ms + self._trusted_ahead_ms)

    def earliest_ms(self, now_ms: int, wall_ms: int) -> int:
        """Return the earlier of the two times of `latest_ms`.

        Data that has expired by this time has expired in either case.
        """
        return wall_ms if self.are_over else min(wall_ms, now_ms + self._trusted_ahead_ms)

    def begin(self, now_ms: int, wall_ms: int, seen_ms: int) -> Finding | None:
        """Perform the first check; `seen_ms` is the latest wall time trusted so far."""
        self._ahead_ms = wall_ms - now_ms
        by_ms = wall_ms - seen_ms
        if abs(by_ms) <= START_LEAP_MS:
            return None
        self._trusted_ahead_ms = seen_ms - now_ms
        self._jumped_at_ms = now_ms
        return Finding(Turn.STARTED, by_ms)

    def look(self, now_ms: int, wall_ms: int) -> Finding | None:
        """Compare the two clocks, and return the event to log, if any."""
        ahead_ms = wall_ms - now_ms
        by_ms = 0 if self._ahead_ms is None else ahead_ms - self._ahead_ms
        self._ahead_ms = ahead_ms
        # Between two checks, drift and slewing stay far below this; a step exceeds it.
        if abs(by_ms) > JUMP_MS:
            return self._on_jump(now_ms, ahead_ms, by_ms)
        # Accept the new time once it has lasted long enough; otherwise, a correction of the clock
        # would stop retention forever.
        if self._jumped_at_ms is not None and now_ms - self._jumped_at_ms >= LASTING_MS:
            self._jumped_at_ms = None
            return Finding(Turn.LASTED, by_ms)
        return None

    def _on_jump(self, now_ms: int, ahead_ms: int, by_ms: int) -> Finding:
        if self._jumped_at_ms is None:
            # After several consecutive jumps, only the time before the first one is trusted.
            self._trusted_ahead_ms = ahead_ms - by_ms
        # The clock is back where it was before the first jump.
        elif abs(ahead_ms - self._trusted_ahead_ms) <= JUMP_MS:
            self._jumped_at_ms = None
            return Finding(Turn.CORRECTED, by_ms)
        self._jumped_at_ms = now_ms
        return Finding(Turn.JUMPED, by_ms)
