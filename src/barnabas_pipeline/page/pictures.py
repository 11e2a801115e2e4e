"""Draws the parts of a page's pictures as SVG: sharp at any size, with a tooltip on every mark.

A picture fills the available width on the page, and only its shapes are stretched: x coordinates
are shares of the width (0 to 1), y coordinates and text sizes are in pixels. A label has the same
size on a phone and on a wide screen. Colours are CSS classes, which the page's style sheet defines
for light and dark screens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from barnabas_pipeline.page.axes import round_ticks, short, time_ticks

WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

# The maximum number of ticks on a time axis, by class; the style sheet shows the one that fits.
_DENSITIES: Final = (("wide", 12), ("medium", 6), ("narrow", 4))
_STRETCHED: Final = 1000  # the largest x of a path


class Frame(NamedTuple):
    """The data area of a picture; all values are in pixels."""

    height: float
    left: float = 46
    right: float = 8
    top: float = 10
    bottom: float = 26

    @property
    def inner_height(self) -> float:
        return self.height - self.top - self.bottom

    @property
    def floor(self) -> float:
        return self.height - self.bottom

    def y(self, value: float, largest: float) -> float:
        return self.floor - value / largest * self.inner_height


def picture(frame: Frame, title: str, marks: Sequence[Markup]) -> Markup:
    """Return the whole picture; `title` is for screen readers."""
    return Markup(
        '<div class="picture"><svg role="img" aria-label="{}" style="height:{:.0f}px;'
        'margin:0 {:.0f}px 0 {:.0f}px;width:calc(100% - {:.0f}px)">{}</svg></div>'
    ).format(
        title,
        frame.height,
        frame.right,
        frame.left,
        frame.left + frame.right,
        Markup("").join(escape(mark) for mark in marks),
    )


def text(x: float, y: float, words: str, style: str, *, dx: float = 0) -> Markup:
    """Draw a text. `dx`: pixels to the right of x."""
    return Markup('<text class="{}" x="{}" y="{:.1f}" dx="{:.0f}">{}</text>').format(
        style, _percent(x), y, dx, words
    )


def across(y: float, style: str) -> Markup:
    """Draw a line from left to right."""
    return Markup('<line class="{}" x1="0" x2="100%" y1="{:.1f}" y2="{:.1f}"/>').format(style, y, y)


def down(x: float, top: float, bottom: float, style: str) -> Markup:
    """Draw a line from top to bottom."""
    return Markup('<line class="{}" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(
        style, _percent(x), _percent(x), top, bottom
    )


def grid(frame: Frame, ticks: Sequence[float]) -> Iterator[Markup]:
    """Draw horizontal lines, with their numbers on the left."""
    for tick in ticks:
        y = frame.y(tick, ticks[-1])
        yield across(y, "axis" if tick == 0 else "grid")
        yield text(0, y + 4, short(tick), "end", dx=-8)


def time_axis(frame: Frame, begin: datetime, end: datetime) -> Iterator[Markup]:
    """Draw vertical lines at round times, fewer in narrower pictures."""
    for density, most in _DENSITIES:
        for at, label in time_ticks(begin, end, most):
            x = (at - begin) / (end - begin)
            yield down(x, frame.top, frame.floor + 4, f"grid at-{density}")
            shown = _without_weekday(label) if density == "narrow" else label
            yield text(x, frame.height - 6, shown, f"middle at-{density}")


def time_span(times: Sequence[datetime], step: timedelta) -> tuple[datetime, datetime]:
    """Return the time span of the intervals that begin at these times, or an arbitrary span if
    there are none."""
    if not times:
        nothing = datetime.fromisoformat("2001-01-01")  # without a zone, like all times in pictures
        return nothing, nothing + step
    return times[0], times[-1] + step


class Intervals:
    """Draws intervals of equal width side by side, and shapes over them."""

    def __init__(self, frame: Frame, count: int) -> None:
        self._frame = frame
        self._width = 1 / max(1, count)

    def area(self, tops: Sequence[float], bottoms: Sequence[float] | None, style: str) -> Markup:
        """Fill the area between two lines of y coordinates. If `bottoms` is None, the lower line is
        the floor."""
        if not tops:
            return Markup("")
        floor = [self._frame.floor] * len(tops)
        there = self._steps(tops)
        back = reversed(self._steps(bottoms or floor))
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in (*there, *back))
        return self._shape(f"M{path}Z", style)

    def bars(self, tops: Sequence[float], floor: float, style: str) -> Markup:
        """Draw columns from `floor` up, all in one path."""
        return self.columns(tops, [floor] * len(tops), style)

    def columns(self, tops: Sequence[float], bottoms: Sequence[float], style: str) -> Markup:
        """Draw columns between two lines, all in one path, so that they can be stacked."""
        wide = self._width * _STRETCHED
        gap = min(1.0, wide * 0.15)
        path = "".join(
            f"M{self._x(i) + gap / 2:.1f} {bottom:.1f}V{top:.1f}h{wide - gap:.2f}V{bottom:.1f}Z"
            for i, (top, bottom) in enumerate(zip(tops, bottoms, strict=True))
            if bottom - top > 0.05
        )
        return self._shape(path, style)

    def tooltip(self, i: int, label: str) -> Markup:
        return Markup(
            '<rect class="hover" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>'
        ).format(
            _percent(i * self._width),
            self._frame.top,
            _percent(self._width),
            self._frame.inner_height,
            label,
        )

    def _shape(self, path: str, style: str) -> Markup:
        height = self._frame.height
        return Markup(
            '<svg width="100%" height="{:.0f}" viewBox="0 0 {} {:.0f}" preserveAspectRatio="none">'
            '<path class="{}" d="{}"/></svg>'
        ).format(height, _STRETCHED, height, style, path)

    def _x(self, i: float) -> float:
        return i * self._width * _STRETCHED

    def _steps(self, heights: Sequence[float]) -> list[tuple[float, float]]:
        if len(heights) < 40:
            return [(self._x(i + e), y) for i, y in enumerate(heights) for e in (0, 1)]
        # For many narrow intervals, a line through their midpoints looks calmer than steps.
        middles = [(self._x(i + 0.5), y) for i, y in enumerate(heights)]
        return [(self._x(0), heights[0]), *middles, (self._x(len(heights)), heights[-1])]


def stacked_areas(
    times: Sequence[datetime],
    step: timedelta,
    intervals: Sequence[tuple[float, float, str]],
    title: str,
) -> Markup:
    """Draw two series over time, the second on top of the first.

    `times`: the beginnings of the intervals. `intervals`: for each of them, the value of the first
    series, the sum of both series, and the tooltip.
    """
    frame = Frame(300)
    ticks = peak_ticks([both for _, both, _ in intervals])
    begin, end = time_span(times, step)
    drawn = Intervals(frame, len(times))
    middles = [frame.y(first, ticks[-1]) for first, _, _ in intervals]
    tops = [frame.y(both, ticks[-1]) for _, both, _ in intervals]
    marks = [
        *grid(frame, ticks),
        *time_axis(frame, begin, end),
        drawn.area(tops, middles, "second"),
        drawn.area(middles, None, "first"),
        *(drawn.tooltip(i, label) for i, (_, _, label) in enumerate(intervals)),
    ]
    return picture(frame, title, marks)


def heat_map(heat: Sequence[Sequence[float]], unit: str, title: str) -> Markup:
    """Draw a number for each hour of the week: one row of 24 hours per day, starting with
    Monday."""
    cell = 27.0
    frame = Frame(7 * cell + 28, left=38, right=2, top=2)
    largest = max((value for row in heat for value in row), default=0) or 1
    marks = []
    for weekday, row in enumerate(heat):
        y = frame.top + weekday * cell
        marks.append(text(0, y + 18, WEEKDAYS[weekday][:3], "start", dx=-frame.left))
        for hour, value in enumerate(row):
            label = f"{WEEKDAYS[weekday]}, {hour}:00 to {hour + 1}:00\n{value:,.1f} {unit}"
            # The square root keeps quiet hours distinguishable, and matches how the eye reads
            # areas.
            strength = 0.06 + 0.94 * (value / largest) ** 0.5
            marks.append(
                Markup(
                    '<rect class="cell" x="{}" y="{:.1f}" width="{}" height="{:.1f}" rx="5"'
                    ' fill-opacity="{:.2f}"><title>{}</title></rect>'
                ).format(_percent(hour / 24), y, _percent(1 / 24), cell, strength, label)
            )
    for hour in range(0, 24, 3):
        style = "middle" if hour % 6 == 0 else "middle roomy"
        marks.append(text((hour + 0.5) / 24, frame.height - 6, f"{hour}:00", style))
    return picture(frame, title, marks)


def histogram(rows: Sequence[tuple[str, int]], unit: str, title: str) -> Markup:
    """Draw columns for a few categories, in order, with their counts on top."""
    frame = Frame(217, left=0, right=0, top=22, bottom=42)
    largest = max((count for _, count in rows), default=0) or 1
    slot = 1 / max(1, len(rows))
    total = sum(count for _, count in rows) or 1
    marks = []
    for i, (name, count) in enumerate(rows):
        y = frame.y(count, largest)
        marks.append(
            Markup(
                '<rect class="first" x="{}" y="{:.1f}" width="{}" height="{:.1f}" rx="3">'
                "<title>{}: {:,} {} ({:.1%})</title></rect>"
            ).format(
                _percent((i + 0.08) * slot),
                y,
                _percent(0.84 * slot),
                max(0.5, frame.floor - y),
                *(name, count, unit, count / total),
            )
        )
        middle = (i + 0.5) * slot
        marks.append(text(middle, y - 6, short(count), "middle"))
        for line, words in enumerate(_two_lines(name)):
            marks.append(text(middle, frame.floor + 16 + 14 * line, words, "middle dense"))
    return picture(frame, title, [*marks, across(frame.floor, "axis")])


def peak_ticks(values: Sequence[float]) -> list[float]:
    """Return round numbers from 0 to the largest of these values, or just above it."""
    return round_ticks(max(values, default=0))


def _without_weekday(label: str) -> str:
    """Shorten "Tue 3 Mar" to "3 Mar"."""
    return label.split(" ", 1)[1] if label.count(" ") == 2 else label


def _two_lines(name: str) -> list[str]:
    first, _, rest = name.partition(" ")
    return [first, rest] if rest else [first]


def _percent(x: float) -> str:
    return f"{100 * x:.3f}".rstrip("0").rstrip(".") + "%"
