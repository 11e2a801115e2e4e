"""Visits of a small shop, and the events that its pages sent. What is counted here is counted from
the visits alone, so that it is independent of the tables."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple

from tests.kit.pipeline.event_records import event

BEGIN: Final = date(2026, 3, 2)  # a Monday
DAYS: Final = 28
SCREENS: Final = {"phone": "400x800", "tablet": "800x1200", "desktop": "1600x900"}
CAMPAIGNS: Final = (None, None, None, "spring", "opening")
WAYS: Final = (
    ("/",),
    ("/", "/chairs"),
    ("/", "/chairs", "/basket"),
    ("/tables", "/basket", "/checkout"),
    ("/", "/chairs", "/basket", "/checkout", "purchase"),
    ("/chairs", "error"),
    ("/checkout", "error"),
)
"""The pages of a visit, and the events on the last page."""
EVENTS: Final = ("purchase", "error")
_STEP: Final = timedelta(minutes=2)


class Visit(NamedTuple):
    """A visit, from which there are hours to the visitor's other visits."""

    visitor: str
    begin: datetime
    steps: tuple[str, ...]
    device: str
    campaign: str | None
    language: str

    @property
    def pages(self) -> tuple[str, ...]:
        return tuple(step for step in self.steps if step not in EVENTS)

    @property
    def page_of_error(self) -> str | None:
        return self.pages[-1] if "error" in self.steps else None


def shop_visits(seed: int = 5) -> list[Visit]:
    """Return the visits of four weeks, in their order. Every third one is by a known visitor."""
    chance = random.Random(seed)
    visits: list[Visit] = []
    visitors: list[str] = []
    for day in range(DAYS):
        known = list(visitors)
        for number in range(3 + day % 5):
            begin = datetime(BEGIN.year, BEGIN.month, BEGIN.day, 8, tzinfo=UTC)
            begin += timedelta(days=day, hours=2 * number, minutes=chance.randrange(40))
            if number % 3 == 2 and known:
                visitor = known.pop(chance.randrange(len(known)))
            else:
                visitor = f"visitor-{len(visitors):04}"
                visitors.append(visitor)
            own = random.Random(visitor)  # the device and the language of a visitor do not change
            visits.append(
                Visit(
                    visitor,
                    begin,
                    chance.choice(WAYS),
                    own.choice(list(SCREENS)),
                    chance.choice(CAMPAIGNS),
                    own.choice(("en", "de", "fr")),
                )
            )
    return visits


def events_of(visits: list[Visit]) -> list[dict[str, Any]]:
    """Return the events of these visits."""
    events: list[dict[str, Any]] = []
    for visit in visits:
        page = "/"
        for number, step in enumerate(visit.steps):
            is_page = step not in EVENTS
            page = step if is_page else page
            marks = f"?utm_campaign={visit.campaign}&utm_source=letter" if visit.campaign else ""
            at = visit.begin + number * _STEP
            events.append(
                event(
                    f"event-{len(events):06}",
                    round(at.timestamp() * 1_000),
                    "pageview" if is_page else step,
                    page + (marks if number == 0 else ""),
                    visit.visitor,
                    screen=SCREENS[visit.device],
                    language=visit.language,
                    **({"properties": {"value": 20}} if step == "purchase" else {}),
                )
            )
    return events
