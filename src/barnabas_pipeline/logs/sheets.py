"""Arranges the figures of system logs as files next to the page; times are in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas_pipeline.accounts import Accounts
from barnabas_pipeline.logs.figures import Figures, TemplateRow
from barnabas_pipeline.logs.headlines import numbers
from barnabas_pipeline.logs.intrusions import Logins
from barnabas_pipeline.page.sheets import Cell, Sheet

_MOST: Final = 1_000
_OF_BURST: Final = (
    "format",
    "begin",
    "end",
    "entries",
    "usual_a_minute",
    "template",
    "text",
    "number",
)
_OF_INTRUDER: Final = (
    "address",
    "failures",
    "users",
    "most_tried",
    "first",
    "last",
    "entered_as",
    "hosts",
)
_OF_SILENCE: Final = ("format", "component", "entries", "last", "silent_seconds", "usual_an_hour")
_OF_TEMPLATE: Final = ("template", "format", "entries", "first", "last", "text")


def sheets(figures: Figures) -> list[Sheet]:
    """Return all figures on the page, some as longer tables."""
    return [
        Sheet("summary", ("figure", "total"), [*numbers(figures)._asdict().items()]),
        Sheet(
            "accounts",
            ("file", *Accounts._fields),
            [(file, *of_file) for file, of_file in figures.files],
        ),
        Sheet(
            "levels",
            ("format", "at", "minutes", "level", "entries"),
            [
                (system.name, each.at.isoformat(), int(system.step.total_seconds()) // 60, *count)
                for system in figures.systems
                for each in system.moments
                for count in each.by_level.items()
            ],
        ),
        Sheet(
            "formats", ("format", "entries"), [(each.name, each.lines) for each in figures.systems]
        ),
        Sheet("templates", _OF_TEMPLATE, _templates(figures.templates[:_MOST])),
        Sheet("new_templates", _OF_TEMPLATE, _templates(figures.new_templates[:_MOST])),
        Sheet("bursts", _OF_BURST, _bursts(figures)),
        Sheet("silent_components", _OF_SILENCE, _silences(figures)),
        Sheet(
            "components",
            ("format", "component", "entries", "errors", "warnings"),
            [tuple(each) for each in figures.components[:_MOST]],
        ),
        Sheet("hosts", ("host", "entries"), figures.hosts[:_MOST]),
        Sheet("ssh_logins", Logins._fields, _logins(figures)),
        Sheet("ssh_guessing", _OF_INTRUDER, _intruders(figures)),
        Sheet(
            "dead_letters",
            ("reason", "records"),
            [(each.reason, each.lines) for each in figures.dead_letters],
        ),
    ]


def _templates(rows: Sequence[TemplateRow]) -> list[tuple[Cell, ...]]:
    return [
        (each.id, each.format, each.lines, each.first.isoformat(), each.last.isoformat(), each.text)
        for each in rows
    ]


def _bursts(figures: Figures) -> list[tuple[Cell, ...]]:
    return [
        (
            incident.format,
            each.begin.isoformat(),
            each.end.isoformat(),
            each.lines,
            round(each.usual_a_minute, 3),
            each.template,
            figures.texts[each.template],
            number,
        )
        for number, incident in enumerate(figures.incidents[:_MOST], 1)
        for each in incident.bursts
    ]


def _silences(figures: Figures) -> list[tuple[Cell, ...]]:
    return [
        (
            each.format,
            each.component,
            each.lines,
            each.last.isoformat(),
            int(each.silent.total_seconds()),
            round(each.usual_an_hour, 1),
        )
        for each in figures.silences[:_MOST]
    ]


def _logins(figures: Figures) -> list[tuple[Cell, ...]]:
    return [
        (each.address, each.failed, each.accepted, each.first.isoformat(), each.last.isoformat())
        for each in figures.logins[:_MOST]
    ]


def _intruders(figures: Figures) -> list[tuple[Cell, ...]]:
    return [
        (
            each.address,
            each.failures,
            each.users,
            " ".join(each.names),
            each.first.isoformat(),
            each.last.isoformat(),
            " ".join(each.entered_as),
            " ".join(each.hosts),
        )
        for each in figures.intruders[:_MOST]
    ]
