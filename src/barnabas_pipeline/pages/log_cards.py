"""Arranges the figures of selected system log entries as cards. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, NamedTuple

import numpy as np
import polars as pl

from barnabas_formats.levels import LEVELS
from barnabas_pipeline.logs import intrusions, phrases
from barnabas_pipeline.logs.attention import usual_of
from barnabas_pipeline.logs.figures import NO_LEVEL, TemplateRow
from barnabas_pipeline.logs.logins import ACCEPTED, FAILED
from barnabas_pipeline.pages.filters import MISSING, MOST_CHARACTERS
from barnabas_pipeline.pages.log_columns import LogColumns, take
from barnabas_pipeline.pages.log_figures import Selected
from barnabas_pipeline.pages.log_timeline import severities
from barnabas_pipeline.pages.shapes import Card, Cell, Column, Row, Unit
from barnabas_pipeline.pages.shown_text import shown

MOST_ROWS: Final = 12
"""The most rows of a card among the others. Its own address and its file have all rows."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NOT_COMPARED: Final = ("bursts", "silences", "heat")
_Look = Literal["bars", "table", "heat"]
_Rows = list[tuple[str | None, list[Cell]]]
_ENTRIES: Final = ("entries", "count")


class Source(NamedTuple):
    """Contains what a card is computed from."""

    columns: LogColumns
    selected: Selected
    levels: Mapping[str, str | None]
    """The level of each template."""
    is_all: bool
    """Whether there are no filters."""


class _Kind(NamedTuple):
    """A kind of card. The first column is the label, and the second one a number."""

    title: str
    about: str
    look: _Look
    dimension: str
    columns: Sequence[tuple[str, Unit]]
    rows: Callable[[Source], _Rows]


def cards(source: Source, other: Source | None) -> list[Card]:
    """Return all cards that have rows, with their first rows."""
    found = (card(name, source, other, MOST_ROWS) for name in KINDS)
    return [each for each in found if each["rows"]]


def card(name: str, source: Source, other: Source | None, most: int | None = None) -> Card:
    """Return a card. `other`: the entries of the other period, or None without a comparison."""
    kind = KINDS[name]
    rows = kind.rows(source)
    before: dict[Cell, Cell] | None = None
    if other is not None and name not in _NOT_COMPARED:
        before = {_identity(key, cells): cells[1] for key, cells in kind.rows(other)}
    return Card(
        name=name,
        title=kind.title,
        about=kind.about,
        look=kind.look,
        dimension=kind.dimension,
        columns=[Column(label=label, unit=unit) for label, unit in kind.columns],
        rows=[
            Row(
                key=key,
                cells=cells,
                before=None if before is None else before.get(_identity(key, cells), 0),
            )
            for key, cells in rows[:most]
        ],
        more=most is not None and len(rows) > most,
    )


def _identity(key: str | None, cells: list[Cell]) -> Cell:
    return cells[0] if key is None else key


def _key(value: str | None) -> str | None:
    """Return the value by which a filter selects a value, or None if no filter can."""
    if value is None:
        return MISSING
    return value if value != MISSING and len(value) <= MOST_CHARACTERS else None


def _levels(source: Source) -> _Rows:
    counts = source.columns.counts("level", source.selected.rows)
    order: list[str | None] = [*LEVELS, None]
    order += sorted(each for each in counts if each is not None and each not in LEVELS)
    return [(_key(each), [each or NO_LEVEL, counts[each]]) for each in order if each in counts]


def _counted(name: str, nothing: str) -> Callable[[Source], _Rows]:
    """Return a function that counts the values of a dimension, the most frequent first.

    `nothing`: the label of rows without a value, or "" if they are not listed.
    """

    def rows(source: Source) -> _Rows:
        counts = source.columns.counts(name, source.selected.rows)
        if not nothing:
            counts.pop(None, None)
        if [*counts] == [None]:
            return []
        ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0] or ""))
        return [
            (_key(value), [nothing if value is None else shown(value), count])
            for value, count in ordered
        ]

    return rows


def _components(source: Source) -> _Rows:
    columns, rows = source.columns, source.selected.rows
    components, levels = columns.texts["component"], columns.texts["level"]
    of_level = severities(levels)[take(levels.codes, rows)]
    cells = take(components.codes, rows).astype(np.int64) * 3 + of_level
    counts = np.bincount(cells, minlength=3 * len(components.labels)).reshape(-1, 3)
    found = [
        (label, int(own.sum()), int(own[0]), int(own[1]))
        for label, own in zip(components.labels, counts, strict=True)
        if label is not None and own.any()
    ]
    found.sort(key=lambda each: (-each[1], each[0]))
    return [(_key(name), [shown(name), *numbers]) for name, *numbers in found]


def _templates(source: Source) -> _Rows:
    return [_template(each, source) for each in source.selected.figures.templates]


def _new_templates(source: Source) -> _Rows:
    return [_template(each, source) for each in source.selected.figures.new_templates]


def _template(row: TemplateRow, source: Source) -> tuple[str | None, list[Cell]]:
    text = shown(phrases.short(row.text))
    level = source.levels.get(row.id) or NO_LEVEL
    return _key(row.id), [text, row.lines, level, row.format, _ms(row.first), _ms(row.last)]


def _bursts(source: Source) -> _Rows:
    figures = source.selected.figures
    rows: _Rows = []
    for incident in figures.incidents:
        worst = incident.bursts[0]
        text = shown(phrases.short(figures.texts[worst.template]))
        ends = [_ms(incident.begin), _ms(incident.end)]
        cells: list[Cell] = [text, incident.lines, usual_of(incident), incident.format, *ends]
        rows.append((_key(worst.template), cells))
    return rows


def _silences(source: Source) -> _Rows:
    return [
        (
            _key(each.component),
            [
                shown(each.component),
                each.lines,
                each.silent.total_seconds(),
                _ms(each.last),
                round(each.usual_an_hour, 1),
                each.format,
            ],
        )
        for each in source.selected.figures.silences
    ]


def _logins_by(name: str) -> Callable[[Source], _Rows]:
    """Return a function that counts logins by the user, for example."""

    def rows(source: Source) -> _Rows:
        failed = intrusions.failures(source.selected.logins).with_columns(
            pl.lit(FAILED).alias("outcome")
        )
        accepted = source.selected.logins.filter(pl.col("outcome") == ACCEPTED)
        found = (
            pl.concat([failed, accepted])
            .group_by(name)
            .agg(
                pl.col("attempts").filter(pl.col("outcome") == FAILED).sum().alias("failed"),
                pl.col("attempts").filter(pl.col("outcome") == ACCEPTED).sum().alias("accepted"),
                pl.col("first").min(),
                pl.col("last").max(),
            )
            .sort("failed", "accepted", name, descending=[True, True, False], nulls_last=True)
        )
        return [
            (None, ["no name" if value is None else shown(value), *counts, _ms(first), _ms(last)])
            for value, *counts, first, last in found.iter_rows()
        ]

    return rows


def _outcomes(source: Source) -> _Rows:
    rows = _logins_by("outcome")(source)
    return [(None, [label, int(cells[1] or 0) + int(cells[2] or 0)]) for label, cells in _of(rows)]


def _of(rows: _Rows) -> Iterable[tuple[Cell, list[Cell]]]:
    return ((cells[0], cells) for _, cells in rows)


def _guessing(source: Source) -> _Rows:
    return [
        (
            None,
            [
                shown(each.address),
                each.failures,
                each.users,
                shown(", ".join(each.names)),
                shown(", ".join(each.entered_as)),
                shown(", ".join(each.hosts)),
                _ms(each.first),
                _ms(each.last),
            ],
        )
        for each in source.selected.figures.intruders
    ]


def _dead_letters(source: Source) -> _Rows:
    if not source.is_all:
        return []
    return [
        (None, [shown(each.reason), each.lines]) for each in source.selected.figures.dead_letters
    ]


def _heat(source: Source) -> _Rows:
    hours = take(source.columns.time_us, source.selected.rows) // 3_600_000_000
    if not len(hours):
        return []
    # 1 January 1970 was a Thursday.
    cells = (hours // 24 + 3) % 7 * 24 + hours % 24
    counts = np.bincount(cells, minlength=7 * 24).reshape(7, 24)
    return [(None, [day, *own.tolist()]) for day, own in zip(_DAYS, counts, strict=True)]


def _ms(at: datetime) -> int:
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return (at - _EPOCH) // timedelta(milliseconds=1)


_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_OF_TEMPLATE: Final[Sequence[tuple[str, Unit]]] = (
    ("template", "text"),
    _ENTRIES,
    ("level", "text"),
    ("format", "text"),
    ("first", "time"),
    ("last", "time"),
)
_OF_LOGINS: Final[Sequence[tuple[str, Unit]]] = (
    ("failed", "count"),
    ("accepted", "count"),
    ("first", "time"),
    ("last", "time"),
)
_BY_HOURS = " If the period begins or ends within an hour, the whole hour is counted."


def _bars(title: str, name: str, about: str, nothing: str = "") -> _Kind:
    columns: Sequence[tuple[str, Unit]] = ((name, "text"), _ENTRIES)
    return _Kind(title, about, "bars", name, columns, _counted(name, nothing))


KINDS: Final[Mapping[str, _Kind]] = {
    "levels": _Kind(
        "Levels",
        "Entries by the level of their line; FATAL and ERROR are errors.",
        "bars",
        "level",
        (("level", "text"), _ENTRIES),
        _levels,
    ),
    "bursts": _Kind(
        "Bursts",
        "Minutes in which a template occurs far more often than usual; simultaneous bursts in the"
        " same format are one row.",
        "table",
        "template",
        (
            ("template", "text"),
            _ENTRIES,
            ("usual", "text"),
            ("format", "text"),
            ("begin", "time"),
            ("end", "time"),
        ),
        _bursts,
    ),
    "silences": _Kind(
        "Silent components",
        "Busy components without an entry in the last part of their log.",
        "table",
        "component",
        (
            ("component", "text"),
            _ENTRIES,
            ("silent for", "seconds"),
            ("last entry", "time"),
            ("usual an hour", "value"),
            ("format", "text"),
        ),
        _silences,
    ),
    "components": _Kind(
        "Components",
        "Entries by the component that wrote them, such as a class or a process.",
        "table",
        "component",
        (("component", "text"), _ENTRIES, ("errors", "count"), ("warnings", "count")),
        _components,
    ),
    "templates": _Kind(
        "Templates",
        "Entries by the constant part of their message, with the level of the newest entry.",
        "table",
        "template",
        _OF_TEMPLATE,
        _templates,
    ),
    "new_templates": _Kind(
        "New templates",
        "Templates that first occurred in the last fifth of their log's time, the newest first.",
        "table",
        "template",
        _OF_TEMPLATE,
        _new_templates,
    ),
    "hosts": _bars("Hosts", "host", "Entries by the host that wrote them.", "no host"),
    "formats": _bars("Formats", "format", "Entries by the format of their line."),
    "services": _bars(
        "Services", "service", "Entries by the service in OpenTelemetry records.", "no service"
    ),
    "files": _bars("Files", "file", "Entries by the file from which they were read.", "no file"),
    "outcomes": _Kind(
        "SSH logins",
        "Attempts to log in by their outcome." + _BY_HOURS,
        "bars",
        "",
        (("outcome", "text"), ("attempts", "count")),
        _outcomes,
    ),
    "users": _Kind(
        "SSH logins by user",
        "Failed and accepted attempts by user name." + _BY_HOURS,
        "table",
        "",
        (("user", "text"), *_OF_LOGINS),
        _logins_by("user"),
    ),
    "addresses": _Kind(
        "SSH logins by address",
        "Failed and accepted attempts by the client's address." + _BY_HOURS,
        "table",
        "",
        (("address", "text"), *_OF_LOGINS),
        _logins_by("address"),
    ),
    "guessing": _Kind(
        "SSH logins by guessing",
        "Addresses with at least 5 failed attempts in an hour; those that got in come first.",
        "table",
        "",
        (
            ("address", "text"),
            ("failed", "count"),
            ("users", "count"),
            ("most tried", "text"),
            ("entered as", "text"),
            ("on", "text"),
            ("first", "time"),
            ("last", "time"),
        ),
        _guessing,
    ),
    "dead_letters": _Kind(
        "Dead letters",
        "Records that could not be parsed, by reason.",
        "bars",
        "",
        (("reason", "text"), ("records", "count")),
        _dead_letters,
    ),
    "heat": _Kind(
        "Weekdays and hours",
        "Entries by weekday and hour in UTC.",
        "heat",
        "",
        (("weekday", "text"), *((str(hour), "count") for hour in range(24))),
        _heat,
    ),
}
