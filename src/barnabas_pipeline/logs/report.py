"""Writes the system log page.

`figures.py` reads the numbers, `pictures.py` draws the pictures, `sheets.py` prepares the files
next to the page, and `templates/logs.html` is the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from barnabas_formats.catalogue import catalogue
from barnabas_pipeline.application import Report
from barnabas_pipeline.logs import attention, phrases, pictures
from barnabas_pipeline.logs.figures import Figures, read_figures
from barnabas_pipeline.logs.headlines import headlines, summary
from barnabas_pipeline.logs.incidents import Incident
from barnabas_pipeline.logs.sheets import sheets
from barnabas_pipeline.page import page, words
from barnabas_pipeline.page import sheets as page_sheets
from barnabas_pipeline.page.page import PageOptions
from barnabas_pipeline.page.sheets import Sheet
from barnabas_pipeline.rejections import nothing_known
from barnabas_pipeline.view import View

_PACKAGE: Final = "barnabas_pipeline.logs"
_INCIDENTS: Final = 12
_TEMPLATES: Final = 15
_ROWS: Final = 12
_EXAMPLES: Final = 3  # of raw entries
_HOSTS: Final = 3


def write_page(view: View, path: Path, options: PageOptions) -> Report:
    """Write the page for a view's tables, and return its results."""
    figures = read_figures(view, show_addresses=options.show_addresses)
    write_report(path, figures, options)
    failure = nothing_known(figures.lines, figures.raw_lines, figures.raw_samples)
    return Report(figures.accounts, summary(figures), figures.dead_letters, failure)


def write_report(path: Path, figures: Figures, options: PageOptions) -> None:
    """Write the files next to the page, and then the page, each atomically."""
    made = sheets(figures)
    page_sheets.write(path, made, options)
    page.write(path, render(figures, options, made, page_sheets.folder_of(path).name))


def render(figures: Figures, options: PageOptions, made: Sequence[Sheet], data: str) -> str:
    """Return the page as HTML.

    `made`: the figures in the files next to the page; the page links to them in the folder `data`.
    """
    systems = figures.known_systems  # raw lines have no times
    nothing = "no known format" if figures.raw_lines else words.nothing(figures.accounts.read)
    begin = min((each.begin for each in systems), default=None)
    end = max((each.end for each in systems), default=None)
    values: dict[str, object] = {
        "figures": figures,
        "concerns": attention.concerns(figures),
        "calm": "no break-in, no burst, no silent component, no unknown format",
        "hosts": _hosts(figures),
        "headlines": headlines(figures),
        "data": data,
        "sheets": made,
        "period": words.period(begin, end, nothing),
        "formats": _formats(figures),
        "raw_samples": figures.raw_samples[:_EXAMPLES],
        "systems": [(each, pictures.levels(each)) for each in systems],
        "styles": pictures.STYLES,
        "incidents": [_incident(each, figures) for each in figures.incidents[:_INCIDENTS]],
        "templates": [
            (phrases.short(each.text), each.lines, each.format)
            for each in figures.templates[:_TEMPLATES]
        ],
        "new_templates": [
            each._replace(text=phrases.short(each.text)) for each in figures.new_templates[:_ROWS]
        ],
        "silences": figures.silences[:_ROWS],
        "components": figures.components[:_ROWS],
        "intruders": figures.intruders[:_ROWS],
        "when": phrases.when,
        "between": phrases.between,
        "ago": phrases.long,
    }
    return page.render(_PACKAGE, "logs.html", options, values)


def _hosts(figures: Figures) -> str:
    """Return the names of the log's hosts, or the number of hosts if there are many."""
    names = [name for name, _ in figures.hosts]
    return ", ".join(names) if len(names) <= _HOSTS else f"{len(names)} hosts"


def _formats(figures: Figures) -> list[tuple[str, str, int]]:
    """Return each format's name, title and number of entries; a user's own format has no title."""
    titles = {each.name: each.title for each in catalogue("system")}
    return [(each.name, titles.get(each.name, ""), each.lines) for each in figures.known_systems]


def _incident(incident: Incident, figures: Figures) -> dict[str, object]:
    worst = incident.bursts[0]
    return {
        "format": incident.format,
        "when": phrases.between(incident.begin, incident.end),
        "text": phrases.short(figures.texts[worst.template]),
        "lines": worst.lines,
        "usual": attention.usual_of(incident),
        "others": len(incident.bursts) - 1,
        "all_lines": incident.lines,
    }
