"""Decides whether the wall clock can be trusted for the age of a record (ST-6). Pure.

Data removed by age is lost permanently, and the wall clock is set by others: an operator, NTP, a
virtual machine that resumes. So at each look, wall time is compared with monotonic time. If the two
differ by more than a minute between two looks, the wall clock has jumped: from then on nothing is
removed by age until the new time has lasted long enough. A jump back before that restores the state
before the jump. Clocks that drift apart slowly never jump.

The first look is compared with the newest wall time that an earlier run of the broker trusted. The
broker may have been stopped for long, so a clock that is ahead may well be right; waiting costs
nothing. Without such a time, a clock that is wrong at startup is believed.
"""

from __future__ import annotations

from enum import Enum

from barnabas.named_tuple import NamedTuple

JUMP_MS = 60_000
"""How far the wall clock may deviate from the monotonic clock between two looks."""
LASTING_MS = 300_000
"""How long the new time has to last, on the monotonic clock. It is the default interval of the
retention check, so that NTP has time to correct the clock of a machine that resumes."""


START_LEAP_MS = LASTING_MS
"""How far the wall clock may be from the newest time seen, at startup: that time is written only
occasionally, and a broker may be down for a while."""


class Turn(Enum):
    """Events of a wall clock."""

    STARTED = "started"

    JUMPED = "jumped"
    CORRECTED = "corrected"
    LASTED = "lasted"


class Finding(NamedTuple):
    """An event to be logged."""

    turn: Turn
    by_ms: int
    """How far the wall clock moved against the monotonic clock since the last look, or at startup
    since the newest time seen; negative: backwards."""


class ClockJumps:
    """The last look at one machine's two clocks, and the time before a jump."""

    __slots__ = ("_ahead_ms", "_jumped_at_ms", "_trusted_ahead_ms")

    def __init__(self) -> None:
        self._ahead_ms: int | None = None  # wall time minus monotonic time, at the last look
        self._trusted_ahead_ms = 0  # the same before the first jump that is not yet accepted
        self._jumped_at_ms: int | None = None  # when the last such jump was seen, monotonic

    @property
    def are_over(self) -> bool:
        """Return whether no jump is pending: the wall clock could be trusted at the last look."""
        return self._jumped_at_ms is None

    def latest_ms(self, now_ms: int, wall_ms: int) -> int:
        """Return the wall time, or the time without the jump if the jump is pending and that is
        later.

        An age counted from this time is never too great, whichever clock is right.
        """
        return wall_ms if self.are_over else max(wall_ms, now_ms + self._trusted_ahead_ms)

    def earliest_ms(self, now_ms: int, wall_ms: int) -> int:
        """Return the earlier of the two times of `latest_ms`.

        Data that is too old by this time is too old whichever clock is right.
        """
        return wall_ms if self.are_over else min(wall_ms, now_ms + self._trusted_ahead_ms)

    def begin(self, now_ms: int, wall_ms: int, seen_ms: int) -> Finding | None:
        """Look for the first time; `seen_ms` is the newest wall time trusted before."""
        self._ahead_ms = wall_ms - now_ms
        by_ms = wall_ms - seen_ms
        if abs(by_ms) <= START_LEAP_MS:
            return None
        self._trusted_ahead_ms = seen_ms - now_ms
        self._jumped_at_ms = now_ms
        return Finding(Turn.STARTED, by_ms)

    def look(self, now_ms: int, wall_ms: int) -> Finding | None:
        """Compare the two clocks, read together. Returns the event to be logged, if any."""
        ahead_ms = wall_ms - now_ms
        by_ms = 0 if self._ahead_ms is None else ahead_ms - self._ahead_ms
        self._ahead_ms = ahead_ms
        # Drift or slewing stays far below this between two looks; a step does not.
        if abs(by_ms) > JUMP_MS:
            return self._on_jump(now_ms, ahead_ms, by_ms)
        # The new time has lasted long enough to be accepted, right or wrong: otherwise a corrected
        # clock would stop retention permanently.
        if self._jumped_at_ms is not None and now_ms - self._jumped_at_ms >= LASTING_MS:
            self._jumped_at_ms = None
            return Finding(Turn.LASTED, by_ms)
        return None

    def _on_jump(self, now_ms: int, ahead_ms: int, by_ms: int) -> Finding:
        if self._jumped_at_ms is None:
            # Of several consecutive jumps, only the time before the first was trusted.
            self._trusted_ahead_ms = ahead_ms - by_ms
        # The clock is back where it was before the first jump: nothing was removed by the wrong
        # time.
        elif abs(ahead_ms - self._trusted_ahead_ms) <= JUMP_MS:
            self._jumped_at_ms = None
            return Finding(Turn.CORRECTED, by_ms)
        self._jumped_at_ms = now_ms
        return Finding(Turn.JUMPED, by_ms)
