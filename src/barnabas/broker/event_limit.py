"""Limits how many events clients can cause, because clients retry and can be hostile.

A client retries what failed, and a hostile one can invent any number of names. Therefore, each kind
of occurrence is reported in at most one event a minute, with the number of occurrences since the
last. The number of events per minute is also limited, per source and in total. Occurrences left
without an event are counted and reported in the next minute with any occurrence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.clock import Clock

MINUTE_MS: Final = 60_000


class _Kind:
    """Counts the occurrences of one kind since its last event."""

    __slots__ = ("more", "reported_at_ms")

    def __init__(self, now_ms: int) -> None:
        self.reported_at_ms = now_ms
        self.more = 0


class EventLimit:
    """Decides which occurrences are reported as events, and counts the others."""

    __slots__ = ("_began_at_ms", "_clock", "_kinds", "_left_out", "_most", "_report", "_sources")

    def __init__(
        self, clock: Clock, report: Callable[[int], None], *, per_source: int, total: int
    ) -> None:
        """`report` adds an event with the number of occurrences left without one."""
        self._clock = clock
        self._report = report
        self._most = per_source, total
        self._kinds: dict[Hashable, _Kind] = {}  # the one with the oldest event first
        self._began_at_ms = -MINUTE_MS
        self._sources: Counter[Hashable] = Counter()  # events since then
        self._left_out = 0  # occurrences since then that no event counts

    def count(self, kind: Hashable, source: Hashable) -> int | None:
        """Count an occurrence, and return how many of its kind the event should report.

        These are the occurrences since the last event of the kind; None means that no event is due.
        """
        now_ms = self._clock.monotonic_ms()
        found = self._kinds.get(kind)
        if found is not None and now_ms - found.reported_at_ms < MINUTE_MS:
            found.more += 1
            return None
        if now_ms - self._began_at_ms >= MINUTE_MS:
            self._begin(now_ms)
        # Each event adds at most one source, so no table has more entries than there are events.
        per_source, total = self._most
        if self._sources[source] >= per_source or self._sources.total() >= total:
            self._left_out += 1
            return None
        self._sources[source] += 1
        more = 0 if found is None else found.more
        self._kinds.pop(kind, None)
        self._kinds[kind] = _Kind(now_ms)
        return more

    def _begin(self, now_ms: int) -> None:
        """Begin a new minute, and report how many occurrences had no event in the last."""
        self._began_at_ms = now_ms
        self._sources.clear()
        left_out, self._left_out = self._left_out, 0
        # Occurrences that were counted after their kind's event are reported by its next event,
        # which may never come; a kind is kept for one more minute only.
        for key, kind in list(self._kinds.items()):
            if now_ms - kind.reported_at_ms < 2 * MINUTE_MS:
                break
            left_out += kind.more
            del self._kinds[key]
        if left_out:
            self._report(left_out)
