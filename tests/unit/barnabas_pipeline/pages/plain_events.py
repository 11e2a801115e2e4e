"""Counts events in plain Python, one by one, as an independent check of the pages."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from math import ceil
from statistics import median
from typing import Any, NamedTuple

from barnabas_pipeline.pages.filters import Filters

Event = dict[str, Any]
SILENCE_US = 30 * 60 * 1_000_000
MISSING = "~"
OF_VISITS = (
    *("source", "medium", "campaign", "device", "language", "country", "entry", "exit", "visitor"),
)


class Visit(NamedTuple):
    """The events of a visit. Only those with a visitor are counted."""

    visitor: str | None
    events: list[Event]
    is_first: bool

    @property
    def views(self) -> list[Event]:
        return [each for each in self.events if each["page_view"]]

    @property
    def seconds(self) -> int:
        first, last = self.events[0]["us"], self.events[-1]["us"]
        return int(last // 1_000_000 - first // 1_000_000)

    def dimension(self, name: str) -> str:
        views = self.views
        begin = (views or self.events)[0]
        if name == "source":
            return begin["source"] or begin["referrer"] or "direct"
        if name in ("medium", "campaign"):
            return begin[name] or MISSING
        if name == "device":
            return next((device(each["screen"]) for each in self.events if each["screen"]), MISSING)
        if name in ("language", "country"):
            return next((each[name] for each in self.events if each[name]), MISSING)
        if name == "visitor":
            known = "new" if self.is_first else "returning"
            return MISSING if self.visitor is None else known
        if not views:
            return MISSING
        return views[0 if name == "entry" else -1]["path"] or MISSING


def device(screen: str) -> str:
    width = int(screen.partition("x")[0])
    return "phone" if width <= 600 else "tablet" if width <= 1_100 else "desktop"


def visits_of(events: Iterable[Event]) -> list[Visit]:
    """Return the visits of people; an event without a visitor is alone."""
    by_visitor: dict[str, list[Event]] = defaultdict(list)
    found = []
    for each in events:
        if each["robot"]:
            continue
        if each["visitor"] is None:
            found.append(Visit(None, [each], False))
        else:
            by_visitor[each["visitor"]].append(each)
    for visitor, own in by_visitor.items():
        own.sort(key=lambda each: (each["us"], each["partition"], each["offset"]))
        visits: list[list[Event]] = []
        for each in own:
            if visits and each["us"] - visits[-1][-1]["us"] < SILENCE_US:
                visits[-1].append(each)
            else:
                visits.append([each])
        found += [Visit(visitor, each, not number) for number, each in enumerate(visits)]
    return found


class Plain:
    """The events that match filters, with their visits."""

    def __init__(self, events: Sequence[Event], filters: Filters) -> None:
        self.all = visits_of(events)
        self.filters = filters
        self.hits = [
            (each, visit) for visit in self.all for each in visit.events if self._is_in(each, visit)
        ]
        chosen = {id(visit): visit for _, visit in self.hits if visit.visitor is not None}
        self.visits = list(chosen.values())

    def _is_in(self, each: Event, visit: Visit) -> bool:
        since_us, until_us = self.filters.period
        if since_us is not None and each["us"] < since_us:
            return False
        if until_us is not None and each["us"] >= until_us:
            return False
        own = {"host": each["host"], "page": each["path"], "event": each["name"]}
        return all(
            (visit.dimension(name) if name in OF_VISITS else own[name] or MISSING) in wanted
            for name, wanted in self.filters.values.items()
        )

    @property
    def headlines(self) -> dict[str, Any]:
        with_pages = [each for each in self.visits if each.views]
        bounces = sum(len(each.views) == 1 for each in with_pages)
        values = [each["value"] for each, _ in self.hits if each["value"] is not None]
        has_values = any(each["value"] is not None for of in self.all for each in of.events)
        views = [each for each, visit in self.hits if visit.visitor and each["page_view"]]
        found = {
            "visitors": len({each.visitor for each in self.visits}),
            "sessions": len(self.visits),
            "page_views": len(views),
            "bounce_rate": bounces / len(with_pages) if with_pages else None,
            "median_session_seconds": (
                median(each.seconds for each in self.visits) if self.visits else None
            ),
            "events": len(self.hits),
        }
        return {**found, "value": sum(values)} if has_values else found

    def cards(self) -> dict[str, list[list[Any]]]:
        """Return the cells of all cards, without labels for missing values."""
        hits = [each for each, _ in self.hits]
        views = [each for each in hits if each["page_view"]]
        cards = {
            "pages": ranked(each["path"] or MISSING for each in views),
            "host": ranked(each["host"] or MISSING for each in views),
            "errors": ranked(each["path"] or MISSING for each in hits if each["name"] == "error"),
        }
        for name in OF_VISITS:
            of = [each for each in self.visits if each.views or name not in ("entry", "exit")]
            values = [each.dimension(name) for each in of]
            is_named = name in ("medium", "campaign", "country")
            cards[name] = ranked(each for each in values if each != MISSING or not is_named)
        cards["event"] = [
            [name, count, self._value(name)]
            for name, count in ranked(each["name"] for each in hits)
        ]
        cards["next_pages"] = self._next_pages()
        cards["vitals"] = self._measured("vitals", ("ttfb", "fcp", "lcp", "inp", "cls"), 0.75)
        cards["reading"] = self._measured("heartbeat", ("seconds", "scroll"), 0.5)
        cards["retention"] = self._retention()
        cards["heat"] = self._heat(views)
        return cards

    def _value(self, name: str) -> float | None:
        values = [each["value"] for each, _ in self.hits if each["name"] == name]
        known = [each for each in values if each is not None]
        return sum(known) if known else None

    def _next_pages(self) -> list[list[Any]]:
        pairs: Counter[tuple[str, str]] = Counter()
        matching = {id(each) for each, _ in self.hits}
        for visit in self.all:
            views = visit.views
            for before, after in pairwise(views):
                pair = (before["path"] or MISSING, after["path"] or MISSING)
                if id(before) in matching and pair[0] != pair[1]:
                    pairs[pair] += 1
        ordered = sorted(pairs.items(), key=lambda each: (-each[1], each[0]))
        return [[*pair, count] for pair, count in ordered]

    def _measured(self, name: str, keys: Sequence[str], share: float) -> list[list[Any]]:
        last: dict[Any, Event] = {}
        for visit in self.all:
            for each in visit.events:
                if each["name"] == name:
                    view = json.loads(each["properties"] or "{}").get("view")
                    key = (visit.visitor, view) if view is not None else id(each)
                    known = last.get(key)
                    if known is None or _order(known) < _order(each):
                        last[key] = each
        counted = {id(each) for each in last.values()}
        by_page: dict[str, list[Event]] = defaultdict(list)
        for each, _ in self.hits:
            if id(each) in counted:
                by_page[each["path"] or MISSING].append(json.loads(each["properties"] or "{}"))
        rows = []
        for page, found in by_page.items():
            cells: list[Any] = [page, len(found)]
            for key in keys:
                values = sorted(each[key] for each in found if each.get(key) is not None)
                cells.append(values[ceil(len(values) * share) - 1] if values else None)
            rows.append(cells)
        return sorted(rows, key=lambda cells: (-cells[1], cells[0]))

    def _retention(self) -> list[list[Any]]:
        weeks: dict[str, set[date]] = defaultdict(set)
        for each, visit in self.hits:
            if visit.visitor is not None:
                day = datetime.fromtimestamp(each["us"] / 1e6, UTC).date()
                weeks[visit.visitor].add(day - timedelta(days=day.weekday()))
        if not weeks:
            return []
        newest = max(max(each) for each in weeks.values())
        rows = []
        for first in sorted({min(each) for each in weeks.values()})[-12:]:
            own = [each for each in weeks.values() if min(each) == first]
            later = [first + timedelta(weeks=number) for number in range(12)]
            counts = [sum(week in each for each in own) for week in later if week <= newest]
            rows.append([first.isoformat(), *counts, *[None] * (12 - len(counts))])
        return rows if len(rows) > 1 else []

    def _heat(self, views: Sequence[Event]) -> list[list[int]]:
        grid = [[0] * 24 for _ in range(7)]
        for each in views:
            at = datetime.fromtimestamp(each["us"] / 1e6, UTC)
            grid[at.weekday()][at.hour] += 1
        return grid if views else []


def _order(each: Event) -> tuple[int, int, int]:
    return each["us"], each["partition"], each["offset"]


def ranked(values: Iterable[str]) -> list[list[Any]]:
    counts = Counter(values)
    return [[*each] for each in sorted(counts.items(), key=lambda each: (-each[1], each[0]))]
