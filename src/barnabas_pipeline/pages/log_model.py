"""Implements the model of system logs: cards, and a search in the entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from barnabas.console.problem import WebProblem
from barnabas_formats.format import RAW
from barnabas_pipeline.logs.attention import break_in, failed_logins
from barnabas_pipeline.logs.figures import Figures
from barnabas_pipeline.logs.headlines import ERRORS, headlines
from barnabas_pipeline.logs.headlines import Headline as HeadlineOfLogs
from barnabas_pipeline.logs.intrusions import failures
from barnabas_pipeline.page.addresses import mask_addresses
from barnabas_pipeline.pages import log_cards
from barnabas_pipeline.pages.filters import MOST_VALUES, Filters, Period, query
from barnabas_pipeline.pages.kept_answers import KeptAnswers
from barnabas_pipeline.pages.log_cards import Source
from barnabas_pipeline.pages.log_columns import LogColumns, Numbers, read_columns
from barnabas_pipeline.pages.log_figures import LogFigures, Selected
from barnabas_pipeline.pages.log_links import concerns, link, period_pairs
from barnabas_pipeline.pages.log_rows import LogRows
from barnabas_pipeline.pages.log_timeline import errors_before, span_of, timeline
from barnabas_pipeline.pages.model import Model
from barnabas_pipeline.pages.shapes import (
    Answer,
    Card,
    Cell,
    Dimension,
    Headline,
    Rows,
    Site,
    Timeline,
)
from barnabas_pipeline.pages.shown_text import shown
from barnabas_pipeline.view import View

_LABELS: Final = {
    "level": "Level",
    "component": "Component",
    "host": "Host",
    "format": "Format",
    "template": "Template",
    "service": "Service",
    "file": "File",
}
_ALL: Final = Filters()
_ANSWERS: Final = 16
"""The number of answers that are kept. Each may hold long texts."""
_DEFINITIONS: Final = {
    "entries": "Lines and log records in the tables.",
    "errors": "Entries of level ERROR or FATAL.",
    "templates": "Different messages, in which variable parts such as numbers do not count.",
    "bursts": "Minutes in which a template occurs far more often than usual; simultaneous bursts"
    " in the same format count as one.",
    "silent_components": "Busy components without an entry in the last part of their log.",
    "failed_logins": "Passwords and keys that an SSH server refused.",
    "break_ins": "Addresses with at least 5 failed SSH logins in an hour from which someone then"
    " logged in.",
    "raw_entries": "Entries that match no known format. They have no level, no component and no"
    " time of their own.",
}
_WITH_NUMBERS: Final = ("entries", "templates", "failed_logins", "break_ins")
"""The headlines whose definition is followed by further numbers."""
_OF_LOGINS: Final = ("failed_logins", "break_ins")


def read_log_model(
    snapshot: View, batch: int, before: Model | None = None, *, show_addresses: bool
) -> LogModel:
    """Read the tables of system logs.

    `before`: the model of an earlier batch, whose entries are not read again. `show_addresses`:
    show full network addresses instead of only their networks.
    """
    mask = str if show_addresses else mask_addresses
    known = before.columns if isinstance(before, LogModel) else None
    columns = read_columns(snapshot.dataset("entries"), mask, known)
    figures = LogFigures(columns, snapshot, show_addresses=show_addresses)
    return LogModel(columns, figures, batch)


class LogModel:
    """Implements `model.Model`."""

    def __init__(self, columns: LogColumns, figures: LogFigures, batch: int) -> None:
        self.columns = columns
        self._figures = figures
        self._levels = _levels(columns)
        self._rows = LogRows(columns, figures.all.texts, figures.mask)
        self._answers = KeptAnswers(self._answer, _ANSWERS)
        self._site = _site(columns, figures.all, batch)

    @property
    def site(self) -> Site:
        return self._site

    def answer(self, filters: Filters) -> Answer:
        return self._answers.answer(filters)

    def _answer(self, filters: Filters) -> Answer:
        source, other = self._sources(filters)
        rows = source.selected.rows
        return Answer(
            headlines=self._headlines(source, other),
            timeline=self._timeline(rows, filters, None if other is None else other.selected.rows),
            cards=log_cards.cards(source, other),
            concerns=concerns(source.selected.figures, _kept(filters)),
            took_ms=0.0,
            matching=len(rows),
        )

    def card(self, name: str, filters: Filters, options: Mapping[str, str]) -> Card:
        if name not in log_cards.KINDS:
            raise WebProblem(404, f"{name[:40]}: there is no such card")
        return log_cards.card(name, *self._sources(filters))

    def rows(self, filters: Filters, options: Mapping[str, str]) -> Rows:
        return self._rows.page(filters, options)

    def all_rows(self, filters: Filters, options: Mapping[str, str]) -> Iterator[list[Cell]]:
        return self._rows.all(filters, options)

    def select(self, filters: Filters) -> Selected:
        """Return the entries that match filters, and their figures."""
        return self._figures.select(filters, filters.period)

    def _sources(self, filters: Filters) -> tuple[Source, Source | None]:
        source = self._source(filters, filters.period)
        return source, None if filters.other is None else self._source(filters, filters.other)

    def _source(self, filters: Filters, period: Period) -> Source:
        selected = self._figures.select(filters, period)
        is_all = period == Period() and not filters.values
        return Source(self.columns, selected, self._levels, is_all)

    def _headlines(self, source: Source, other: Source | None) -> list[Headline]:
        before = {} if other is None else _totals(other)
        totals = _totals(source)
        silent = [each.component for each in source.selected.figures.silences]
        rows = {
            "bursts": None,
            "silent_components": None
            if silent[MOST_VALUES:]
            else query({"component": silent}) or None,
            "errors": query({"level": ERRORS}),
            "raw_entries": query({"format": RAW}),
            **_login_rows(source.selected),
        }
        return [
            Headline(
                name=each.name,
                label=each.label,
                definition=_definition(each),
                value=totals[each.name],
                unit="count",
                before=before.get(each.name),
                rows=rows.get(each.name, ""),
            )
            for each in headlines(source.selected.figures)
        ]

    def _timeline(self, rows: Numbers, filters: Filters, other: Numbers | None) -> Timeline | None:
        found = timeline(self.columns, rows, filters.period)
        if found is None or other is None or filters.other is None:
            return found
        since_us = filters.other.since_us
        if since_us is None:
            span = span_of(self.columns, other, filters.other)
            since_us = None if span is None else span.since_us
        begin_us = found["begins_at"] * 1_000
        if filters.period.since_us is not None:
            begin_us = filters.period.since_us
        shift_us = 0 if since_us is None else begin_us - since_us
        return {**found, "before": errors_before(self.columns, other, found, shift_us)}


def _login_rows(selected: Selected) -> dict[str, str | None]:
    """Return the URL parameters of the entries that the headlines of logins count, or None."""
    figures, outcomes = selected.figures, failures(selected.logins)["outcome"].unique()
    failed = failed_logins(figures, outcomes.to_list())
    intruders = [each for each in figures.intruders if each.entered_as]
    # Filters cannot express several addresses, but a concern shows each of them.
    entered = break_in(figures, intruders[0]) if len(intruders) == 1 else None
    return {
        "failed_logins": None if failed is None else link(failed) or None,
        "break_ins": None if entered is None else link(entered) or None,
    }


def _totals(source: Source) -> dict[str, int | None]:
    """Return the headlines' values; None stands for logins to which the filters do not apply."""
    return {
        each.name: None
        if each.name in _OF_LOGINS and not source.selected.has_logins
        else each.total
        for each in headlines(source.selected.figures)
    }


def _definition(headline: HeadlineOfLogs) -> str:
    text, about = _DEFINITIONS[headline.name], headline.about
    return f"{text} {about[:1].upper()}{about[1:]}." if headline.name in _WITH_NUMBERS else text


def _site(columns: LogColumns, figures: Figures, batch: int) -> Site:
    everything = columns.select(Period(), _ALL)
    span = span_of(columns, everything, Period())
    begin, end = (None, None) if span is None else span
    return Site(
        title=shown(figures.hosts[0][0]) if figures.hosts else "System logs",
        kind="logs",
        dimensions=[Dimension(name=name, label=label) for name, label in _LABELS.items()],
        begins_at=None if begin is None else begin // 1_000,
        ends_at=None if end is None else (end - 1) // 1_000,
        batch=batch,
        has_search=True,
        has_now=False,
        refresh_s=None,
    )


def _levels(columns: LogColumns) -> dict[str, str | None]:
    """Return the level of the newest entry of each template."""
    templates, levels = columns.texts["template"], columns.texts["level"]
    # If a number is assigned several times, the last value remains, which is the newest entry's.
    newest = np.zeros(len(templates.values), np.int64)
    newest[templates.codes] = levels.codes
    return {
        name: levels.values[code]
        for name, code in zip(templates.values, newest.tolist(), strict=True)
        if name is not None
    }


def _kept(filters: Filters) -> list[tuple[str, str]]:
    """Return the filters as URL parameters."""
    found = [(name, value) for name, values in filters.values.items() for value in values]
    return [*found, *period_pairs(filters.period)]
