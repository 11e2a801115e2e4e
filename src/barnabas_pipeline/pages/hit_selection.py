"""Selects the hits that match filters, and the sessions and visitors to which they belong.

Properties of sessions are compared once for each session, and the results are repeated for its
hits. Everything is computed when it is first needed, because no card needs everything.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from barnabas_pipeline.pages.filters import Filters, Period
from barnabas_pipeline.pages.hits import Array, Coded, Hits, Notes


class Selection:
    """The hits that match filters."""

    def __init__(self, hits: Hits, filters: Filters) -> None:
        self.hits = hits
        self.filters = filters

    def of_period(self, period: Period) -> Selection:
        """Return the hits that match the same filters, but are in this period."""
        return Selection(self.hits, self.filters._replace(period=period, other=None))

    def without(self, name: str) -> Selection:
        """Return the hits that match the filters of all other dimensions."""
        values = {each: wanted for each, wanted in self.filters.values.items() if each != name}
        return Selection(self.hits, self.filters._replace(values=values))

    @cached_property
    def mask(self) -> Array | None:
        """Which hits match, or None if all do."""
        hits, found = self.hits, self._sessions_wanted
        mask = None if found is None else np.repeat(found, np.diff(hits.sessions.begins))
        for name, wanted in self.filters.values.items():
            of = hits.dimensions[name]
            if not of.of_sessions:
                mask = _both(mask, _is_any(of, wanted))
        since_us, until_us = self.filters.period
        if since_us is not None:
            mask = _both(mask, hits.time_us >= since_us)
        if until_us is not None:
            mask = _both(mask, hits.time_us < until_us)
        return mask

    def among(self, notes: Notes) -> Array | None:
        """Return which of these notes belong to matching hits, or None if all do."""
        return None if self.mask is None else self.mask[notes.at]

    @cached_property
    def matching(self) -> int:
        return len(self.hits) if self.mask is None else int(np.count_nonzero(self.mask))

    @cached_property
    def places(self) -> Array:
        """The numbers of the matching hits, in increasing order."""
        return np.arange(len(self.hits)) if self.mask is None else np.flatnonzero(self.mask)

    def those(self, flags: Array) -> Array:
        """Return the numbers of the matching hits for which a flag is set."""
        return np.flatnonzero(flags if self.mask is None else flags & self.mask)

    @cached_property
    def views(self) -> Array:
        """The numbers of the matching page views."""
        return self.those(self.hits.is_view)

    @cached_property
    def sessions(self) -> Array:
        """The numbers of the sessions to which matching hits belong, without hits without a
        visitor."""
        of, mask = self.hits.sessions, self.mask
        if mask is None:
            return np.arange(of.real)
        if not self._selects_hits:
            assert self._sessions_wanted is not None
            return np.flatnonzero(self._sessions_wanted[: of.real])
        if not of.real:
            return np.zeros(0, dtype=np.int64)
        end = int(of.begins[of.real])
        # The cast to bytes is free, and logical_or.reduceat is slow.
        has_some = np.maximum.reduceat(mask[:end].view(np.uint8), of.begins[: of.real])
        return np.flatnonzero(has_some)

    @cached_property
    def visitors(self) -> int:
        """The number of visitors to whom matching hits belong."""
        found = self.hits.sessions.visitors[self.sessions]
        return int(np.count_nonzero(np.diff(found))) + 1 if len(found) else 0

    @cached_property
    def sessions_with_pages(self) -> Array:
        return self.sessions[self.hits.sessions.pages[self.sessions] > 0]

    @cached_property
    def hours(self) -> Array:
        """The number of matching hits in each hour."""
        return self.count_hours(None)

    def count_hours(self, places: Array | None) -> Array:
        """Return how many of these hits, or of all matching hits, are in each hour."""
        hour = self.hits.hour
        if places is None and self.mask is not None:
            places = self.places
        length = int(hour.max()) + 1 if len(hour) else 0
        return np.bincount(hour if places is None else hour[places], minlength=length)

    def count_by_sessions(self, name: str) -> Array:
        """Return how many matching hits belong to sessions with each value of a dimension."""
        of, sessions = self.hits.dimensions[name], self.hits.sessions
        if self.mask is None:
            per_session = np.diff(sessions.begins)
        else:
            per_session = np.bincount(self.hits.session[self.places], minlength=len(sessions.pages))
        return np.bincount(of.codes, per_session, minlength=len(of.values)).astype(np.int64)

    @property
    def _selects_hits(self) -> bool:
        """Return whether a session can have both hits that match and others."""
        names = self.filters.values
        return self.filters.period != Period() or any(
            not self.hits.dimensions[name].of_sessions for name in names
        )

    @cached_property
    def _sessions_wanted(self) -> Array | None:
        found = None
        for name, wanted in self.filters.values.items():
            of = self.hits.dimensions[name]
            if of.of_sessions:
                found = _both(found, _is_any(of, wanted))
        return found


def _is_any(of: Coded, wanted: tuple[str, ...]) -> Array:
    """Return whether the values are among those wanted."""
    numbers = [of.values.numbers[each] for each in wanted if each in of.values.numbers]
    if len(numbers) == 1:
        is_wanted: Array = of.codes == numbers[0]
        return is_wanted
    table = np.zeros(len(of.values), dtype=bool)
    table[numbers] = True
    found: Array = table[of.codes]
    return found


def _both(mask: Array | None, more: Array) -> Array:
    return more if mask is None else mask & more
