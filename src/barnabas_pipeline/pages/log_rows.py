"""Returns system log entries page by page, the latest first, with or without a search for words."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np

from barnabas.console.problem import WebProblem
from barnabas_pipeline.pages.filters import Filters, row_limit
from barnabas_pipeline.pages.log_columns import LogColumns, Numbers
from barnabas_pipeline.pages.log_timeline import timeline
from barnabas_pipeline.pages.log_words import Search, parse_words
from barnabas_pipeline.pages.shapes import Cell, Column, Rows
from barnabas_pipeline.pages.shown_text import shown

MESSAGE_LENGTH: Final = 2_000
"""The most characters of a message on a page. `row` shows the whole one."""
MORE_LENGTH: Final = 10_000
"""The most characters of the further lines of an entry, such as a stack trace."""
LIMIT: Final = 100
MOST_ROWS: Final = 1_000
SEARCH_S: Final = 5.0
"""How long a request may search."""
_SEARCHES: Final = 4
_IN_FILE: Final = 20_000
"""The rows of a file that are read at a time."""
_MASKED_AHEAD: Final = 60  # characters, so that an address at the cut is recognised
_CODED: Final = ("level", "host", "component")
COLUMNS: Final = (
    Column(label="time", unit="time"),
    Column(label="level", unit="text"),
    Column(label="host", unit="text"),
    Column(label="component", unit="text"),
    Column(label="message", unit="text"),
    Column(label="more", unit="text"),
    Column(label="template", unit="text"),
)


class LogRows:
    """Finds rows. The latest searches are kept, because a page of rows follows another."""

    def __init__(
        self,
        columns: LogColumns,
        templates: Mapping[str, str],
        mask: Callable[[str], str],
        search_s: float = SEARCH_S,
    ) -> None:
        """`templates`: their texts. `mask`: a function that is applied to messages."""
        self._columns = columns
        self._templates = templates
        self._mask = mask
        self._search_s = search_s
        self._searches: OrderedDict[object, Search] = OrderedDict()

    def page(self, filters: Filters, options: Mapping[str, str]) -> Rows:
        """Return a page of rows.

        `options`: `words`, `before` (a cursor), `limit`, and `row`, the id of the only row that is
        wanted, with its whole text.
        """
        if options.get("row"):
            return self._only(options["row"])
        limit, search = row_limit(options, LIMIT, MOST_ROWS), self._search(filters, options)
        if search is None:
            rows = found = self._columns.select(filters.period, filters)
        else:
            if search.searched_from_us is not None:
                search.advance(self._search_s)
            rows, found = search.found(), search.found_in_order()
        end = len(found)
        if before := options.get("before", ""):
            end = int(np.searchsorted(found, self._columns.position(before)))
        page = found[max(0, end - limit) : end]
        from_us = None if search is None else search.searched_from_us
        return Rows(
            columns=[*COLUMNS],
            rows=[*self._cells(page[::-1])],
            matching=len(rows),
            next=self._columns.cursor(int(page[0])) if end > limit else "",
            over_time=timeline(self._columns, rows, filters.period),
            ids=[self._columns.cursor(int(row)) for row in page[::-1]],
            searched_from=None if from_us is None else from_us // 1_000,
        )

    def all(self, filters: Filters, options: Mapping[str, str]) -> Iterator[list[Cell]]:
        """Return all rows, after the names of the columns. A search takes as long as needed."""
        words = parse_words(options.get("words", ""))
        rows = self._columns.select(filters.period, filters)
        return self._all(rows, words)

    def _all(self, rows: Numbers, words: tuple[str, ...]) -> Iterator[list[Cell]]:
        yield [column["label"] for column in COLUMNS]
        if not words:
            yield from self._in_parts(rows)
            return
        # Another thread may use the kept searches at the same time.
        search = Search(self._columns, rows, words, self._templates)
        written = 0
        while search.searched_from_us is not None:
            search.advance(0)
            found = search.found_in_order()
            yield from self._in_parts(found[: len(found) - written])
            written = len(found)

    def _in_parts(self, rows: Numbers) -> Iterator[list[Cell]]:
        for end in range(len(rows), 0, -_IN_FILE):
            yield from self._cells(rows[max(0, end - _IN_FILE) : end][::-1])

    def _search(self, filters: Filters, options: Mapping[str, str]) -> Search | None:
        words = parse_words(options.get("words", ""))
        if not words:
            return None
        key = (filters._replace(other=None).key, words)
        search = self._searches.get(key)
        if search is None:
            rows = self._columns.select(filters.period, filters)
            search = Search(self._columns, rows, words, self._templates)
            self._searches[key] = search
            if len(self._searches) > _SEARCHES:
                self._searches.popitem(last=False)
        self._searches.move_to_end(key)
        return search

    def _only(self, cursor: str) -> Rows:
        row = self._columns.at(cursor)
        if row is None:
            raise WebProblem(404, f"row={cursor[:40]}: there is no such row")
        return Rows(
            columns=[*COLUMNS],
            rows=[*self._cells(np.array([row]), is_whole=True)],
            matching=1,
            next="",
            over_time=None,
            ids=[cursor],
            searched_from=None,
        )

    def _cells(self, rows: Numbers, *, is_whole: bool = False) -> Iterator[list[Cell]]:
        """Yield the cells of these rows, in this order."""
        texts = self._columns.texts
        coded = [(texts[name].labels, texts[name].codes[rows].tolist()) for name in _CODED]
        templates = texts["template"]
        of_template = templates.codes[rows].tolist()
        times_ms = (self._columns.time_us[rows] // 1_000).tolist()
        most = (None, None) if is_whole else (MESSAGE_LENGTH, MORE_LENGTH)
        for number, messages in enumerate(self._columns.messages(rows)):
            labels = (of[codes[number]] for of, codes in coded)
            yield [
                times_ms[number],
                *(None if label is None else shown(label) for label in labels),
                *map(self._text, messages, most),
                templates.values[of_template[number]],
            ]

    def _text(self, text: str | None, most: int | None) -> str | None:
        if text is None:
            return None
        if most is None:
            return shown(self._mask(text), None)
        masked = self._mask(text[: most + _MASKED_AHEAD])
        is_cut = len(text) > most + _MASKED_AHEAD or len(masked) > most
        return shown(masked[:most], None) + ("…" if is_cut else "")
