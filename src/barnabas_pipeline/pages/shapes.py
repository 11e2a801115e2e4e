"""Defines the JSON that the server of the pages sends, with one type for each address.

Times are in ms since 1970 and sizes in bytes. None means "not known", which is different from 0.
The page then shows a dash.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

Kind = Literal["events", "access", "logs"]
"""Events of pages and apps, lines of an access log, or lines of system logs."""
Unit = Literal["text", "count", "share", "bytes", "seconds", "microseconds", "value", "time"]
"""How a cell is shown. A share is between 0 and 1."""
Cell = str | int | float | None


class Dimension(TypedDict):
    """A property by which all cards can be filtered, such as the host."""

    name: str
    """The name of the URL parameter."""
    label: str


class Site(TypedDict):
    """`/api/site`: what the tables contain. It does not depend on filters."""

    title: str
    """The name of the site: its main host."""
    kind: Kind
    dimensions: list[Dimension]
    begins_at: int | None
    ends_at: int | None
    """The times of the first and the last hit, or None while the tables are empty."""
    batch: int
    """Increases with each batch that the job writes, so a page knows when to ask again."""
    has_search: bool
    """Whether `/api/rows` can search for words."""
    has_now: bool
    """Whether `/api/now/stream` exists."""
    refresh_s: int | None


class Headline(TypedDict):
    """A figure at the top of the page."""

    name: str
    label: str
    definition: str
    value: Cell
    unit: Unit
    before: Cell
    """The value in the other period, or None without a comparison."""
    rows: str | None
    """The URL parameters of the rows that the figure counts, in addition to the current filters, ""
    if it counts all matching rows, or None if no filters select them."""


class Series(TypedDict):
    """A line or an area of the timeline: one number for each bucket."""

    name: str
    label: str
    values: list[float]


class Timeline(TypedDict):
    """The hits over time. Bucket n begins at `begins_at + n * step_ms`."""

    begins_at: int
    step_ms: int
    series: list[Series]
    before: list[float] | None
    """The first series in the other period, shifted to this one, or None without a comparison."""


class Column(TypedDict):
    """A column of a card."""

    label: str
    unit: Unit


class Row(TypedDict):
    """A row of a card."""

    key: str | None
    """The value by which a click filters, or None if the row cannot be clicked."""
    cells: list[Cell]
    before: Cell
    """The first number of the row in the other period, or None without a comparison."""


class Card(TypedDict):
    """A card. Cards without rows are not sent."""

    name: str
    title: str
    about: str
    """One sentence that defines the numbers."""
    look: Literal["bars", "table", "funnel", "retention", "heat", "lengths"]
    dimension: str
    """The dimension by which a click on a row filters, or ""."""
    columns: list[Column]
    """The columns of the cells. The first one is the label; bars show the second one."""
    rows: list[Row]
    more: bool
    """Whether the card has more rows. The CSV file contains them all."""


class Concern(TypedDict):
    """Something that a person should look at, such as a burst of errors."""

    title: str
    about: str
    is_urgent: bool
    link: str
    """The URL parameters that show it, which replace the current filters, or ""."""
    examples: list[str]


class Answer(TypedDict):
    """`/api/cards?FILTERS`: everything on the page for these filters."""

    headlines: list[Headline]
    timeline: Timeline | None
    cards: list[Card]
    concerns: list[Concern]
    took_ms: float
    matching: int
    """How many rows match the filters."""


class Rows(TypedDict):
    """`/api/rows?FILTERS&words=&before=CURSOR`: the matching rows, with the latest first."""

    columns: list[Column]
    rows: list[list[Cell]]
    matching: int
    """How many rows match in all."""
    next: str
    """The cursor of the next page of rows, or "" after the last one."""
    over_time: Timeline | None
    ids: NotRequired[list[str]]
    """For each row, a text with which `/api/rows?row=ID` answers this row alone, with its whole
    texts."""
    searched_from: NotRequired[int | None]
    """How far back a search got in the time that a request may take, or None if it got to its end.
    The same request continues the search. Until then, `matching` and `over_time` count what has
    been found so far, and only rows after this time are listed."""


class Moment(TypedDict):
    """A minute of the last half hour."""

    at: int
    hits: int
    errors: int


class Leader(TypedDict):
    """A frequent value of the last half hour, such as a page."""

    label: str
    count: int


class Leaders(TypedDict):
    """A list of the last half hour, such as its most frequent pages."""

    title: str
    rows: list[Leader]


class Now(TypedDict):
    """`/api/now/stream` sends the last half hour, about once a second."""

    at: int
    """The time up to which records have been read."""
    behind_ms: int
    """How old the newest record was when it was counted."""
    online: int | None
    """Visitors of the last five minutes, or None for system logs."""
    hits: int
    errors: int
    rejected: int
    """Records that could not be parsed."""
    older: int
    """Records that arrived in this half hour, but are older by their own time. They are not hits of
    this half hour."""
    minutes: list[Moment]
    lists: list[Leaders]
    problem: str
    """Why nothing can be read, or ""."""
    note: str
    """Why the figures are not complete, or ""."""


class Problem(TypedDict):
    """The answer to a request that failed."""

    error: str
