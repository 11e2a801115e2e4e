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
from barnabas_pipeline.page.pictures import (
    Frame,
    Intervals,
    grid,
    heat_map,
    histogram,
    peak_ticks,
    picture,
    time_axis,
    time_span,
)
from barnabas_pipeline.page.sheets import Sheet
from barnabas_pipeline.tracking.figures import TrackingFigures, read_figures
from barnabas_pipeline.tracking.funnels import Funnel
from barnabas_pipeline.tracking.headlines import concerns, headlines, summary
from barnabas_pipeline.tracking.sheets import sheets
from barnabas_pipeline.view import View

_PACKAGE = "barnabas_pipeline.tracking"


def write_page(
    view: View, path: Path, options: PageOptions, funnels: Sequence[Funnel] = ()
) -> Report:
    """Write the page for a view's tables, and return its results."""
    figures = read_figures(view, funnels)
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
    moments = timeline.moments
    frame = Frame(300)
    ticks = peak_ticks([each.human_hits for each in moments])
    begin, end = time_span([each.at for each in moments], timeline.step)
    intervals = Intervals(frame, len(moments))
    pages = [frame.y(each.human_pages, ticks[-1]) for each in moments]
    all_events = [frame.y(each.human_hits, ticks[-1]) for each in moments]
    marks = [
        *grid(frame, ticks),
        *time_axis(frame, begin, end),
        intervals.area(all_events, pages, "second"),
        intervals.area(pages, None, "first"),
        *(
            intervals.tooltip(
                i,
                f"{words.span(each.at, timeline.step)}\n{counted(each.human_pages, 'page view')},"
                f" {counted(each.human_hits - each.human_pages, 'other event')},"
                f" {counted(each.errors, 'error')}",
            )
            for i, each in enumerate(moments)
        ),
    ]
    return picture(frame, "Page views and other events of people over time", marks)
