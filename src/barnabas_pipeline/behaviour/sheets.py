"""Arranges the report's figures as tables for the files next to it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from barnabas_pipeline.accounts import Accounts
from barnabas_pipeline.behaviour.figures import Figures
from barnabas_pipeline.behaviour.headlines import headlines
from barnabas_pipeline.behaviour.rankings import Row
from barnabas_pipeline.page.pictures import WEEKDAYS
from barnabas_pipeline.page.sheets import Sheet


def sheets(figures: Figures) -> list[Sheet]:
    """Return all figures on the page, with longer rankings."""
    return [*_in_short(figures), *_over_time(figures), *_ranked(figures), *_accounted(figures)]


def _in_short(figures: Figures) -> Iterator[Sheet]:
    rows = [(each.name, each.total, each.last, each.before) for each in headlines(figures)]
    yield Sheet("summary", ("figure", "total", "last_period", "period_before"), rows)
    comparison = figures.comparison
    periods = (("last", comparison.last), ("before", comparison.before)) if comparison else ()
    sides = [(name, _minute(period.begin), _minute(period.end)) for name, period in periods]
    yield Sheet("periods", ("period", "begin", "end"), sides)


def _over_time(figures: Figures) -> Iterator[Sheet]:
    timeline = figures.timeline
    yield Sheet(
        "traffic",
        ("begin", "hits_by_people", "hits_by_robots", "page_views_by_people", "errors", "bytes"),
        [(_minute(at), *counts) for at, *counts in timeline.moments],
    )
    yield Sheet(
        "week",
        ("weekday", "hour", "page_views_on_average"),
        [
            (weekday, hour, value)
            for weekday, row in zip(WEEKDAYS, timeline.heat, strict=True)
            for hour, value in enumerate(row)
        ],
    )
    yield Sheet("session_lengths", ("length", "sessions"), figures.lengths)
    yield Sheet("page_views_per_session", ("page_views", "sessions"), figures.depths)
    present = sorted({name for _, counts in timeline.classes for name in counts})
    yield Sheet(
        "responses",
        ("begin", *present),
        [
            (_minute(at), *(counts.get(name, 0) for name in present))
            for at, counts in timeline.classes
        ],
    )
    yield Sheet("statuses", ("status", "hits"), figures.statuses)


def _ranked(figures: Figures) -> Iterator[Sheet]:
    rankings = figures.rankings
    yield Sheet("pages", ("path", "views_by_people", "bytes"), rankings.pages)
    yield Sheet("sources", ("source", "sessions"), _pairs(rankings.sources))
    yield Sheet("entry_pages", ("path", "sessions"), _pairs(rankings.entry_pages))
    yield Sheet("exit_pages", ("path", "sessions"), _pairs(rankings.exit_pages))
    yield Sheet("browsers", ("browser", "visitors"), _pairs(rankings.browsers))
    yield Sheet("systems", ("system", "visitors"), _pairs(rankings.systems))
    yield Sheet("devices", ("device", "visitors"), _pairs(rankings.devices))
    yield Sheet("robots", ("robot", "hits", "bytes"), rankings.robots)
    like_robots = figures.automated
    yield Sheet(
        "like_robots",
        ("visitors", "sessions", "page_views"),
        [(like_robots.visitors, like_robots.sessions, like_robots.pages)],
    )
    yield Sheet("errors", ("path", "hits"), _pairs(rankings.errors))
    yield Sheet("hosts", ("virtual_host", "hits", "bytes"), rankings.hosts)
    yield Sheet("methods", ("request", "hits"), _pairs(rankings.methods))
    times = figures.times
    yield Sheet(
        "response_times",
        ("path", "hits", "p50_us", "p95_us", "p99_us"),
        [*((times.all,) if times.all else ()), *times.paths],
    )
    yield Sheet(
        "not_found",
        ("path", "hits_by_people", "hits_by_robots", "referrer", "hits_by_referrer"),
        [
            (each.path, each.people_hits, each.robot_hits, referrer, hits)
            for each in figures.missing
            for referrer, hits in each.referrers
        ],
    )


def _accounted(figures: Figures) -> Iterator[Sheet]:
    files = [("all", figures.accounts), *figures.files]
    yield Sheet("files", ("file", *Accounts._fields), [(name, *of) for name, of in files])
    yield Sheet("formats", ("format", "lines"), _pairs(figures.rankings.formats))
    yield Sheet(
        "dead_letters",
        ("reason", "lines", "place", "sample"),
        [
            (each.reason, each.lines, where, text)
            for each in figures.dead_letters
            for where, text in each.samples
        ],
    )


def _minute(at: datetime) -> str:
    """Return the minute in the log's local time."""
    return at.isoformat(" ", "minutes")


def _pairs(rows: list[Row]) -> list[tuple[str, int]]:
    return [(row.name, row.total) for row in rows]
