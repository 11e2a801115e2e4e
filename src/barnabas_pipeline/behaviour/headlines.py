"""Defines the figures at the top of the page, with their values for the latest days and the
previous ones.

Each can be recomputed from the files next to the page, as a test does:

    visitors      people, by address and agent: `visitors` in browsers.csv
    sessions      people's sessions: `sessions` in page_views_per_session.csv, session_lengths.csv
    page views    people's page views: `page_views_by_people` in traffic.csv; the mean per session
                  counts only sessions with a page view
    bounce rate   sessions with one page view, of those with any: page_views_per_session.csv
    median        from a session's first hit to its last
    robots        share of all hits in traffic.csv; the robots are the rows of robots.csv
    errors        4xx and 5xx responses: `errors` in traffic.csv, as a share of all hits
    bytes         `bytes` in traffic.csv
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.counted import counted
from barnabas_pipeline.behaviour.comparison import Comparison, Period
from barnabas_pipeline.behaviour.figures import Figures
from barnabas_pipeline.behaviour.visits import SessionFigures
from barnabas_pipeline.page import words

Number = int | float

DEFINITIONS: Final = {
    "visitors": ("People's different pairs of address and user agent.", "browsers.csv"),
    "sessions": (
        "People's sessions. A session ends after 30 minutes without a hit.",
        "page_views_per_session.csv",
    ),
    "page_views": (
        "People's successful GET requests for anything but images, scripts, style sheets and"
        " downloads.",
        "traffic.csv",
    ),
    "bounce_rate": (
        "People's sessions with one page view, of those with any.",
        "page_views_per_session.csv",
    ),
    "median_session_seconds": (
        "Half of people's sessions are shorter, from their first hit to their last.",
        "session_lengths.csv",
    ),
    "robot_share": ("Hits by robots, of all hits.", "traffic.csv"),
    "error_share": ("Responses with a status of 400 or above, of all responses.", "traffic.csv"),
    "bytes_sent": ("The sizes of all responses, to people and to robots.", "traffic.csv"),
}
"""The definition of each figure, and the file from which it can be recomputed."""


class Headline(NamedTuple):
    """A headline, with numbers for the files and texts for the page."""

    name: str
    label: str
    about: str
    total: Number
    last: Number | None  # None if the log is too short
    before: Number | None
    shown: Callable[[Number], str]
    is_share: bool = False

    @property
    def definition(self) -> str:
        return DEFINITIONS[self.name][0]

    @property
    def file(self) -> str:
        """Return the name of the file from which the total can be recomputed."""
        return DEFINITIONS[self.name][1]

    @property
    def text(self) -> str:
        return self.shown(self.total)

    @property
    def last_text(self) -> str:
        return "" if self.last is None else self.shown(self.last)

    @property
    def change(self) -> str:
        """Return the change between the two periods, or an empty string if the log is too short for
        two periods.
        """
        if self.last is None or self.before is None:
            return ""
        difference = words.points if self.is_share else words.change
        return difference(self.last, self.before)


def headlines(figures: Figures) -> list[Headline]:
    """Return the headlines, in page order."""
    return [*_of_people(figures), *_of_hits(figures)]


def _of_people(figures: Figures) -> list[Headline]:
    of, comparison = figures.humans, figures.comparison
    return [
        Headline(
            "visitors",
            "visitors" if of.visitors != 1 else "visitor",
            "people, by address and browser",
            of.visitors,
            *_both(comparison, lambda period: period.people.visitors),
            words.number,
        ),
        Headline(
            "sessions",
            "sessions" if of.sessions != 1 else "session",
            f"{of.open:,} still open",
            of.sessions,
            *_both(comparison, lambda period: period.people.sessions),
            words.number,
        ),
        Headline(
            "page_views",
            "page views" if of.pages != 1 else "page view",
            f"{of.pages_per_session:.1f} per session that has any",
            of.pages,
            *_both(comparison, lambda period: period.people.pages),
            words.number,
        ),
        Headline(
            "bounce_rate",
            "bounce rate",
            f"{of.bounces:,} of {counted(of.with_pages, 'session')} with pages",
            of.bounce_rate,
            *_both(comparison, lambda period: period.people.bounce_rate),
            words.percent,
            is_share=True,
        ),
        Headline(
            "median_session_seconds",
            "median session",
            "from first hit to last",
            of.median_length_s,
            *_both(comparison, lambda period: period.people.median_length_s),
            words.duration,
        ),
    ]


def _of_hits(figures: Figures) -> list[Headline]:
    hits, comparison = figures.hits, figures.comparison
    return [
        Headline(
            "robot_share",
            "of hits are from robots",
            f"{counted(len(figures.rankings.robots), 'robot')}, "
            f"{counted(figures.robot_hits, 'hit')}",
            figures.robot_hits / hits if hits else 0.0,
            *_both(comparison, lambda period: period.robot_share),
            words.percent,
            is_share=True,
        ),
        Headline(
            "error_share",
            "of responses are errors",
            f"{counted(figures.errors, 'response')} 4xx or 5xx",
            figures.errors / hits if hits else 0.0,
            *_both(comparison, lambda period: period.error_share),
            words.percent,
            is_share=True,
        ),
        Headline(
            "bytes_sent",
            "sent",
            f"in {counted(hits, 'response')}",
            figures.timeline.size_bytes,
            *_both(comparison, lambda period: period.size_bytes),
            words.size,
        ),
    ]


def _both(
    comparison: Comparison | None, value: Callable[[Period], Number]
) -> tuple[Number | None, Number | None]:
    if comparison is None:
        return None, None
    return value(comparison.last), value(comparison.before)


def summary(figures: Figures) -> list[tuple[str, str]]:
    """Return a short summary of a run for the terminal, as (label, text) pairs."""
    humans, robots = figures.humans, figures.robots
    reasons = ", ".join(f"{letters.lines:,} {letters.reason}" for letters in figures.dead_letters)
    lines = [
        (
            "people",
            f"{_sessions(humans)}, bounce rate {humans.bounce_rate:.0%}",
        ),
        (
            "robots",
            _sessions(robots),
        ),
    ]
    if reasons:
        lines.append(("rejected", reasons))
    return lines


def _sessions(of: SessionFigures) -> str:
    return (
        f"{counted(of.visitors, 'visitor')}, {counted(of.sessions, 'session')} ({of.open:,} open),"
        f" {counted(of.pages, 'page view')}"
    )
