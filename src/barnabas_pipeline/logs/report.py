"""Writes the page of system logs.

`figures.py` reads the numbers, `pictures.py` draws the pictures, `sheets.py` prepares the files
next to the page, and `templates/logs.html` is the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Final

from barnabas_formats.catalogue import catalogue
from barnabas_pipeline.application import Report
from barnabas_pipeline.logs import pictures
from barnabas_pipeline.logs.figures import Figures, read_figures
from barnabas_pipeline.logs.headlines import headlines, summary
from barnabas_pipeline.logs.incidents import Incident
from barnabas_pipeline.logs.sheets import sheets
from barnabas_pipeline.page import page, words
from barnabas_pipeline.page import sheets as page_sheets
from barnabas_pipeline.page.page import PageOptions
from barnabas_pipeline.page.sheets import Sheet
from barnabas_pipeline.rejections import are_many, many_rejected, nothing_known
from barnabas_pipeline.view import View

_PACKAGE: Final = "barnabas_pipeline.logs"
_INCIDENTS: Final = 12
_TEMPLATES: Final = 15
_ROWS: Final = 12
_EXAMPLES: Final = 3  # of raw entries
_LONGEST: Final = 200  # characters of a template


def write_page(view: View, path: Path, options: PageOptions) -> Report:
    """Write the page about the tables of the view, and return what it says."""
    figures = read_figures(view, show_addresses=options.show_addresses)
    write_report(path, figures, options)
    failure = nothing_known(figures.lines, figures.raw_lines, figures.raw_samples)
    return Report(figures.accounts, summary(figures), figures.dead_letters, failure)


def write_report(path: Path, figures: Figures, options: PageOptions) -> None:
    """Write the files next to the page, then the page, each atomically."""
    made = sheets(figures)
    page_sheets.write(path, made, options)
    page.write(path, render(figures, options, made, page_sheets.folder_of(path).name))


def render(figures: Figures, options: PageOptions, made: Sequence[Sheet], data: str) -> str:
    """Return the page as HTML.

    `made`: the sheets of its files; the page links to them in the folder `data`.
    """
    systems = figures.known_systems  # raw lines have no times
    nothing = "no known format" if figures.raw_lines else words.nothing(figures.accounts.read)
    begin = min((each.begin for each in systems), default=None)
    end = max((each.end for each in systems), default=None)
    values: dict[str, object] = {
        "figures": figures,
        "rejections": many_rejected(figures.accounts, figures.dead_letters),
        "many_raw": are_many(figures.raw_lines, figures.lines),
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
            (_short(each.text), each.lines, each.format) for each in figures.templates[:_TEMPLATES]
        ],
        "new_templates": [
            each._replace(text=_short(each.text)) for each in figures.new_templates[:_ROWS]
        ],
        "silences": figures.silences[:_ROWS],
        "components": figures.components[:_ROWS],
        "intruders": figures.intruders[:_ROWS],
        "when": _when,
        "between": _between,
        "ago": _long,
    }
    return page.render(_PACKAGE, "logs.html", options, values)


def _formats(figures: Figures) -> list[tuple[str, str, int]]:
    """Return the name, the title and the number of entries of each format found; a user's own
    format has no title."""
    titles = {each.name: each.title for each in catalogue("system")}
    return [(each.name, titles.get(each.name, ""), each.lines) for each in figures.known_systems]


def _incident(incident: Incident, figures: Figures) -> dict[str, object]:
    worst = incident.bursts[0]
    usual = worst.usual_a_minute * worst.minutes
    return {
        "format": incident.format,
        "when": _between(incident.begin, incident.end),
        "text": _short(figures.texts[worst.template]),
        "lines": worst.lines,
        "usual": "usually none" if usual < 0.5 else f"usually {usual:,.0f}",
        "others": len(incident.bursts) - 1,
        "all_lines": incident.lines,
    }


def _short(text: str) -> str:
    """Return a template for display: shortened, and with repeated masks printed once."""
    runs = [(word, len(list(same))) for word, same in groupby(text.split())]
    parts = (
        f"{word} ×{count}" if count > 1 and word.startswith("<") else " ".join([word] * count)
        for word, count in runs
    )
    short = " ".join(parts)
    return short if len(short) <= _LONGEST else f"{short[:_LONGEST]}…"


def _when(at: datetime) -> str:
    return f"{at.day} {at:%b %Y, %H:%M}"


def _between(begin: datetime, end: datetime) -> str:
    last = f"{end:%H:%M}" if begin.date() == end.date() else _when(end)
    return f"{_when(begin)} to {last}"


def _long(duration: timedelta) -> str:
    """Return the duration with at most two units."""
    minutes = int(duration / timedelta(minutes=1))
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} days {hours % 24} h"
