"""Decides whether the wall clock can be trusted when the age of a record is determined (ST-6). It
never reads a clock itself.

Data that is removed because of its age is permanently lost, but the wall clock can be changed by an
operator, by NTP, or when a virtual machine is resumed. Every check therefore compares wall time
with monotonic time. If the two diverge by more than a minute between checks, the wall clock has
jumped. From then on, nothing is removed by age until the new time has lasted long enough. If the
clock jumps back before that, the previous state is restored. A slow drift is not considered a jump.

The first check compares the clock with the latest wall time that was trusted by an earlier run of
the broker. A clock that is ahead may be right, because the broker may have been stopped for a long
time, but waiting does no harm. If there is no stored time, the clock is trusted at startup.
"""

from __future__ import annotations

from enum import Enum

from barnabas.named_tuple import NamedTuple

JUMP_MS = 60_000
"""How far the wall clock may deviate from the monotonic clock between two successive checks."""
LASTING_MS = 300_000
"""How long the new time must last according to the monotonic clock. This is the default interval of
the retention check, which gives NTP enough time to correct the clock of a machine that has been
resumed.
"""


START_LEAP_MS = LASTING_MS
"""How far the wall clock may be from the latest stored time at startup. The difference can be large
because the time is stored only occasionally and a broker may have been down for a while.
"""


class Turn(Enum):
    """The kinds of events that concern the wall clock."""

    STARTED = "started"

    JUMPED = "jumped"
    CORRECTED = "corrected"
    LASTED = "lasted"


class Finding(NamedTuple):
    """An event that should be logged."""

    turn: Turn
    by_ms: int
    """How far the wall clock has moved relative to the monotonic clock since the last check or, at
    startup, since the latest stored time. Negative if the clock has moved backwards.
    """


class ClockJumps:
    """Holds the result of the last check of a machine's two clocks, and the time before a jump."""

    __slots__ = ("_ahead_ms", "_jumped_at_ms", "_trusted_ahead_ms")

    def __init__(self) -> None:
        self._ahead_ms: int | None = None  # wall time minus monotonic time at the last check
        self._trusted_ahead_ms = 0  # the same before the first jump that is pending
        self._jumped_at_ms: int | None = None  # the monotonic time of the last pending jump

    @property
    def are_over(self) -> bool:
        """Return whether the wall clock was trustworthy at the last check."""
        return self._jumped_at_ms is None

    def latest_ms(self, now_ms: int, wall_ms: int) -> int:
        """Return the wall time. If a jump is pending, return the later of the two times, with and
        without the jump.

        An age that is computed from this time is never too large, whichever of the two times is
        right.
        """
        return wall_ms if self.are_over else max(wall_ms, now_ms + self._trusted_ahead_ms)

    def earliest_ms(self, now_ms: int, wall_ms: int) -> int:
        """Return the earlier of the two times that `latest_ms` considers.

        Data that has expired by this time has expired, whichever of the two times is right.
        """
        return wall_ms if self.are_over else min(wall_ms, now_ms + self._trusted_ahead_ms)

    def begin(self, now_ms: int, wall_ms: int, seen_ms: int) -> Finding | None:
        """Perform the first check.

        `seen_ms` is the latest wall time that has been trusted so far.
        """
        self._ahead_ms = wall_ms - now_ms
        by_ms = wall_ms - seen_ms
        if abs(by_ms) <= START_LEAP_MS:
            return None
        self._trusted_ahead_ms = seen_ms - now_ms
        self._jumped_at_ms = now_ms
        return Finding(Turn.STARTED, by_ms)

    def look(self, now_ms: int, wall_ms: int) -> Finding | None:
        """Compare the two clocks, and return the event to be logged, or None."""
        ahead_ms = wall_ms - now_ms
        by_ms = 0 if self._ahead_ms is None else ahead_ms - self._ahead_ms
        self._ahead_ms = ahead_ms
        # Drift and slewing between two checks stay far below this limit, while a step exceeds it.
        if abs(by_ms) > JUMP_MS:
            return self._on_jump(now_ms, ahead_ms, by_ms)
        # Accept the new time when it has lasted long enough. Otherwise, correcting the clock would
        # stop retention indefinitely.
        if self._jumped_at_ms is not None and now_ms - self._jumped_at_ms >= LASTING_MS:
            self._jumped_at_ms = None
            return Finding(Turn.LASTED, by_ms)
        return None

    def _on_jump(self, now_ms: int, ahead_ms: int, by_ms: int) -> Finding:
        if self._jumped_at_ms is None:
            # If the clock has jumped several times in succession, only the time before the first
            # jump is trusted.
            self._trusted_ahead_ms = ahead_ms - by_ms
        # The clock has returned to where it was before the first jump.
        elif abs(ahead_ms - self._trusted_ahead_ms) <= JUMP_MS:
            self._jumped_at_ms = None
            return Finding(Turn.CORRECTED, by_ms)
        self._jumped_at_ms = now_ms
        return Finding(Turn.JUMPED, by_ms)
