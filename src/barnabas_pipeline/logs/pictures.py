"""Draws the system log pictures."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from barnabas_formats.levels import LEVELS
from barnabas_pipeline.logs.figures import NO_LEVEL, System
from barnabas_pipeline.page import words
from barnabas_pipeline.page.pictures import (
    Frame,
    Intervals,
    grid,
    peak_ticks,
    picture,
    time_axis,
    time_span,
)

STYLES: Final = {
    "FATAL": "bad",
    "ERROR": "bad",
    "WARN": "warning",
    "INFO": "first",
    "DEBUG": "moved",
    "TRACE": "moved",
    NO_LEVEL: "plain",
}
"""The class for each level in the style sheet."""
# The most severe level is at the bottom, where a small number is most visible.
_ORDER: Final = (*LEVELS, NO_LEVEL)


def levels(system: System) -> Markup:
    """Draw the lines of one format over time, stacked by level."""
    moments = system.moments
    frame = Frame(170, bottom=24)
    ticks = peak_ticks([sum(each.by_level.values()) for each in moments])
    begin, end = time_span([each.at for each in moments], system.step)
    intervals = Intervals(frame, len(moments))
    marks = [*grid(frame, ticks), *time_axis(frame, begin, end)]
    below = [0] * len(moments)
    for level in _ORDER:
        if level not in system.by_level:
            continue
        above = [at + each.by_level.get(level, 0) for at, each in zip(below, moments, strict=True)]
        tops = [frame.y(value, ticks[-1]) for value in above]
        bottoms = [frame.y(value, ticks[-1]) for value in below]
        marks.append(intervals.columns(tops, bottoms, STYLES[level]))
        below = above
    for i, each in enumerate(moments):
        counts = [f"{each.by_level[level]:,} {level}" for level in _ORDER if level in each.by_level]
        label = ", ".join(counts) or "nothing"
        marks.append(intervals.tooltip(i, f"{words.span(each.at, system.step)}\n{label}"))
    return picture(frame, f"Lines of {system.name} over time, by level", marks)
