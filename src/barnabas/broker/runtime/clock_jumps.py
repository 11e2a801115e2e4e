"""Decides whether the wall clock can be trusted to say how old a record is (ST-6). Pure.

What is removed by age is gone for good, and others set the wall clock: an operator, NTP, a virtual
machine that wakes up. So wall time is compared with monotonic time at each look. If it moves
further by more than a minute between two looks, it has jumped: from then on nothing is removed by
age, until the wall clock has run on from there for as long as the new time has to last. A jump back
before that makes it as if nothing had happened. Clocks that drift apart slowly never jump.

The first look is compared with the newest wall time that an earlier life of the broker trusted. The
broker may have been stopped for long, so a clock that is ahead may well be right; to wait costs
nothing. Without such a time a clock that is wrong at the start is believed.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

JUMP_MS = 60_000
"""How much further than the monotonic clock the wall clock may move between two looks."""
LASTING_MS = 300_000
"""How long the new time has to last, on the monotonic clock: the default interval of the retention
check, so that NTP has the time to correct what a machine believes when it wakes up."""


START_LEAP_MS = LASTING_MS
"""How far from the newest time seen the wall clock may be at a start: that time is written now and
then only, and a broker may be restarted at leisure."""


class Turn(Enum):
    """The events of a wall clock."""

    STARTED = "started"

    JUMPED = "jumped"
    CORRECTED = "corrected"
    LASTED = "lasted"


class Finding(NamedTuple):
    """An event to be logged."""

    turn: Turn
    by_ms: int
    """How far the wall clock moved against the monotonic one since the last look, or at a start
    since the newest time seen; negative: backwards."""


class ClockJumps:
    """The last look at one machine's two clocks, and the time before a jump."""

    __slots__ = ("_ahead_ms", "_jumped_at_ms", "_trusted_ahead_ms")

    def __init__(self) -> None:
        self._ahead_ms: int | None = None  # wall time minus monotonic time, at the last look
        self._trusted_ahead_ms = 0  # the same before the first jump that has not lasted yet
        self._jumped_at_ms: int | None = None  # when the last such jump was seen, monotonic

    @property
    def are_over(self) -> bool:
        """The wall clock could be trusted at the last look."""
        return self._jumped_at_ms is None

    def latest_ms(self, now_ms: int, wall_ms: int) -> int:
        """Wall time at a look; while it cannot be trusted, what it would be without the jump if
        that is later. An age that is counted from here is never too great, whichever is right."""
        return wall_ms if self.are_over else max(wall_ms, now_ms + self._trusted_ahead_ms)

    def earliest_ms(self, now_ms: int, wall_ms: int) -> int:
        """Return the earlier of the two times of `latest_ms`: what is removed because it is older
        than this allows is too old, whichever is right."""
        return wall_ms if self.are_over else min(wall_ms, now_ms + self._trusted_ahead_ms)

    def begin(self, now_ms: int, wall_ms: int, seen_ms: int) -> Finding | None:
        """Look for the first time; `seen_ms`: the newest wall time that was trusted before."""
        self._ahead_ms = wall_ms - now_ms
        by_ms = wall_ms - seen_ms
        if abs(by_ms) <= START_LEAP_MS:
            return None
        self._trusted_ahead_ms = seen_ms - now_ms
        self._jumped_at_ms = now_ms
        return Finding(Turn.STARTED, by_ms)

    def look(self, now_ms: int, wall_ms: int) -> Finding | None:
        """Compare the two clocks, read at once. Returns what is to be logged, if anything."""
        ahead_ms = wall_ms - now_ms
        by_ms = 0 if self._ahead_ms is None else ahead_ms - self._ahead_ms
        self._ahead_ms = ahead_ms
        # Drift, or a clock that is slewed, stays far below this between two looks; a step does not.
        if abs(by_ms) > JUMP_MS:
            return self._on_jump(now_ms, ahead_ms, by_ms)
        # The new time has lasted long enough to be believed, right or wrong: else a clock that was
        # corrected would stop retention for good.
        if self._jumped_at_ms is not None and now_ms - self._jumped_at_ms >= LASTING_MS:
            self._jumped_at_ms = None
            return Finding(Turn.LASTED, by_ms)
        return None

    def _on_jump(self, now_ms: int, ahead_ms: int, by_ms: int) -> Finding:
        if self._jumped_at_ms is None:
            # Of several jumps in a row only the time before the first one was trusted.
            self._trusted_ahead_ms = ahead_ms - by_ms
        # Back where it was before the first jump: nothing has been removed by the wrong time.
        elif abs(ahead_ms - self._trusted_ahead_ms) <= JUMP_MS:
            self._jumped_at_ms = None
            return Finding(Turn.CORRECTED, by_ms)
        self._jumped_at_ms = now_ms
        return Finding(Turn.JUMPED, by_ms)
