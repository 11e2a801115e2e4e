"""Holds the columns of system log entries in memory, except for their messages.

A column of strings is stored as small numbers, so a line takes about 30 bytes. Lines are in the
order of their times; lines with the same time are in the order of the topic. For its message, each
line has its place: a row group of a Parquet file, and a row in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from barnabas.console.problem import WebProblem
from barnabas_pipeline.logs.schemas import ENTRIES
from barnabas_pipeline.pages.filters import MISSING, Filters, Period
from barnabas_pipeline.pages.merged_order import merged_order

Numbers = npt.NDArray[Any]

DIMENSIONS: Final = ("level", "component", "host", "format", "template", "service", "file")
_TEXTS: Final = (*DIMENSIONS, "topic")
_PLACE: Final = ("partition", "offset", "item")
_BATCH_ROWS: Final = 65_536
_READ_AHEAD: Final = 1  # batch, because Arrow's default of 16 takes much memory


class Coded(NamedTuple):
    """A column of strings: each row's number of a value."""

    codes: Numbers
    values: list[str | None]
    """The values by their numbers. The first one is None."""
    labels: list[str | None]
    """The values as pages show them and as filters name them."""


class Unit(NamedTuple):
    """A row group of a file."""

    fragment: Any
    rows: int

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read these columns in the order of the rows, a part at a time."""
        scanner = self.fragment.scanner(
            schema=ENTRIES,
            columns=list(columns),
            batch_size=_BATCH_ROWS,
            batch_readahead=_READ_AHEAD,
            use_threads=False,
        )
        yield from scanner.to_batches()


class LogColumns(NamedTuple):
    """All lines, the oldest first."""

    time_us: Numbers
    texts: Mapping[str, Coded]
    place: Mapping[str, Numbers]
    """The place in the topic, in which `item` is 0 for a line and increased by 1 otherwise."""
    unit: Numbers
    row: Numbers
    units: list[Unit]
    paths: frozenset[str] = frozenset()
    """The files that have been read."""

    @property
    def bytes(self) -> int:
        """The size of all numbers."""
        columns = [self.time_us, self.unit, self.row, *self.place.values()]
        columns += [each.codes for each in self.texts.values()]
        return sum(each.nbytes for each in columns)

    def select(self, period: Period, filters: Filters) -> Numbers:
        """Return the numbers of the rows that match these filters in this period, in order."""
        since_us, until_us = period
        first = 0 if since_us is None else int(np.searchsorted(self.time_us, since_us))
        end = len(self.time_us)
        if until_us is not None:
            end = int(np.searchsorted(self.time_us, until_us))
        is_wanted: Numbers | None = None
        for name, values in filters.values.items():
            column = self.texts[name]
            wanted = {None if value == MISSING else value for value in values}
            of_code = np.fromiter((each in wanted for each in column.labels), bool)
            own = of_code[column.codes[first:end]]
            is_wanted = own if is_wanted is None else is_wanted & own
        if is_wanted is None:
            return np.arange(first, max(first, end), dtype=np.uint32)
        return (np.flatnonzero(is_wanted) + first).astype(np.uint32)

    def counts(self, name: str, rows: Numbers) -> dict[str | None, int]:
        """Return how many of these rows have each label of a dimension."""
        column = self.texts[name]
        found = np.bincount(take(column.codes, rows), minlength=len(column.labels))
        by_label: dict[str | None, int] = {}
        for code in np.flatnonzero(found):
            label = column.labels[code]
            by_label[label] = by_label.get(label, 0) + int(found[code])
        return by_label

    def cursor(self, row: int) -> str:
        """Return a text that stands for the place of this row, also after further batches."""
        topic = self.texts["topic"].values[int(self.texts["topic"].codes[row])] or ""
        places = [str(int(self.place[name][row])) for name in _PLACE]
        return ",".join([str(int(self.time_us[row])), topic, *places])

    def position(self, cursor: str) -> int:
        """Return the number of rows before the place of a cursor. Raises WebProblem."""
        time_us, topic, *places = _parsed(cursor)
        first, end = np.searchsorted(self.time_us, [time_us, time_us + 1])
        # Topics are numbered in the order of their names.
        names = [each or "" for each in self.texts["topic"].values]
        topics = self.texts["topic"].codes[first:end]
        before = np.fromiter((name < topic for name in names), bool, len(names))[topics]
        same = np.fromiter((name == topic for name in names), bool, len(names))[topics]
        for name, value in zip(_PLACE, places, strict=True):
            own = self.place[name][first:end].astype(np.int64)
            before |= same & (own < value)
            same &= own == value
        return int(first) + int(np.count_nonzero(before))

    def at(self, cursor: str) -> int | None:
        """Return the row whose cursor this is, or None. Raises WebProblem."""
        row = self.position(cursor)
        return row if row < len(self.time_us) and self.cursor(row) == cursor else None

    def messages(self, rows: Numbers) -> Iterator[tuple[str | None, str | None]]:
        """Yield `message` and `more` of these rows, in this order."""
        order = np.lexsort((self.row[rows], self.unit[rows]))
        found: list[tuple[str | None, str | None]] = [(None, None)] * len(rows)
        units = self.unit[rows][order]
        for unit in np.unique(units):
            own = order[units == unit]
            for numbers, texts in self.parts(int(unit), self.row[rows[own]]):
                for number, text in zip(own[numbers], texts.iter_rows(), strict=True):
                    found[number] = text
        yield from found

    def parts(self, unit: int, rows: Numbers) -> Iterator[tuple[slice, pl.DataFrame]]:
        """Yield `message` and `more` of these rows of a unit, a part at a time, each with the range
        of `rows` that it covers. `rows`: numbers of rows in the unit, in order.
        """
        first, done = 0, 0
        for batch in self.units[unit].batches(("message", "more")):
            end = first + batch.num_rows
            until = int(np.searchsorted(rows, end))
            if until > done:
                wanted = pa.array(rows[done:until].astype(np.int64) - first)
                texts = pl.from_arrow(batch.take(wanted))
                assert isinstance(texts, pl.DataFrame)
                yield slice(done, until), texts
            first, done = end, until
            if done == len(rows):
                return


def take(numbers: Numbers, rows: Numbers) -> Numbers:
    """Return the numbers of these rows, without a copy if the rows follow each other."""
    if len(rows) and int(rows[-1]) - int(rows[0]) == len(rows) - 1:
        return numbers[int(rows[0]) : int(rows[-1]) + 1]
    return numbers[rows]


def read_columns(
    dataset: Any, mask: Callable[[str], str], before: LogColumns | None = None
) -> LogColumns:
    """Read the columns of the table `entries`, of which `dataset` may be None.

    `mask`: a function that is applied to the labels of hosts and files. `before`: the columns of an
    earlier version of the table, whose rows are not read again.
    """
    fragments = [] if dataset is None else list(dataset.get_fragments())
    paths = frozenset(each.path for each in fragments)
    if before is not None and not before.paths <= paths:
        before = None  # such as after a compaction
    units = [
        Unit(fragment.subset(row_group_ids=[group.id]), group.num_rows)
        for fragment in fragments
        if before is None or fragment.path not in before.paths
        for group in fragment.row_groups
    ]
    known = [] if before is None else before.units
    reading = _Reading([*known, *units], before)
    for number in range(len(known), len(known) + len(units)):
        reading.read(number)
    found = reading.finish(mask)._replace(paths=paths)
    pa.default_memory_pool().release_unused()
    return found


class _Reading:
    """The columns while they are being read.

    They have their final length from the start, because many small arrays would leave gaps in
    memory. Their types become wider when larger numbers need it.
    """

    def __init__(self, units: list[Unit], before: LogColumns | None) -> None:
        self._codes: dict[str, dict[str | None, int]] = {name: {None: 0} for name in _TEXTS}
        self._units = units
        self._ordered = 0 if before is None else len(before.time_us)
        self._end = self._ordered
        total = sum(each.rows for each in units)
        self._time_us = np.zeros(total, np.int64)
        names = (*_TEXTS, *_PLACE, "unit", "row")
        self._columns: dict[str, Numbers] = {name: np.zeros(total, np.uint8) for name in names}
        if before is not None:
            self._keep(before)

    def _keep(self, before: LogColumns) -> None:
        own = slice(0, self._ordered)
        self._time_us[own] = before.time_us
        for name, column in before.texts.items():
            self._codes[name] = {value: number for number, value in enumerate(column.values)}
            self._put(name, own, column.codes)
        for name, numbers in before.place.items():
            self._put(name, own, numbers)
        self._put("unit", own, before.unit)
        self._put("row", own, before.row)

    def read(self, number: int) -> None:
        """Read a unit."""
        row = 0
        for batch in self._units[number].batches(("time", *_TEXTS, *_PLACE)):
            rows = batch.num_rows
            own = slice(self._end, self._end + rows)
            self._time_us[own] = batch.column("time").cast(pa.int64()).to_numpy()
            for name in _TEXTS:
                self._put(name, own, self._encoded(name, batch.column(name)))
            for name in _PLACE:
                column = pc.add(batch.column(name).cast(pa.int64()), int(name == "item"))
                self._put(name, own, pc.fill_null(column, 0).to_numpy(zero_copy_only=False))
            self._put("unit", own, np.array([number]))
            self._put("row", own, np.arange(row, row + rows))
            row += rows
            self._end += rows

    def _put(self, name: str, own: slice, numbers: Numbers) -> None:
        numbers = _narrow(numbers)
        kind = np.promote_types(self._columns[name].dtype, numbers.dtype)
        self._columns[name] = self._columns[name].astype(kind, copy=False)
        self._columns[name][own] = numbers

    def _encoded(self, name: str, column: pa.Array) -> Numbers:
        known = self._codes[name]
        encoded = column.dictionary_encode()
        own = [known.setdefault(value, len(known)) for value in encoded.dictionary.to_pylist()]
        of = _narrow(np.array([0, *own], np.int64))
        indices = pc.add(pc.fill_null(encoded.indices, -1), 1)
        codes: Numbers = of[indices.to_numpy(zero_copy_only=False)]
        return codes

    def finish(self, mask: Callable[[str], str]) -> LogColumns:
        time_us, columns = self._time_us, self._columns
        columns["topic"] = self._in_order(columns["topic"])
        keys = [columns[name] for name in ("item", "offset", "partition", "topic")]
        order = merged_order((time_us, *keys[::-1]), self._ordered)
        time_us = time_us[order]
        for name in columns:
            columns[name] = columns[name][order]
        texts = {}
        for name in _TEXTS:
            values = [*self._codes[name]]
            texts[name] = Coded(
                columns[name], values, [_label(name, each, mask) for each in values]
            )
        place = {name: columns[name] for name in _PLACE}
        return LogColumns(time_us, texts, place, columns["unit"], columns["row"], self._units)

    def _in_order(self, topics: Numbers) -> Numbers:
        """Number the topics in the order of their names."""
        known = self._codes["topic"]
        names = sorted(known, key=lambda each: each or "")
        self._codes["topic"] = {name: number for number, name in enumerate(names)}
        of = _narrow(np.array([self._codes["topic"][name] for name in known], np.int64))
        return of[topics]


def _label(name: str, value: str | None, mask: Callable[[str], str]) -> str | None:
    if value is None or name not in ("host", "file"):
        return value
    return mask(Path(value).name if name == "file" else value)


def _narrow(numbers: Numbers) -> Numbers:
    largest = int(numbers.max(initial=0))
    return numbers.astype(np.min_scalar_type(largest)) if numbers.min(initial=0) >= 0 else numbers


def _parsed(cursor: str) -> tuple[int, str, int, int, int]:
    try:
        time_us, topic, partition, offset, item = cursor.split(",")
        numbers = int(time_us), int(partition), int(offset), int(item)
        if any(abs(each) >= 1 << 62 for each in numbers):
            raise ValueError
    except ValueError:
        raise WebProblem(400, f"{cursor[:40]}: this is neither a row nor a cursor") from None
    return numbers[0], topic, *numbers[1:]
