"""Writes the report: one page that needs nothing else, neither a network nor a script.

`figures.py` has the numbers, `pictures.py` the pictures, `templates/report.html` the page.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from barnabas.pipeline.behaviour import pictures
from barnabas.pipeline.behaviour.figures import Figures, Ranking


def write_report(path: Path, figures: Figures) -> None:
    """Write the page, whole or not at all."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(render(figures), "utf-8")
    temporary.replace(path)


def render(figures: Figures) -> str:
    """The page as HTML."""
    environment = Environment(
        loader=PackageLoader("barnabas.pipeline.behaviour"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=_number, percent=_percent, duration=_duration, size=_size, share=_share
    )
    timeline = figures.timeline
    return environment.get_template("report.html").render(
        figures=figures,
        interval=_interval(timeline.step),
        period=_period(timeline.begin, timeline.end),
        hits=sum(m.human_hits + m.robot_hits for m in timeline.moments),
        robot_hits=sum(m.robot_hits for m in timeline.moments),
        errors=sum(m.errors for m in timeline.moments),
        traffic=pictures.traffic(timeline),
        strips=pictures.status_strips(timeline),
        heat=pictures.heat_map(timeline.heat),
        lengths=pictures.histogram(figures.lengths, "sessions"),
    )


def _number(value: int) -> str:
    return f"{value:,}"


def _percent(part: float, whole: float = 1.0) -> str:
    if not whole:
        return "–"
    share = part / whole
    return f"{share:.1%}" if 0 < share < 0.1 else f"{share:.0%}"


def _share(row: tuple[str, int], ranking: Ranking) -> str:
    """A row's length in its ranking, for a style sheet."""
    largest = max((count for _, count in ranking.rows), default=0) or 1
    return f"{row[1] / largest:.1%}"


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def _interval(step: timedelta) -> str:
    seconds = int(step.total_seconds())
    for unit, name in ((604_800, "week"), (86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds % unit == 0:
            count = seconds // unit
            return name if count == 1 else f"{count} {name}s"
    return f"{seconds} seconds"


def _size(size_bytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size_bytes < 1000 or unit == "TB":
            break
        size_bytes /= 1000
    return (
        f"{size_bytes:.0f} {unit}"
        if size_bytes >= 10 or unit == "B"
        else f"{size_bytes:.1f} {unit}"
    )


def _period(begin: datetime | None, end: datetime | None) -> str:
    if begin is None or end is None:
        return "nothing yet"
    if begin.date() == end.date():
        return f"{begin:%A}, {begin.day} {begin:%B %Y}"
    if begin.year == end.year:
        return f"{begin.day} {begin:%B} to {end.day} {end:%B %Y}"
    return f"{begin.day} {begin:%B %Y} to {end.day} {end:%B %Y}"
