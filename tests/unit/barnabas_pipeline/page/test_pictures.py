"""The frame of the pictures: what is stretched, and what is not."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from xml.etree import ElementTree

import pytest
from markupsafe import Markup

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

BEGIN = datetime.fromisoformat("2026-03-02")
HOUR = timedelta(hours=1)


def curve(count: int) -> Markup:
    frame, values = Frame(300), [i % 7 for i in range(count)]
    begin, end = time_span([BEGIN + i * HOUR for i in range(count)], HOUR)
    ticks = peak_ticks(values)
    intervals = Intervals(frame, count)
    tops = [frame.y(value, ticks[-1]) for value in values]
    marks = [*grid(frame, ticks), *time_axis(frame, begin, end)]
    marks += [intervals.area(tops, None, "first"), intervals.bars(tops, frame.floor, "second")]
    return picture(frame, "<title>", [*marks, *(intervals.tooltip(i, "<&>") for i in range(count))])


PICTURES = {
    "none": curve(0),
    "one": curve(1),
    "many": curve(400),
    "heat": heat_map([[float(hour) for hour in range(24)]] * 7, "views", "A week"),
    "no heat": heat_map([[0.0] * 24] * 7, "views", "A week"),
    "histogram": histogram([("<&>", 3), ("10–29 min", 0)], "sessions", "Lengths"),
    "no histogram": histogram([], "sessions", "Lengths"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_text_is_never_stretched(name: str) -> None:
    """Where a viewBox scales, 12 pixels are 5 on a telephone."""
    root = ElementTree.fromstring(PICTURES[name])
    stretched = [svg for svg in root.iter("svg") if "viewBox" in svg.attrib]
    assert not [text for svg in stretched for text in svg.iter("text")]
    assert "viewBox" not in root[0].attrib
    assert not re.search("nan|inf", PICTURES[name])


@pytest.mark.parametrize("name", PICTURES)
def test_all_that_is_not_stretched_lies_in_shares_of_the_width(name: str) -> None:
    root = ElementTree.fromstring(PICTURES[name])
    for mark in (*root.iter("text"), *root.iter("rect")):
        assert 0 <= float(mark.attrib["x"].removesuffix("%")) <= 100, mark.attrib
        assert mark.attrib["x"].endswith("%")


def test_a_time_axis_has_fewer_labels_where_there_is_less_room() -> None:
    axis = Markup("").join(time_axis(Frame(300), BEGIN, BEGIN + 14 * 24 * HOUR))
    counts = [axis.count(f"middle at-{density}") for density in ("wide", "medium", "narrow")]
    assert counts == sorted(counts, reverse=True) and 2 <= counts[2] <= 5 and counts[0] >= 7
