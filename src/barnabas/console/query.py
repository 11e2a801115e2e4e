"""Parses the console's URL parameters. Pure.

An unusable value raises a `WebProblem` with status 400 that names its parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from barnabas.console.problem import WebProblem

PAGE_ROWS: Final = 100
"""The number of rows per page."""
_MOST_DIGITS: Final = 19
_MOST_CHARACTERS: Final = 256

R = TypeVar("R")


class Paging(NamedTuple):
    """Filters and sorts the rows of a list, and selects one page of them."""

    search: str
    sort: str
    descending: bool
    page: int

    def rows(self, rows: Sequence[R]) -> Sequence[R]:
        """Return the rows of this page."""
        return rows[self.page * PAGE_ROWS : (self.page + 1) * PAGE_ROWS]


def paging(query: Mapping[str, str], sorts: Collection[str]) -> Paging:
    """Return the parameters of a list: `search`, `sort`, `descending` and `page`, counted
    from 0.
    """
    return Paging(
        text(query, "search").casefold(),
        choice(query, "sort", sorts),
        flag(query, "descending"),
        number(query, "page", 0, most=1_000_000),
    )


def in_order(rows: Iterable[R], key: Callable[[R], Any], *, descending: bool) -> list[R]:
    """Sort rows by key. The rows must already be sorted by name, and rows with equal keys remain in
    that order. Rows with an unknown key (None) come last.
    """
    known: list[R] = []
    unknown: list[R] = []
    for row in rows:
        (unknown if key(row) is None else known).append(row)
    return sorted(known, key=key, reverse=descending) + unknown


def text(query: Mapping[str, str], name: str) -> str:
    """Return a text of limited length, or "" if the parameter is missing."""
    value = query.get(name, "")
    if len(value) > _MOST_CHARACTERS:
        raise WebProblem(400, f"{name}: at most {_MOST_CHARACTERS} characters, not {len(value)}")
    return value


def flag(query: Mapping[str, str], name: str) -> bool:
    """Return whether a parameter is 1. Otherwise, it must be 0, empty or missing."""
    value = query.get(name, "")
    if value not in ("", "0", "1"):
        raise WebProblem(400, f"{name}={value[:40]}: give 1 or 0")
    return value == "1"


def choice(query: Mapping[str, str], name: str, values: Collection[str]) -> str:
    """Return the parameter, which must be one of these values. If it is missing, return the first
    value.
    """
    value = query.get(name, "") or next(iter(values))
    if value not in values:
        raise WebProblem(400, f"{name}={value[:40]}: give one of {', '.join(values)}")
    return value


def number(query: Mapping[str, str], name: str, default: int, *, least: int = 0, most: int) -> int:
    """Return a whole number between these bounds."""
    value = query.get(name, "")
    return default if not value else whole(value, name, least=least, most=most)


def whole(value: str, name: str, *, least: int = 0, most: int) -> int:
    """Parse a whole number in a parameter or a path segment."""
    if not (value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS):
        raise WebProblem(400, f"{name}={value[:40]}: give a whole number from {least} to {most}")
    if not least <= int(value) <= most:
        raise WebProblem(400, f"{name}={value}: give a number from {least} to {most}")
    return int(value)
