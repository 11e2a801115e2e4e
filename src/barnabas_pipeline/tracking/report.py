"""Writes the tracking page.

`figures.py` reads the numbers, `sheets.py` prepares the files next to the page, and
`templates/report.html` is the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from barnabas.counted import counted
from barnabas_pipeline.application import Report
from barnabas_pipeline.behaviour.rankings import SHOWN
from barnabas_pipeline.behaviour.timeline import Timeline
from barnabas_pipeline.page import page, words
from barnabas_pipeline.page import sheets as page_sheets
from barnabas_pipeline.page.page import PageOptions
from barnabas_pipeline.page.pictures import heat_map, histogram, stacked_areas
from barnabas_pipeline.page.sheets import Sheet
from barnabas_pipeline.tracking.figures import TrackingFigures, read_figures
from barnabas_pipeline.tracking.funnels import Funnel
from barnabas_pipeline.tracking.goals import Goal
from barnabas_pipeline.tracking.headlines import concerns, headlines, summary
from barnabas_pipeline.tracking.sheets import sheets
from barnabas_pipeline.view import View

_PACKAGE = "barnabas_pipeline.tracking"


def write_page(
    view: View,
    path: Path,
    options: PageOptions,
    funnels: Sequence[Funnel] = (),
    goals: Sequence[Goal] = (),
) -> Report:
    """Write the page for a view's tables, and return its results."""
    figures = read_figures(view, funnels, goals)
    made = sheets(figures)
    page_sheets.write(path, made, options)
    page.write(path, render(figures, options, made, page_sheets.folder_of(path).name))
    return Report(
        figures.accounts, summary(figures), figures.dead_letters, repeated=figures.repeated
    )


def render(figures: TrackingFigures, options: PageOptions, made: Sequence[Sheet], data: str) -> str:
    """Return the page as HTML.

    `made`: the figures in the files next to the page; the page links to them in the folder `data`.
    """
    timeline = figures.timeline
    values: dict[str, object] = {
        "figures": figures,
        "site": _site(figures),
        "headlines": headlines(figures),
        "concerns": concerns(figures),
        "calm": "no event was rejected, no silence",
        "shown": SHOWN,
        "data": data,
        "sheets": made,
        "period": words.period(timeline.begin, timeline.end, words.nothing(figures.accounts.read)),
        "events": _events(timeline),
        "heat": heat_map(timeline.heat, "page views", "Page views by weekday and hour"),
        "lengths": histogram(figures.lengths, "sessions", "Sessions by length"),
    }
    return page.render(_PACKAGE, "report.html", options, values)


def _site(figures: TrackingFigures) -> str:
    """Return the name of the site: its main host."""
    if not figures.hosts:
        return "Pages and apps"
    more = len(figures.hosts) - 1
    return figures.hosts[0].name + (f" and {counted(more, 'other host')}" if more else "")


def _events(timeline: Timeline) -> Markup:
    """Draw people's page views and other events over time, stacked."""
    moments, step = timeline.moments, timeline.step
    return stacked_areas(
        [each.at for each in moments],
        step,
        [
            (
                each.human_pages,
                each.human_hits,
                f"{words.span(each.at, step)}\n{counted(each.human_pages, 'page view')},"
                f" {counted(each.human_hits - each.human_pages, 'other event')},"
                f" {counted(each.errors, 'error')}",
            )
            for each in moments
        ],
        "Page views and other events of people over time",
    )
