"""Reads the numbers for the system log page from the tables. All numbers refer to the same time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from barnabas_formats.format import RAW
from barnabas_formats.levels import LEVELS
from barnabas_pipeline.accounts import (
    Accounts,
    DeadLetters,
    excerpt,
    place_in_file,
    read_accounts,
    read_dead_letters,
)
from barnabas_pipeline.logs.bursts import bursts
from barnabas_pipeline.logs.incidents import Incident, incidents
from barnabas_pipeline.logs.intrusions import Intruder, Logins, by_address, intruders
from barnabas_pipeline.logs.silences import Silence, silences
from barnabas_pipeline.page.addresses import mask_addresses
from barnabas_pipeline.view import View

NO_LEVEL: Final = "no level"
NEW_SHARE: Final = 0.2
"""A template is new if it first occurred in the last part of its log's time span; this is the share
of that part in the time span.
"""
_INTERVALS: Final = 120
_SAMPLES: Final = 5
_LOOKED_AT: Final = 100  # raw lines, some of which may be empty
_STEPS_MINUTES: Final = (1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1440, 2880, 10_080)


class Moment(NamedTuple):
    at: datetime  # UTC, without a zone
    by_level: dict[str, int]


class System(NamedTuple):
    """Describes the lines of one format."""

    name: str
    lines: int
    by_level: dict[str, int]
    begin: datetime
    end: datetime
    step: timedelta
    moments: list[Moment]
    templates: int
    components: int


class TemplateRow(NamedTuple):
    id: str
    format: str
    text: str
    lines: int
    first: datetime
    last: datetime


class ComponentRow(NamedTuple):
    format: str
    component: str
    lines: int
    errors: int  # ERROR and FATAL
    warnings: int


class Figures(NamedTuple):
    """Everything that the page shows."""

    accounts: Accounts
    files: list[tuple[str, Accounts]]  # by name, without directories
    systems: list[System]
    hosts: list[tuple[str, int]]  # with their numbers of entries, the largest first
    templates: list[TemplateRow]  # the most frequent first
    new_templates: list[TemplateRow]  # the newest first
    texts: dict[str, str]  # of templates, by their ids
    incidents: list[Incident]
    silences: list[Silence]
    components: list[ComponentRow]
    logins: list[Logins]  # by address
    intruders: list[Intruder]
    raw_lines: int
    raw_samples: list[tuple[str, str]]
    dead_letters: list[DeadLetters]

    @property
    def lines(self) -> int:
        return sum(each.lines for each in self.systems)

    @property
    def known_systems(self) -> list[System]:
        """The systems of all lines with a known format."""
        return [each for each in self.systems if each.name != RAW]


def read_figures(view: View, *, show_addresses: bool = False) -> Figures:
    """Return the figures from a view's tables. Before the first batch, all figures are zero.

    `show_addresses`: show full addresses everywhere instead of only their networks.
    """
    mask = str if show_addresses else mask_addresses
    accounts, files = read_accounts(view)
    minutes, components = view.frame("minutes"), view.frame("components")
    templates, logins = view.frame("templates"), view.frame("logins")
    rows = _templates(templates)
    formats = {each.id: each.format for each in rows}
    texts = {each.id: each.text for each in rows}
    systems = _systems(minutes, components, templates)
    found = bursts(view.frame("template_minutes"), templates)
    return Figures(
        accounts=accounts,
        files=[(mask(Path(name).name), of_file) for name, of_file in files],
        systems=systems,
        hosts=_hosts(components, mask),
        templates=rows,
        new_templates=_new(rows, systems),
        texts=texts,
        incidents=incidents(found, formats),
        silences=silences(components),
        components=_components(components),
        logins=[each._replace(address=mask(each.address)) for each in by_address(logins)],
        intruders=[
            each._replace(address=mask(each.address), hosts=tuple(map(mask, each.hosts)))
            for each in intruders(logins)
        ],
        raw_lines=next((each.lines for each in systems if each.name == RAW), 0),
        raw_samples=_raw_samples(view, mask),
        dead_letters=read_dead_letters(view, mask),
    )


def _systems(
    minutes: pl.DataFrame, components: pl.DataFrame, templates: pl.DataFrame
) -> list[System]:
    named = minutes.with_columns(pl.col("level").fill_null(NO_LEVEL))
    counts = templates.group_by("format").agg(pl.len())
    by_format = dict(counts.iter_rows())
    parts = components.group_by("format").agg(pl.col("component").drop_nulls().n_unique())
    components_of = dict(parts.iter_rows())
    found = [
        _system(str(name), rows, by_format.get(name, 0), components_of.get(name, 0))
        for (name,), rows in named.group_by(["format"])
    ]
    return sorted(found, key=lambda each: (each.name == RAW, -each.lines, each.name))


def _system(name: str, rows: pl.DataFrame, templates: int, components: int) -> System:
    times = rows["minute"].dt.replace_time_zone(None)
    begin, newest = times.min(), times.max()
    assert isinstance(begin, datetime) and isinstance(newest, datetime)
    span_minutes = int((newest - begin) / timedelta(minutes=1)) + 1
    step_minutes = next(
        (each for each in _STEPS_MINUTES if span_minutes / each <= _INTERVALS),
        _STEPS_MINUTES[-1] * (span_minutes // (_STEPS_MINUTES[-1] * _INTERVALS) + 1),
    )
    step = timedelta(minutes=step_minutes)
    number = ((times - begin).dt.total_minutes() // step_minutes).alias("number")
    sums = rows.with_columns(number).group_by("number", "level").agg(pl.col("lines").sum())
    moments = [Moment(begin + i * step, {}) for i in range((span_minutes - 1) // step_minutes + 1)]
    for at, level, lines in sums.iter_rows():
        moments[at].by_level[level] = lines
    by_level = dict(rows.group_by("level").agg(pl.col("lines").sum()).iter_rows())
    return System(
        name=name,
        lines=sum(by_level.values()),
        by_level={level: by_level[level] for level in (*LEVELS, NO_LEVEL) if level in by_level},
        begin=begin,
        end=newest,
        step=step,
        moments=moments,
        templates=templates,
        components=components,
    )


def _templates(templates: pl.DataFrame) -> list[TemplateRow]:
    ordered = templates.sort("lines", "template", descending=[True, False])
    columns = ("template", "format", "text", "lines", "first", "last")
    return [TemplateRow(*row) for row in ordered.select(columns).iter_rows()]


def _new(rows: list[TemplateRow], systems: list[System]) -> list[TemplateRow]:
    bounds = {each.name: each.end - NEW_SHARE * (each.end - each.begin) for each in systems}
    old_enough = {each.name for each in systems if each.end - each.begin >= timedelta(minutes=10)}
    new = [
        each
        for each in rows
        if each.format in old_enough and each.first.replace(tzinfo=None) > bounds[each.format]
    ]
    return sorted(new, key=lambda each: (each.first, each.id), reverse=True)


def _components(components: pl.DataFrame) -> list[ComponentRow]:
    def lines(*levels: str) -> pl.Expr:
        return pl.col("lines").filter(pl.col("level").is_in(levels)).sum()

    rows = (
        components.filter(pl.col("component").is_not_null())
        .group_by("format", "component")
        .agg(
            pl.col("lines").sum().alias("all"),
            lines("ERROR", "FATAL").alias("errors"),
            lines("WARN").alias("warnings"),
        )
        .sort("errors", "warnings", "all", "component", descending=[True, True, True, False])
    )
    return [ComponentRow(*row) for row in rows.iter_rows()]


def _hosts(components: pl.DataFrame, mask: Callable[[str], str]) -> list[tuple[str, int]]:
    counts = components.drop_nulls("host").group_by("host").agg(pl.col("lines").sum())
    ordered = counts.sort("lines", "host", descending=[True, False])
    return [(mask(host), lines) for host, lines in ordered.iter_rows()]


def _raw_samples(view: View, mask: Callable[[str], str]) -> list[tuple[str, str]]:
    head = view.some("entries", _LOOKED_AT, ["file", "line", "message"], {"format": RAW})
    shown = [row for row in head if row["message"]][:_SAMPLES]
    return [(place_in_file(row, mask), excerpt(row["message"], mask)) for row in shown]
