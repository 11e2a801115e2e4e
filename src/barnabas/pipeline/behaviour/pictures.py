"""The report's pictures, drawn as SVG: sharp at any size, with a tooltip on every mark.

Each function takes numbers and gives one `<svg>` element. Colours are classes, which the page's
style sheet defines for light and dark screens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from markupsafe import Markup, escape

from barnabas.pipeline.axes import round_ticks, short, time_ticks
from barnabas.pipeline.behaviour.timeline import Timeline

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class _Frame(NamedTuple):
    """Where the data goes in a picture; everything in SVG units."""

    width: float
    height: float
    left: float = 46
    right: float = 8
    top: float = 10
    bottom: float = 26

    @property
    def inner_width(self) -> float:
        return self.width - self.left - self.right

    @property
    def inner_height(self) -> float:
        return self.height - self.top - self.bottom

    @property
    def floor(self) -> float:
        return self.height - self.bottom

    def y(self, value: float, largest: float) -> float:
        return self.floor - value / largest * self.inner_height


def traffic(timeline: Timeline) -> Markup:
    """Hits of humans and robots over time, one upon the other."""
    moments = timeline.moments
    frame = _Frame(1120, 300)
    ticks = round_ticks(max((m.human_hits + m.robot_hits for m in moments), default=0))
    largest = ticks[-1]
    begin, end = _span([m.at for m in moments], timeline.step)
    edges = _Edges(frame, len(moments))
    humans = [frame.y(m.human_hits, largest) for m in moments]
    both = [frame.y(m.human_hits + m.robot_hits, largest) for m in moments]
    marks = [
        *_grid(frame, ticks),
        *_time_axis(frame, begin, end),
        edges.area(both, humans, "robots"),
        edges.area(humans, None, "humans"),
        *(
            edges.tooltip(
                i,
                f"{_when(m.at, timeline.step)}\n{m.human_hits:,} hits by people,"
                f" {m.robot_hits:,} by robots\n{m.human_pages:,} page views, {m.errors:,} errors",
            )
            for i, m in enumerate(moments)
        ),
    ]
    return _svg(frame, "Hits over time, by people and by robots", marks)


def status_strips(timeline: Timeline) -> Markup:
    """One strip per status class, each on its own scale: else the errors would not be seen."""
    classes = timeline.classes
    present = sorted({name for _, counts in classes for name in counts})
    strip_height = 64.0
    frame = _Frame(1120, 34 + strip_height * max(1, len(present)), left=92)
    begin, end = _span([at for at, _ in classes], timeline.class_step)
    marks = list(_time_axis(frame, begin, end))
    edges = _Edges(frame, len(classes))
    for row, name in enumerate(present):
        floor = frame.top + strip_height * (row + 1) - 8
        values = [counts.get(name, 0) for _, counts in classes]
        largest = max(values) or 1
        tops = [floor - value / largest * (strip_height - 16) for value in values]
        marks.append(edges.bars(tops, floor, f"c{name}"))
        marks.append(_line(frame.left, floor, frame.width - frame.right, floor, "axis"))
        marks.append(_text(0, floor - 20, name, "name"))
        marks.append(_text(0, floor - 3, f"{sum(values):,}", "small"))
        marks.append(_text(frame.left - 8, floor - strip_height + 24, short(largest), "tick end"))
    for i, (at, counts) in enumerate(classes):
        told = ", ".join(f"{counts.get(name, 0):,} × {name}" for name in present)
        marks.append(edges.tooltip(i, f"{_when(at, timeline.class_step)}\n{told}"))
    return _svg(frame, "Answers over time, by status class", marks)


def heat_map(heat: Sequence[Sequence[float]]) -> Markup:
    """Page views in each hour of the week."""
    cell_width, cell_height, left, top = 27.0, 27.0, 40.0, 6.0
    largest = max((value for row in heat for value in row), default=0) or 1
    frame = _Frame(left + 24 * cell_width + 4, top + 7 * cell_height + 24)
    marks = []
    for weekday, row in enumerate(heat):
        y = top + weekday * cell_height
        marks.append(_text(0, y + 18, WEEKDAYS[weekday][:3], "tick"))
        for hour, value in enumerate(row):
            x = left + hour * cell_width
            told = f"{WEEKDAYS[weekday]}, {hour}:00 to {hour + 1}:00\n{value:,.1f} page views"
            # The square root keeps quiet hours apart; the eye reads areas that way, too.
            strength = (value / largest) ** 0.5
            marks.append(
                Markup(
                    '<rect class="cell" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="4"'
                    ' fill-opacity="{:.2f}"><title>{}</title></rect>'
                ).format(
                    x + 1, y + 1, cell_width - 2, cell_height - 2, 0.06 + 0.94 * strength, told
                )
            )
    for hour in range(0, 24, 3):
        x = left + hour * cell_width + cell_width / 2
        marks.append(_text(x, frame.height - 6, f"{hour}:00", "tick middle"))
    return _svg(frame, "Page views by weekday and hour", marks)


def histogram(rows: Sequence[tuple[str, int]], unit: str) -> Markup:
    """Columns with their counts on top, for few categories in a given order."""
    frame = _Frame(520, 246, left=4, right=4, top=22, bottom=44)
    largest = max((count for _, count in rows), default=0) or 1
    slot = frame.inner_width / max(1, len(rows))
    total = sum(count for _, count in rows) or 1
    marks = []
    for i, (name, count) in enumerate(rows):
        x, y = frame.left + i * slot, frame.y(count, largest)
        marks.append(
            Markup(
                '<rect class="humans" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="3">'
                "<title>{}: {:,} {} ({:.1%})</title></rect>"
            ).format(
                x + 3, y, slot - 6, max(0.5, frame.floor - y), name, count, unit, count / total
            )
        )
        middle = x + slot / 2
        marks.append(_text(middle, y - 6, short(count), "small middle"))
        for line, words in enumerate(_two_lines(name)):
            marks.append(_text(middle, frame.floor + 16 + 13 * line, words, "tick middle"))
    marks.append(_line(frame.left, frame.floor, frame.width - frame.right, frame.floor, "axis"))
    return _svg(frame, f"{unit} by length", marks)


class _Edges:
    """Intervals of equal width side by side, and shapes over them."""

    def __init__(self, frame: _Frame, count: int) -> None:
        self._frame = frame
        self._width = frame.inner_width / max(1, count)

    def _x(self, i: float) -> float:
        return self._frame.left + i * self._width

    def area(self, tops: Sequence[float], bottoms: Sequence[float] | None, style: str) -> Markup:
        """Filled between two lines of steps; `bottoms` None is the floor."""
        if not tops:
            return Markup("")
        floor = [self._frame.floor] * len(tops)
        there = self._steps(tops)
        back = reversed(self._steps(bottoms or floor))
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in (*there, *back))
        return Markup('<path class="{}" d="M{}Z"/>').format(style, path)

    def bars(self, tops: Sequence[float], floor: float, style: str) -> Markup:
        """Columns from `floor` up; one path for all."""
        gap = min(1.0, self._width * 0.15)
        wide = self._width - gap
        path = "".join(
            f"M{self._x(i) + gap / 2:.1f} {floor:.1f}V{top:.1f}h{wide:.2f}V{floor:.1f}Z"
            for i, top in enumerate(tops)
            if floor - top > 0.05
        )
        return Markup('<path class="{}" d="{}"/>').format(style, path)

    def tooltip(self, i: int, told: str) -> Markup:
        return Markup(
            '<rect class="hover" x="{:.2f}" y="{}" width="{:.2f}" height="{}"><title>{}</title>'
            "</rect>"
        ).format(self._x(i), self._frame.top, self._width, self._frame.inner_height, told)

    def _steps(self, heights: Sequence[float]) -> list[tuple[float, float]]:
        if len(heights) < 40:
            return [(self._x(i + e), y) for i, y in enumerate(heights) for e in (0, 1)]
        # Many narrow intervals: a line through their middles is calmer than stairs.
        middles = [(self._x(i + 0.5), y) for i, y in enumerate(heights)]
        return [(self._x(0), heights[0]), *middles, (self._x(len(heights)), heights[-1])]


def _grid(frame: _Frame, ticks: Sequence[float]) -> Iterator[Markup]:
    for tick in ticks:
        y = frame.y(tick, ticks[-1])
        yield _line(frame.left, y, frame.width - frame.right, y, "axis" if tick == 0 else "grid")
        yield _text(frame.left - 8, y + 4, short(tick), "tick end")


def _time_axis(frame: _Frame, begin: datetime, end: datetime) -> Iterator[Markup]:
    span = (end - begin) / timedelta(seconds=1)
    for at, label in time_ticks(begin, end):
        x = frame.left + (at - begin) / timedelta(seconds=1) / span * frame.inner_width
        yield _line(x, frame.top, x, frame.floor + 4, "grid")
        if x < frame.width - frame.right - 44:
            yield _text(x + 4, frame.height - 8, label, "tick")


def _span(times: Sequence[datetime], step: timedelta) -> tuple[datetime, datetime]:
    if not times:
        nothing = datetime.fromisoformat("2001-01-01")  # without zone, as all times here
        return nothing, nothing + step
    return times[0], times[-1] + step


def _when(at: datetime, step: timedelta) -> str:
    day = f"{at:%A}, {at.day} {at:%B %Y}"
    if step >= timedelta(days=1):
        return day
    return f"{day}, {at:%H:%M} to {at + step:%H:%M}"


def _two_lines(name: str) -> list[str]:
    words = name.split(" ")
    return [name] if len(name) < 7 else [" ".join(words[:-1]), words[-1]]


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> Markup:
    return Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(
        style, x1, y1, x2, y2
    )


def _text(x: float, y: float, words: str, style: str) -> Markup:
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>').format(style, x, y, words)


def _svg(frame: _Frame, title: str, marks: Sequence[Markup]) -> Markup:
    return Markup('<svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">{}</svg>').format(
        frame.width, frame.height, title, Markup("").join(escape(mark) for mark in marks)
    )
