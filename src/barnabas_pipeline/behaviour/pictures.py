"""Draws the user behaviour pictures."""

from __future__ import annotations

from markupsafe import Markup

from barnabas.counted import counted
from barnabas_pipeline.behaviour.timeline import Timeline
from barnabas_pipeline.page import words
from barnabas_pipeline.page.axes import short
from barnabas_pipeline.page.pictures import (
    Frame,
    Intervals,
    across,
    picture,
    stacked_areas,
    text,
    time_axis,
    time_span,
)


def traffic(timeline: Timeline) -> Markup:
    """Draw human and robot hits over time, stacked."""
    moments, step = timeline.moments, timeline.step
    return stacked_areas(
        [m.at for m in moments],
        step,
        [
            (
                m.human_hits,
                m.human_hits + m.robot_hits,
                f"{words.span(m.at, step)}\n{counted(m.human_hits, 'hit')} by people,"
                f" {m.robot_hits:,} by robots\n{counted(m.human_pages, 'page view')},"
                f" {counted(m.errors, 'error')}",
            )
            for m in moments
        ],
        "Hits over time, by people and by robots",
    )


def status_strips(timeline: Timeline) -> Markup:
    """Draw one strip per status class, each on its own scale, so that errors are visible."""
    classes = timeline.classes
    present = sorted({name for _, counts in classes for name in counts})
    strip_height = 64.0
    frame = Frame(34 + strip_height * max(1, len(present)), left=84)
    begin, end = time_span([at for at, _ in classes], timeline.class_step)
    marks = list(time_axis(frame, begin, end))
    intervals = Intervals(frame, len(classes))
    for row, name in enumerate(present):
        floor = frame.top + strip_height * (row + 1) - 8
        values = [counts.get(name, 0) for _, counts in classes]
        largest = max(values) or 1
        tops = [floor - value / largest * (strip_height - 16) for value in values]
        marks.append(intervals.bars(tops, floor, f"c{name}"))
        marks.append(across(floor, "axis"))
        marks.append(text(0, floor - 20, name, "name", dx=-frame.left))
        marks.append(text(0, floor - 3, f"{sum(values):,}", "start", dx=-frame.left))
        marks.append(text(0, floor - strip_height + 24, short(largest), "end", dx=-8))
    for i, (at, counts) in enumerate(classes):
        label = ", ".join(f"{counts.get(name, 0):,} × {name}" for name in present)
        marks.append(intervals.tooltip(i, f"{words.span(at, timeline.class_step)}\n{label}"))
    return picture(frame, "Responses over time, by status class", marks)
