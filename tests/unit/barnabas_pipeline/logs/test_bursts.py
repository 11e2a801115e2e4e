"""Bursts and silences: what is far from usual, and what is not (SP-2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl

from barnabas_pipeline.logs.bursts import Burst, bursts
from barnabas_pipeline.logs.incidents import incidents
from barnabas_pipeline.logs.silences import silences

START = datetime(2026, 3, 12, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def found(counts: dict[str, list[int]]) -> list[Burst]:
    """By template, its lines in each minute."""
    rows = [
        (START + i * MINUTE, template, lines)
        for template, each in counts.items()
        for i, lines in enumerate(each)
        if lines
    ]
    minutes = pl.DataFrame(
        rows,
        schema={"minute": pl.Datetime("us", "UTC"), "template": pl.String, "lines": pl.Int64},
        orient="row",
    )
    names = pl.Series("template", list(counts), dtype=pl.String)
    return bursts(minutes, names.to_frame().with_columns(pl.lit("f").alias("format")))


def test_sp_2_minutes_side_by_side_are_one_burst() -> None:
    (burst,) = found({"a": [2] * 30 + [60, 80, 50] + [2] * 30, "b": [5] * 63})
    assert (burst.template, burst.begin, burst.minutes) == ("a", START + 30 * MINUTE, 3)
    assert burst.lines == 190
    assert burst.usual_a_minute == 2
    assert burst.excess == 184
    assert burst.end == START + 33 * MINUTE


def test_a_template_that_came_once_only_and_with_force() -> None:
    (burst,) = found({"new": [0] * 59 + [40], "always": [9] * 60})
    assert (burst.template, burst.usual_a_minute) == ("new", 0)


def test_what_is_no_burst() -> None:
    assert found({"steady": [20] * 60}) == []
    assert found({"few": [0] * 30 + [9] + [0] * 30, "x": [1] * 61}) == [], "less than ten lines"
    assert found({"double": [50] * 30 + [110] + [50] * 30}) == [], "less than five times"
    assert found({"short": [1, 1, 90, 1]}) == [], "of four minutes nothing is usual"
    assert found({}) == []


def test_bursts_at_the_same_time_are_one_incident() -> None:
    quiet, peak = [1] * 20, [50, 50]
    some = found(
        {"a": quiet + peak + [1] * 40, "b": [*quiet, 1, 90, 60, *[1] * 39], "c": [1] * 50 + peak}
    )
    first, second = incidents(some, {"a": "f", "b": "f", "c": "f"})
    assert [each.template for each in first.bursts] == ["b", "a"]
    assert (first.begin, first.end) == (START + 20 * MINUTE, START + 23 * MINUTE)
    assert [each.template for each in second.bursts] == ["c"]
    by_format = incidents(some, {"a": "f", "b": "g", "c": "f"})
    assert len(by_format) == 3


def component(name: str, lines: int, first: timedelta, last: timedelta) -> dict[str, object]:
    return {
        "format": "f",
        "component": name,
        "lines": lines,
        "first": START + first,
        "last": START + last,
    }


def test_sp_2_components_that_have_fallen_silent() -> None:
    hour = timedelta(hours=1)
    rows = [
        component("goes on", 1000, 0 * hour, 10 * hour),
        component("silent", 400, 0 * hour, 6 * hour),
        component("at the start only", 300, 0 * hour, 0.1 * hour),
        component("rare", 12, 0 * hour, 6 * hour),
        component("just now", 400, 0 * hour, 9.95 * hour),
    ]
    (found,) = silences(pl.DataFrame(rows))
    assert (found.component, found.lines, found.silent) == ("silent", 400, 4 * hour)
    assert round(found.usual_an_hour, 1) == 66.7
