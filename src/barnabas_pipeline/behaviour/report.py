"""Writes the user behaviour report.

`figures.py` reads the numbers, `pictures.py` draws the pictures, `sheets.py` prepares the files
next to the page, and `templates/report.html` is the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from barnabas_formats.catalogue import catalogue
from barnabas_pipeline.application import Report
from barnabas_pipeline.behaviour import attention, pictures
from barnabas_pipeline.behaviour.figures import Figures, read_figures
from barnabas_pipeline.behaviour.headlines import headlines, summary
from barnabas_pipeline.behaviour.rankings import SHOWN
from barnabas_pipeline.behaviour.sheets import sheets
from barnabas_pipeline.page import page, words
from barnabas_pipeline.page import sheets as page_sheets
from barnabas_pipeline.page.page import PageOptions
from barnabas_pipeline.page.pictures import heat_map, histogram
from barnabas_pipeline.page.sheets import Sheet
from barnabas_pipeline.rejections import examples
from barnabas_pipeline.view import View

_PACKAGE = "barnabas_pipeline.behaviour"


def write_page(view: View, path: Path, options: PageOptions) -> Report:
    """Write the page for a view's tables, and return its results."""
    figures = read_figures(view, show_addresses=options.show_addresses)
    write_report(path, figures, options)
    return Report(figures.accounts, summary(figures), figures.dead_letters)


def write_report(path: Path, figures: Figures, options: PageOptions) -> None:
    """Write the files next to the page, then the page, each atomically."""
    made = sheets(figures)
    page_sheets.write(path, made, options)
    page.write(path, render(figures, options, made, page_sheets.folder_of(path).name))


def render(figures: Figures, options: PageOptions, made: Sequence[Sheet], data: str) -> str:
    """Return the page as HTML.

    `made`: the figures in the files next to the page; the page links to them in the folder `data`.
    """
    timeline = figures.timeline
    values: dict[str, object] = {
        "figures": figures,
        "headlines": headlines(figures),
        "concerns": attention.concerns(figures),
        "calm": "no line was rejected, no burst of server errors, no silence",
        "formats": _formats(figures),
        "examples": examples(figures.dead_letters),
        "shown": SHOWN,
        "data": data,
        "sheets": made,
        "period": words.period(timeline.begin, timeline.end, words.nothing(figures.accounts.read)),
        "zone": words.zones(timeline.offsets_minutes),
        "traffic": pictures.traffic(timeline),
        "strips": pictures.status_strips(timeline),
        "heat": heat_map(timeline.heat, "page views", "Page views by weekday and hour"),
        "lengths": histogram(figures.lengths, "sessions", "Sessions by length"),
    }
    return page.render(_PACKAGE, "report.html", options, values)


def _formats(figures: Figures) -> list[tuple[str, int]]:
    """Return the titles of the formats found, with their line counts."""
    titles = {each.name: each.title for each in catalogue("access")}
    return [(titles.get(row.name, row.name), row.total) for row in figures.rankings.formats]
