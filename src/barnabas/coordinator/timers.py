"""Manages the deadlines of many members and transactions. A heartbeat costs almost nothing.

The timers are in a heap of (when, order, timer). A heartbeat postpones a deadline by a single
assignment to `Timer.deadline_ms`. When the old time is reached, the timer is put back into the heap
with the new time. Timers are data, not closures, and only identify their group and member.

Invariant: every timer that is set has an entry in the heap, at its deadline or earlier. `next_ms`
may therefore be earlier than every deadline, in which case the caller just waits again.
"""

from __future__ import annotations

import heapq
from typing import Final

NEVER: Final = 1 << 62

_FEW = 64  # a sweep is not worthwhile for so few stale entries


class Timer:
    """The deadline of a group's member or, if `member_id` is empty, of the group itself."""

    __slots__ = ("deadline_ms", "group_id", "member_id", "queued_ms")

    def __init__(self, group_id: str, member_id: str = "") -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.deadline_ms = NEVER
        self.queued_ms = NEVER  # the time of the valid entry in the heap, or NEVER

    def __repr__(self) -> str:
        return f"Timer({self.group_id!r}, {self.member_id!r}, {self.deadline_ms})"


class Timers:
    """The timers of one machine."""

    __slots__ = ("_heap", "_order", "_stale")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._order = 0
        self._stale = 0

    def __len__(self) -> int:
        """Return the number of entries in memory, including stale entries."""
        return len(self._heap)

    def set(self, timer: Timer, deadline_ms: int) -> None:
        """Set or move the timer's deadline."""
        timer.deadline_ms = deadline_ms
        # The existing entry would fire too late, so add another. If the deadline is later, the
        # entry can stay where it is.
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
        """Return the latest time at which `next` must be called, or None if no timer is set."""
        return self._heap[0][0] if self._heap else None

    def is_due(self, now_ms: int) -> bool:
        """Return whether there is anything for `next` to do."""
        return bool(self._heap) and self._heap[0][0] <= now_ms

    def next(self, now_ms: int) -> Timer | None:
        """Unset and return the next timer whose deadline has passed.

        Each call handles one entry, so that the caller can stop after any number of entries. If the
        entry was stale, the result is None.
        """
        queued_ms, _, timer = heapq.heappop(self._heap)
        # The timer was cancelled, or a newer entry has replaced this one.
        if queued_ms != timer.queued_ms:
            self._stale -= 1
        # The timer was postponed, for example by heartbeats. It is put back into the heap once, no
        # matter how many heartbeats there were.
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
        """Count a stale entry, so that the entries of members that have left do not accumulate."""
        self._stale += 1
        if self._stale > _FEW and self._stale * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[0] == entry[2].queued_ms]
            heapq.heapify(self._heap)
            self._stale = 0


class TransactionTimeouts:
    """Schedules transactional ids to be examined, each at the earliest time that was requested."""

    __slots__ = ("_heap", "_set")

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._set: dict[str, int] = {}  # the valid entry for each id; all others are skipped

    def set(self, transactional_id: str, due_ms: int) -> None:
        """Schedule the id to be examined at `due_ms` or earlier."""
        known_ms = self._set.get(transactional_id)
        # There is no need to store a later time, because the caller sets the timer again when it
        # fires early.
        if known_ms is None or due_ms < known_ms:
            self._set[transactional_id] = due_ms
            heapq.heappush(self._heap, (due_ms, transactional_id))

    @property
    def next_ms(self) -> int | None:
        """Return the earliest time at which `take` may return any ids."""
        return self._heap[0][0] + 1 if self._heap else None

    def take(self, now_ms: int) -> list[str]:
        """Remove and return the ids that are due."""
        taken = []
        while self._heap and self._heap[0][0] < now_ms:
            due_ms, transactional_id = heapq.heappop(self._heap)
            if self._set.get(transactional_id) == due_ms:
                del self._set[transactional_id]
                taken.append(transactional_id)
        return taken
