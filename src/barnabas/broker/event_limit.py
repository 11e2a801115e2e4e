"""Limits how many events clients can cause, because clients may retry and may be hostile.

A client retries a failed request, and a hostile client can make up any number of names. For this
reason, each kind of occurrence is reported at most once a minute, in an event that contains the
number of occurrences since the previous event. The number of events per minute is limited as well,
both for each source and in total. Occurrences that did not cause an event are counted. Their number
is reported at the first occurrence in the next minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.clock import Clock

MINUTE_MS: Final = 60_000


class _Kind:
    """The number of occurrences of one kind since its last event."""

    __slots__ = ("more", "reported_at_ms")

    def __init__(self, now_ms: int) -> None:
        self.reported_at_ms = now_ms
        self.more = 0


class EventLimit:
    """Decides which occurrences are reported as events, and counts all others."""

    __slots__ = ("_began_at_ms", "_clock", "_kinds", "_left_out", "_most", "_report", "_sources")

    def __init__(
        self, clock: Clock, report: Callable[[int], None], *, per_source: int, total: int
    ) -> None:
        """`report` adds an event with the number of occurrences that did not cause an event."""
        self._clock = clock
        self._report = report
        self._most = per_source, total
        self._kinds: dict[Hashable, _Kind] = {}  # the kind with the oldest event comes first
        self._began_at_ms = -MINUTE_MS
        self._sources: Counter[Hashable] = Counter()  # events since then
        self._left_out = 0  # occurrences since then that are in no event

    def count(self, kind: Hashable, source: Hashable) -> int | None:
        """Count an occurrence. Return the number of occurrences of this kind that an event should
        report now.

        The number covers all occurrences since the last event of this kind. None means that no
        event is due.
        """
        now_ms = self._clock.monotonic_ms()
        found = self._kinds.get(kind)
        if found is not None and now_ms - found.reported_at_ms < MINUTE_MS:
            found.more += 1
            return None
        if now_ms - self._began_at_ms >= MINUTE_MS:
            self._begin(now_ms)
        # Every event adds at most one source, so the number of events limits the size of all
        # tables.
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
        """Begin a new minute, and report how many occurrences caused no event in the previous
        minute.
        """
        self._began_at_ms = now_ms
        self._sources.clear()
        left_out, self._left_out = self._left_out, 0
        # Occurrences that were counted after the event of their kind are reported in the next event
        # of that kind. That event may never come, so a kind is kept for only one more minute.
        for key, kind in list(self._kinds.items()):
            if now_ms - kind.reported_at_ms < 2 * MINUTE_MS:
                break
            left_out += kind.more
            del self._kinds[key]
        if left_out:
            self._report(left_out)
