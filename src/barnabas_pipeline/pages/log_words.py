"""Searches the messages of system log entries for words, the newest files first.

All words have to occur in an entry: in its message, its further lines, its component or its host.
Upper and lower case are the same. A phrase in double quotes counts as one word.

Where the component, the host or a constant word of the template decides, the message is not read.
A search stops after a while, says how far back it got, and continues when it is asked again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import polars as pl

from barnabas.console.problem import WebProblem
from barnabas_pipeline.pages.log_columns import LogColumns, Numbers

MOST_WORDS: Final = 20
MOST_CHARACTERS: Final = 2_000
_WORDS: Final = re.compile(r'"([^"]*)(?:"|$)|([^\s"]+)')
# A mask changes key types and words such as `face_2face`, see `logs/masks.py`.
_CHANGED: Final = re.compile(r"(?:ed|[a-f]{3,})(?:25519|2[a-f]{3,})", re.IGNORECASE)


def parse_words(text: str) -> tuple[str, ...]:
    """Return the words and phrases to search for. Raises WebProblem if there are too many."""
    if len(text) > MOST_CHARACTERS:
        raise WebProblem(400, f"words: at most {MOST_CHARACTERS:,} characters are read")
    found = [phrase or word for phrase, word in _WORDS.findall(text)]
    words = tuple(dict.fromkeys(each.lower() for each in found if each))
    if len(words) > MOST_WORDS:
        raise WebProblem(400, f"words: at most {MOST_WORDS} words can be searched for")
    return words


class Search:
    """The search for words in some rows, of which a part may be done."""

    def __init__(
        self,
        columns: LogColumns,
        rows: Numbers,
        words: tuple[str, ...],
        templates: Mapping[str, str],
    ) -> None:
        """`rows`: the numbers of the rows, in order. `templates`: the texts of templates."""
        self._columns = columns
        self._words = words
        self._decided = [_decided(columns, word, templates) for word in words]
        self._found: list[Numbers] = []
        self._left = _by_unit(columns, rows)  # the unit with the newest row last

    @property
    def searched_from_us(self) -> int | None:
        """All rows after this time have been searched; None once all rows have been."""
        if not self._left:
            return None
        return int(self._columns.time_us[self._left[-1][1][-1]])

    def advance(self, seconds: float) -> None:
        """Search at least one further unit, and more of them until this time has passed."""
        end_s = time.monotonic() + seconds
        while self._left:
            unit, rows = self._left.pop()
            matching = self._matching(unit, rows)
            if len(matching):
                self._found.append(matching)
            if time.monotonic() >= end_s:
                break

    def found(self) -> Numbers:
        """Return the rows found so far, in order."""
        if len(self._found) > 1:
            self._found = [np.sort(np.concatenate(self._found))]
        return self._found[0] if self._found else np.zeros(0, np.uint32)

    def found_in_order(self) -> Numbers:
        """Return the rows found after which no newer ones will be found, in order."""
        from_us = self.searched_from_us
        rows = self.found()
        if from_us is None:
            return rows
        return rows[int(np.searchsorted(self._columns.time_us[rows], from_us, "right")) :]

    def _matching(self, unit: int, rows: Numbers) -> Numbers:
        texts = self._columns.texts
        matches = np.ones((len(self._words), len(rows)), bool)
        for number, decided in enumerate(self._decided):
            own = [of_code[texts[name].codes[rows]] for name, of_code in decided.items()]
            matches[number] = np.logical_or.reduce(own)
        unsure = np.flatnonzero(~matches.all(axis=0))
        if len(unsure):
            # The rows of a unit are read in the order of the file.
            unsure = unsure[np.argsort(self._columns.row[rows[unsure]], kind="stable")]
            for part, messages in self._columns.parts(unit, self._columns.row[rows[unsure]]):
                self._read(matches, unsure[part], messages)
        return rows[matches.all(axis=0)]

    def _read(self, matches: Numbers, numbers: Numbers, messages: pl.DataFrame) -> None:
        """Set which of the rows with these numbers match each word."""
        left = np.arange(len(numbers))
        for number, word in enumerate(self._words):
            asked = left[~matches[number, numbers[left]]]
            if len(asked):
                matches[number, numbers[asked]] = _contain(messages[asked], word)
            left = left[matches[number, numbers[left]]]


def _contain(messages: pl.DataFrame, word: str) -> Numbers:
    """Return which of the messages contain a word, which is in lower case."""
    found = [_contains(messages["message"], word)]
    if messages["more"].null_count() < messages.height:
        found.append(_contains(messages["more"], word))
    matches: Numbers = np.logical_or.reduce([each.fill_null(False).to_numpy() for each in found])
    return matches


def _contains(texts: pl.Series, word: str) -> pl.Series:
    if word.isascii():
        return texts.str.contains_any([word], ascii_case_insensitive=True)
    return texts.str.to_lowercase().str.contains(word, literal=True)


def _decided(columns: LogColumns, word: str, templates: Mapping[str, str]) -> dict[str, Numbers]:
    """Return for which values of these columns all rows match a word."""
    texts = columns.texts
    found = {}
    for name in ("component", "host"):
        values = pl.Series(texts[name].values, dtype=pl.String)
        found[name] = _contains(values, word).fill_null(False).to_numpy()
    constant = [_constant(templates.get(value or "", "")) for value in texts["template"].values]
    found["template"] = _contains(pl.Series(constant, dtype=pl.String), word).to_numpy()
    if any(each.isspace() for each in word):
        # The blanks between the words of a template are not those of its messages.
        found["template"] = np.zeros(len(constant), bool)
    return found


def _constant(template: str) -> str:
    """Return the words of a template that all its messages contain."""
    return " ".join(
        each for each in template.split() if "<" not in each and not _CHANGED.search(each)
    )


def _by_unit(columns: LogColumns, rows: Numbers) -> list[tuple[int, Numbers]]:
    """Return the rows of each unit, in order; the unit with the newest row is last."""
    units = columns.unit[rows]
    order = np.argsort(units, kind="stable")
    ends = np.flatnonzero(np.diff(units[order])) + 1
    groups: Iterator[Numbers] = (rows[each] for each in np.split(order, ends) if len(each))
    found = [(int(columns.unit[each[0]]), each) for each in groups]
    return sorted(found, key=lambda each: int(each[1][-1]))
