"""BT-4: our figures next to those that the rules of PostHog and Umami give for the same events.

The rules are taken from PostHog's manual (sessions end after 30 minutes without an event, or when
they are 24 hours old) and from Umami's source (`collection-session.ts`, `getWebsiteStats.ts`: only
page views count, and a visit is what one visitor does within one hour of the clock). They are
applied here to the events themselves, without our code. What differs is computed, too.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas_pipeline.tracking.generator import write_events
from tests.kit.effort import examples
from tests.kit.pipeline.event_records import (
    DAY_MS,
    MINUTE_MS,
    MONDAY_MS,
    event,
    records,
    take,
)

HOUR_MS = 60 * MINUTE_MS
PAUSE_MS = 30 * MINUTE_MS

Events = Sequence[dict[str, Any]]


class Counted(NamedTuple):
    """The figures of one tool."""

    visitors: int
    sessions: int
    bounces: int
    page_views: int


def ours(events: Events, directory: Path) -> Counted:
    """The figures in our tables."""
    sessions = take(directory, 0, records(events)).frame("sessions")
    return Counted(
        sessions["client"].n_unique(),
        sessions.height,
        sessions.filter(pl.col("pages") == 1).height,
        int(sessions["pages"].sum()),
    )


def by_visitor(events: Events) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for each in sorted(events, key=lambda each: each["time"]):
        found[each["visitor"]].append(each)
    return found


def silent_apart(events: Events) -> list[list[dict[str, Any]]]:
    """Each visitor's events, split at each pause of 30 minutes."""
    found: list[list[dict[str, Any]]] = []
    for of_visitor in by_visitor(events).values():
        found.append([of_visitor[0]])
        for before, after in pairwise(of_visitor):
            if after["time"] - before["time"] >= PAUSE_MS:
                found.append([])
            found[-1].append(after)
    return found


def by_posthog(events: Events) -> int:
    """The number of sessions by PostHog's rule."""
    count = 0
    for of_visitor in by_visitor(events).values():
        begin_ms = last_ms = None
        for each in of_visitor:
            at_ms = each["time"]
            if begin_ms is None or at_ms - last_ms >= PAUSE_MS or at_ms - begin_ms >= DAY_MS:
                begin_ms = at_ms
                count += 1
            last_ms = at_ms
    return count


def by_umami(events: Events) -> Counted:
    """The figures by Umami's rules, for page views that each load a page."""
    views = [each for each in events if each["name"] == "pageview"]
    visits = Counter((each["visitor"], each["time"] // HOUR_MS) for each in views)
    months = {(each["visitor"], f"{at(each):%Y-%m}") for each in views}
    bounces = sum(number == 1 for number in visits.values())
    return Counted(len(months), len(visits), bounces, len(views))


def at(found: dict[str, Any]) -> datetime:
    return datetime.fromtimestamp(found["time"] / 1_000, UTC)


def hours_of(session: Events) -> set[int]:
    return {each["time"] // HOUR_MS for each in session if each["name"] == "pageview"}


def umamis_difference(events: Events) -> int:
    """How many more visits Umami has: one more for each full hour that passes within a session,
    and one less for each session that shares its first hour with the visitor's last one."""
    more = 0
    last: dict[str, int] = {}
    for session in silent_apart(events):
        hours = hours_of(session)
        visitor = session[0]["visitor"]
        more += len(hours) - 1
        if hours:
            more -= last.get(visitor) == min(hours)
            last[visitor] = max(hours)
    return more


def generated(path: Path, number: int) -> Events:
    write_events(path, number, 7)
    found = []
    for line in path.read_text().splitlines():
        try:
            each = json.loads(line)
        except ValueError:
            continue
        if each.get("visitor") and len(each["id"]) >= 8 and not each.get("bot"):
            found.append(each)
    return found


def test_generated_events_are_counted_as_by_posthog(tmp_path: Path) -> None:
    events = once(generated(tmp_path / "events.json", 5_000))
    found = ours(events, tmp_path / "tables")
    assert found.sessions == by_posthog(events) == len(silent_apart(events))
    assert found.visitors == len(by_visitor(events))
    assert found.sessions > found.visitors > 100


def test_umamis_visits_differ_by_the_hours_of_the_clock(tmp_path: Path) -> None:
    events = once(generated(tmp_path / "events.json", 5_000))
    found, other = ours(events, tmp_path / "tables"), by_umami(events)
    assert found.page_views == other.page_views
    assert other.sessions == found.sessions + umamis_difference(events)
    assert other.sessions != found.sessions


def test_a_visitor_of_two_months_is_two_for_umami(tmp_path: Path) -> None:
    events = [event("a", MONDAY_MS), event("b", MONDAY_MS + 40 * DAY_MS)]
    assert ours(events, tmp_path).visitors == 1
    assert by_umami(events).visitors == 2


def test_a_session_of_25_hours_is_two_for_posthog(tmp_path: Path) -> None:
    events = [event(str(n), MONDAY_MS + n * 20 * MINUTE_MS) for n in range(25 * 3 + 1)]
    assert ours(events, tmp_path).sessions == 1
    assert by_posthog(events) == 2


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.integers(0, 400),
            st.sampled_from(["pageview", "pageview", "click"]),
        ),
        min_size=1,
        max_size=40,
    )
)
@settings(max_examples=examples(20), deadline=None)
def test_any_events_are_counted_alike_but_for_what_is_explained(
    tmp_path_factory: Any, found: list[tuple[str, int, str]]
) -> None:
    events = [
        event(str(number), MONDAY_MS + minute * MINUTE_MS, name, visitor=f"visitor-{visitor}")
        for number, (visitor, minute, name) in enumerate(found)
    ]
    counted = ours(events, tmp_path_factory.mktemp("tables"))
    cut = sum(number - 1 for number in (by_posthog(session) for session in silent_apart(events)))
    assert counted.sessions == by_posthog(events) - cut
    assert by_umami(events).sessions == counted.sessions + umamis_difference(events)
    assert by_umami(events).page_views == counted.page_views


def once(events: Iterable[dict[str, Any]]) -> Events:
    """Each id once."""
    return list({each["id"]: each for each in reversed(list(events))}.values())
