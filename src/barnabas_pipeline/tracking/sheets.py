"""Arranges the figures of the tracking page as tables for the files next to it."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas_pipeline.accounts import Accounts
from barnabas_pipeline.behaviour.rankings import Row
from barnabas_pipeline.page.pictures import WEEKDAYS
from barnabas_pipeline.page.sheets import Sheet
from barnabas_pipeline.tracking.figures import TrackingFigures


def sheets(figures: TrackingFigures) -> list[Sheet]:
    """Return all figures on the page, with longer rankings."""
    return [*_over_time(figures), *_ranked(figures), *_behaviour(figures), *_accounted(figures)]


def _over_time(figures: TrackingFigures) -> Iterator[Sheet]:
    people = figures.people
    yield Sheet(
        "summary",
        ("visitors", "returning_visitors", "sessions", "page_views", "bounces", "late_events"),
        [
            (
                people.visitors,
                figures.returning,
                people.sessions,
                people.pages,
                people.bounces,
                figures.late,
            )
        ],
    )
    yield Sheet(
        "traffic",
        ("begin", "events_by_people", "events_by_robots", "page_views_by_people", "errors"),
        [
            (
                each.at.isoformat(" ", "minutes"),
                each.human_hits,
                each.robot_hits,
                each.human_pages,
                each.errors,
            )
            for each in figures.timeline.moments
        ],
    )
    yield Sheet(
        "week",
        ("weekday", "hour", "page_views_on_average"),
        [
            (weekday, hour, value)
            for weekday, row in zip(WEEKDAYS, figures.timeline.heat, strict=True)
            for hour, value in enumerate(row)
        ],
    )
    yield Sheet("session_lengths", ("length", "sessions"), figures.lengths)
    yield Sheet("page_views_per_session", ("page_views", "sessions"), figures.depths)


def _ranked(figures: TrackingFigures) -> Iterator[Sheet]:
    for name, column, counted, rows in (
        ("hosts", "host", "page_views", figures.hosts),
        ("pages", "path", "page_views", figures.pages),
        ("sources", "source", "sessions", figures.sources),
        ("entry_pages", "path", "sessions", figures.entry_pages),
        ("exit_pages", "path", "sessions", figures.exit_pages),
        ("devices", "device", "page_views", figures.devices),
        ("languages", "language", "page_views", figures.languages),
    ):
        yield Sheet(name, (column, counted), _pairs(rows))
    yield Sheet("names", ("name", "events_by_people", "value"), figures.names)
    yield Sheet("campaigns", ("source", "medium", "campaign", "page_views"), figures.campaigns)
    yield Sheet("next_pages", ("page", "next_page", "times"), figures.next_pages)


def _behaviour(figures: TrackingFigures) -> Iterator[Sheet]:
    yield Sheet(
        "funnels",
        ("funnel", "step", "visits", "lost"),
        [
            (each.funnel.title, step.name, step.visits, step.lost)
            for each in figures.funnels
            for step in each.steps
        ],
    )
    yield Sheet(
        "goals",
        ("goal", "step", "times", "visitors", "share", "value", "last_period", "period_before"),
        [
            (each.goal.title, each.goal.step, *each[1:3], round(each.share, 6), *each[4:])
            for each in figures.goals
        ],
    )
    yield Sheet(
        "retention",
        ("first_week", "weeks_later", "visitors"),
        [
            (cohort.week.isoformat(), number, count)
            for cohort in figures.cohorts
            for number, count in enumerate(cohort.active)
        ],
    )


def _accounted(figures: TrackingFigures) -> Iterator[Sheet]:
    files = [("all", figures.accounts), *figures.files]
    yield Sheet("files", ("file", *Accounts._fields), [(name, *of) for name, of in files])
    yield Sheet(
        "dead_letters",
        ("reason", "events", "place", "sample"),
        [
            (each.reason, each.lines, where, text)
            for each in figures.dead_letters
            for where, text in each.samples
        ],
    )


def _pairs(rows: list[Row]) -> list[tuple[str, int]]:
    return [(row.name, row.total) for row in rows]
