"""Deadlines of many members at a price that heartbeats do not pay.

A heap of (when, order, timer). Moving a deadline back, which every heartbeat does, is one
assignment to `Timer.deadline_ms`: the heap finds out when the old time comes, and puts the timer
back where it belongs now. Timers are data, never closures: they say whose they are, no more.

Invariant: a timer that is set stands in the heap at its deadline or earlier. `next_ms` may so be
earlier than any deadline; whoever is woken for nothing goes to sleep again.
"""

from __future__ import annotations

import heapq
from typing import Final

NEVER: Final = 1 << 62

_FEW = 64  # entries that nobody bothers to sweep


class Timer:
    """A deadline of a member of a group, or of the group itself (`member_id` empty)."""

    __slots__ = ("deadline_ms", "group_id", "member_id", "queued_ms")

    def __init__(self, group_id: str, member_id: str = "") -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.deadline_ms = NEVER
        self.queued_ms = NEVER  # where in the heap its valid entry stands; NEVER: nowhere

    def __repr__(self) -> str:
        return f"Timer({self.group_id!r}, {self.member_id!r}, {self.deadline_ms})"


class Timers:
    """All timers of one machine."""

    __slots__ = ("_heap", "_order", "_stale")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._order = 0
        self._stale = 0

    def __len__(self) -> int:
        """The entries in memory, those that are out of date included."""
        return len(self._heap)

    def set(self, timer: Timer, deadline_ms: int) -> None:
        """The timer is due then, whatever it was before."""
        timer.deadline_ms = deadline_ms
        if deadline_ms < timer.queued_ms:
            if timer.queued_ms != NEVER:
                self._forget_entry()
            self._push(timer)

    def cancel(self, timer: Timer) -> None:
        timer.deadline_ms = NEVER
        if timer.queued_ms != NEVER:
            timer.queued_ms = NEVER
            self._forget_entry()

    def next_ms(self) -> int | None:
        """When to look again at the latest; None if nothing is set."""
        return self._heap[0][0] if self._heap else None

    def is_due(self, now_ms: int) -> bool:
        """Whether `next` has anything to do."""
        return bool(self._heap) and self._heap[0][0] <= now_ms

    def next(self, now_ms: int) -> Timer | None:
        """The next timer whose deadline has come, and which is not set any more.

        None if the next entry was out of date: each call does one entry's work, so that whoever
        calls can stop when it has done enough.
        """
        queued_ms, _, timer = heapq.heappop(self._heap)
        if queued_ms != timer.queued_ms:
            self._stale -= 1
        elif timer.deadline_ms > now_ms:
            self._push(timer)
        else:
            timer.deadline_ms = timer.queued_ms = NEVER
            return timer
        return None

    def _push(self, timer: Timer) -> None:
        timer.queued_ms = timer.deadline_ms
        self._order += 1
        heapq.heappush(self._heap, (timer.deadline_ms, self._order, timer))

    def _forget_entry(self) -> None:
        """An entry means nothing any more. Members that come and go must not fill the memory."""
        self._stale += 1
        if self._stale > _FEW and self._stale * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[0] == entry[2].queued_ms]
            heapq.heapify(self._heap)
            self._stale = 0
