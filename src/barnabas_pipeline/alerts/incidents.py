"""Defines incidents, and finds example lines for them."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from typing import Any, NamedTuple

from barnabas_pipeline.accounts import excerpt, place_in_file
from barnabas_pipeline.snapshot import Snapshot

LINES = 3
"""The maximum number of example lines for an incident."""


class Example(NamedTuple):
    """Selects the rows that illustrate an incident: the rows of a table that have one of these
    values in a column.
    """

    table: str
    column: str | None = None
    values: tuple[str, ...] = ()
    containing: str | None = None  # a word in the message
    since: datetime | None = None
    until: datetime | None = None  # exclusive
    paths: tuple[str, ...] = ()
    """If this is not empty, only rows with one of these paths are shown."""


class Incident(NamedTuple):
    """An incident found by a rule. `end` is None while the incident is ongoing."""

    alert: str
    kind: str
    subject: str
    start: datetime
    end: datetime | None
    summary: str
    example: Example

    @property
    def id(self) -> str:
        """The incident's id, which stays the same after a restart and when the same tables are read
        again.
        """
        parts = (self.alert, self.subject, self.start.isoformat())
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]

    def is_of(self, other: Incident) -> bool:
        """Return whether `other` is the same incident, even if late lines have moved its start."""
        return (
            (self.alert, self.subject) == (other.alert, other.subject)
            and (other.end is None or self.start < other.end)
            and (self.end is None or other.start < self.end)
        ) or self.id == other.id


class Line(NamedTuple):
    place: str  # empty if the line does not come from a file
    text: str


def lines_of(incident: Incident, snapshot: Snapshot) -> list[Line]:
    """Return up to `LINES` example lines for the incident, shortened for display."""
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    wanted = incident.example
    dataset = snapshot.dataset(wanted.table)
    if dataset is None:
        return []
    conditions = []
    if wanted.column == "status":
        conditions.append(pc.field("status") >= 500)
    elif wanted.column is not None:
        conditions.append(pc.field(wanted.column).isin(list(wanted.values)))
    if wanted.paths:
        conditions.append(pc.field("path").isin(list(wanted.paths)))
    if wanted.since is not None:
        conditions.append(pc.field("time") >= wanted.since)
    if wanted.until is not None:
        conditions.append(pc.field("time") < wanted.until)
    if wanted.containing is not None:
        # The address must not match the start of a longer one.
        word = f"(^|[^0-9A-Za-z.:]){re.escape(wanted.containing)}([^0-9A-Za-z]|$)"
        conditions.append(pc.match_substring_regex(pc.field("message"), word))
    condition = conditions[0]
    for each in conditions[1:]:
        condition = condition & each
    rows = dataset.scanner(columns=_COLUMNS[wanted.table], filter=condition, use_threads=False)
    found: list[dict[str, Any]] = rows.head(LINES).to_pylist()
    if wanted.table != "dead_letters":
        found.sort(key=lambda row: row["time"])  # the dataset starts with the newest files
    return [_line(wanted.table, row) for row in found]


_COLUMNS = {
    "entries": ["file", "line", "time", "level", "component", "message"],
    "events": ["file", "time", "client", "method", "path", "status"],
    "dead_letters": ["file", "line", "reason", "value"],
}


def _line(table: str, row: dict[str, Any]) -> Line:
    if table == "dead_letters":
        value = (row["value"] or b"")[:1_000].decode("utf-8", "backslashreplace")
        return Line(place_in_file(row, str), excerpt(f"{row['reason']}: {value}", str))
    at = row["time"].strftime("%Y-%m-%d %H:%M:%S")
    words: tuple[Any, ...]
    if table == "events":
        words = (row["client"], row["method"], row["path"], row["status"])
        place = place_in_file({**row, "line": "?"}, str).partition(",")[0]
    else:
        words = (row["level"], row["component"], row["message"])
        place = place_in_file(row, str)
    text = " ".join(str(word) for word in (at, *words) if word is not None)
    return Line(place, excerpt(text, str))
