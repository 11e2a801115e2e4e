"""Writes the report on user behaviour.

`figures.py` has the numbers, `pictures.py` the pictures, `templates/report.html` the page.
"""

from __future__ import annotations

from pathlib import Path

from barnabas.pipeline.behaviour import pictures
from barnabas.pipeline.behaviour.figures import Figures
from barnabas.pipeline.page import page, words
from barnabas.pipeline.page.page import PageOptions
from barnabas.pipeline.page.pictures import heat_map, histogram

_PACKAGE = "barnabas.pipeline.behaviour"


def write_report(path: Path, figures: Figures, options: PageOptions) -> None:
    """Write the page, whole or not at all."""
    page.write(path, render(figures, options))


def render(figures: Figures, options: PageOptions) -> str:
    """The page as HTML."""
    timeline = figures.timeline
    values: dict[str, object] = {
        "figures": figures,
        "period": words.period(timeline.begin, timeline.end),
        "hits": sum(m.human_hits + m.robot_hits for m in timeline.moments),
        "robot_hits": sum(m.robot_hits for m in timeline.moments),
        "errors": sum(m.errors for m in timeline.moments),
        "traffic": pictures.traffic(timeline),
        "strips": pictures.status_strips(timeline),
        "heat": heat_map(timeline.heat, "page views", "Page views by weekday and hour"),
        "lengths": histogram(figures.lengths, "sessions", "Sessions by length"),
    }
    return page.render(_PACKAGE, "report.html", options, values)
