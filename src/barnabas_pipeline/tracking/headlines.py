"""Defines the figures at the top of the tracking page, and its list of what needs attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from barnabas.counted import counted
from barnabas_pipeline.accounts import Accounts, DeadLetters
from barnabas_pipeline.behaviour.attention import gaps
from barnabas_pipeline.behaviour.comparison import Period
from barnabas_pipeline.behaviour.timeline import Timeline
from barnabas_pipeline.page import words
from barnabas_pipeline.page.attention import MOST, Concern
from barnabas_pipeline.rejections import are_many, examples
from barnabas_pipeline.tracking.figures import TrackingFigures

DEAD_LETTERS: Final = "Dead letters"
TRAFFIC: Final = "Events"
DEFINITIONS: Final = {
    "visitors": "Different visitor ids of people. People who came back have more than one session.",
    "sessions": "People's sessions. A session ends after 30 minutes without an event.",
    "page_views": "Events named pageview in people's sessions.",
    "bounce_rate": (
        "People's sessions with one page view, as a share of sessions with at least one."
    ),
    "median_session_seconds": "Half of people's sessions are shorter.",
    "events": "Different event ids. A late event arrived more than ten minutes after it happened.",
    "value": "The sum of the property value over people's events.",
}
"""The definition of each figure at the top of the page."""


class Headline(NamedTuple):
    """A figure, with its definition, its change, and the file from which it can be recomputed."""

    name: str
    text: str
    label: str
    about: str
    definition: str
    file: str
    last: str = ""
    change: str = ""


def headlines(figures: TrackingFigures) -> list[Headline]:
    """Return the headlines, in page order."""
    return [*_of_sessions(figures), *_of_events(figures)]


def _of_sessions(figures: TrackingFigures) -> list[Headline]:
    people = figures.people
    return [
        Headline(
            "visitors",
            words.number(people.visitors),
            "visitor" if people.visitors == 1 else "visitors",
            f"{figures.returning:,} came back",
            DEFINITIONS["visitors"],
            "summary.csv",
            *_change(figures, lambda period: period.people.visitors),
        ),
        Headline(
            "sessions",
            words.number(people.sessions),
            "session" if people.sessions == 1 else "sessions",
            f"{people.open:,} still open",
            DEFINITIONS["sessions"],
            "page_views_per_session.csv",
            *_change(figures, lambda period: period.people.sessions),
        ),
        Headline(
            "page_views",
            words.number(people.pages),
            "page view" if people.pages == 1 else "page views",
            f"{people.pages_per_session:.1f} per session that has any",
            DEFINITIONS["page_views"],
            "page_views_per_session.csv",
            *_change(figures, lambda period: period.people.pages),
        ),
        Headline(
            "bounce_rate",
            words.percent(people.bounce_rate),
            "bounce rate",
            f"{people.bounces:,} of {counted(people.with_pages, 'session')} with pages",
            DEFINITIONS["bounce_rate"],
            "page_views_per_session.csv",
            *_change(figures, lambda period: period.people.bounce_rate, is_share=True),
        ),
        Headline(
            "median_session_seconds",
            words.duration(people.median_length_s),
            "median session",
            "from first event to last",
            DEFINITIONS["median_session_seconds"],
            "session_lengths.csv",
        ),
    ]


def _of_events(figures: TrackingFigures) -> Iterator[Headline]:
    events = figures.accounts.valid
    yield Headline(
        "events",
        words.number(events),
        "event" if events == 1 else "events",
        f"{figures.robots:,} by robots, {figures.late:,} late",
        DEFINITIONS["events"],
        "traffic.csv",
    )
    value = sum(each.value for each in figures.names)
    if value:
        yield Headline(
            "value",
            f"{value:,.2f}",
            "value of events",
            "the sum of the property value",
            DEFINITIONS["value"],
            "names.csv",
        )


def _change(
    figures: TrackingFigures, value: Callable[[Period], float], *, is_share: bool = False
) -> tuple[str, str]:
    """Return the value in the last period, and how it differs from the period before."""
    comparison = figures.comparison
    if comparison is None:
        return "", ""
    last, before = value(comparison.last), value(comparison.before)
    if is_share:
        return words.percent(last), words.points(last, before)
    return words.number(last), words.change(last, before)


def concerns(figures: TrackingFigures) -> list[Concern]:
    """Return what needs attention, the most urgent first."""
    return concerns_of(figures.accounts, figures.dead_letters, figures.timeline)


def concerns_of(
    accounts: Accounts, letters: Sequence[DeadLetters], timeline: Timeline
) -> list[Concern]:
    """Return what needs attention in these figures, the most urgent first."""
    return [*_rejected(accounts, letters), *_silences(timeline)]


def _rejected(accounts: Accounts, letters: Sequence[DeadLetters]) -> Iterator[Concern]:
    rejected = accounts.dead_letters
    if not letters:
        return
    known = accounts.valid + rejected
    yield Concern(
        f"{counted(rejected, 'event')} {'was' if rejected == 1 else 'were'} rejected",
        f"of {counted(known, 'event')}; the figures below do not include them",
        DEAD_LETTERS,
        is_urgent=are_many(rejected, known),
        reasons=[(each.reason, each.lines) for each in letters],
        examples=[(f"{place}: {reason}", text) for reason, place, text in examples(letters)],
    )


def _silences(timeline: Timeline) -> Iterator[Concern]:
    for each in gaps(timeline)[:MOST]:
        yield Concern(
            f"No event for {words.duration((each.end - each.begin).total_seconds())}",
            f"from {words.short_moment(each.begin)} to {words.short_moment(each.end)}, where about"
            f" {each.missing:,.0f} would be expected",
            TRAFFIC,
            span=(each.begin, each.end),
        )


def summary(figures: TrackingFigures) -> list[tuple[str, str]]:
    """Return a short summary of a run for the terminal, as (label, text) pairs."""
    people = figures.people
    lines = [
        (
            "people",
            f"{counted(people.visitors, 'visitor')}, {counted(people.sessions, 'session')}"
            f" ({people.open:,} open), {counted(people.pages, 'page view')},"
            f" bounce rate {people.bounce_rate:.0%}",
        )
    ]
    if figures.late:
        lines.append(
            (
                "late",
                f"{counted(figures.late, 'event')} arrived more than 10 min after they happened",
            )
        )
    for goal in figures.goals:
        value = f", value {goal.value:,.2f}" if goal.value else ""
        lines.append(
            (
                "goal",
                f"{goal.goal.title}: {counted(goal.times, 'time')}, by"
                f" {counted(goal.visitors, 'visitor')} ({words.percent(goal.share)}){value}",
            )
        )
    for funnel in figures.funnels:
        steps = " > ".join(f"{step.name} {step.visits:,}" for step in funnel.steps)
        lines.append(("funnel", f"{funnel.funnel.title}: {steps} ({funnel.conversion:.1%})"))
    if figures.dead_letters:
        reasons = ", ".join(f"{each.lines:,} {each.reason}" for each in figures.dead_letters)
        lines.append(("rejected", reasons))
    return lines
