"""Counts the records of the last half hour, minute by minute, within bounded memory. Pure.

    rows ─▶ minutes      hits, errors, rejected records, and how often each value occurred
         └▶ visitors     who was there, in slices of ten seconds

A row is counted in the minute of its own time. A time in the future counts as the present. Rows
older than the half hour are only counted as `older`.

A minute keeps the `MOST_VALUES` most frequent values of each column once it has seen twice as many.
The count of a value that was dropped and returns is then too low; hits are always exact. A slice
keeps the `MOST_VISITORS` smallest hashes of its visitors. As long as no slice has more visitors,
their number is exact; beyond, it is estimated from the density of these hashes, with a standard
error of about one per cent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from barnabas_pipeline.pages.shapes import Leader, Moment, Now

MINUTES: Final = 30
MINUTE_MS: Final = 60_000
SPAN_MS: Final = MINUTES * MINUTE_MS
ONLINE_MS: Final = 5 * MINUTE_MS
SLICE_MS: Final = 10_000
MOST_VALUES: Final = 1_000
MOST_VISITORS: Final = 8_192
LEADERS: Final = 10
"""The number of rows in a list."""

_MOST_LETTERS: Final = 300
"""The length to which values are shortened."""
_ALL: Final = 1 << 64
"""One more than the greatest hash."""

FIELDS: Final = pl.Schema(
    {"time_ms": pl.Int64, "visitor": pl.String, "is_error": pl.Boolean, "is_rejected": pl.Boolean}
)
"""The columns of each row, apart from the counted ones. `visitor` is null for a program, and for a
person who cannot be recognised."""


class _Minute:
    def __init__(self, columns: Sequence[str]) -> None:
        self.hits = self.errors = self.rejected = self.older = 0
        self.values: dict[str, Counter[str]] = {name: Counter() for name in columns}
        self.is_partial = False
        """Whether values were dropped."""


class _Slice(NamedTuple):
    """The visitors of ten seconds."""

    hashes: np.ndarray
    """Sorted, each once."""
    below: int
    """All visitors whose hashes are below this number are known."""


class LastHalfHour:
    """The counts of the last half hour. `columns`: the columns whose values are counted."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        self._minutes: dict[int, _Minute] = {}
        self._slices: dict[int, _Slice] = {}

    def add(self, rows: pl.DataFrame, now_ms: int) -> None:
        """Count rows, which have the columns of `FIELDS` and the counted columns.

        A null in a counted column is not counted.
        """
        self.forget(now_ms)
        time = pl.min_horizontal("time_ms", pl.lit(now_ms))
        stamped = rows.with_columns(time, (time // MINUTE_MS).alias("minute"))
        kept = stamped.filter(pl.col("minute") >= _oldest(now_ms))
        self._minute(now_ms // MINUTE_MS).older += rows.height - kept.height
        good = ~pl.col("is_rejected")
        sums = kept.group_by("minute").agg(
            good.sum().alias("hits"),
            (good & pl.col("is_error")).sum().alias("errors"),
            pl.col("is_rejected").sum(),
        )
        for number, hits, errors, rejected in sums.iter_rows():
            minute = self._minute(number)
            minute.hits += hits
            minute.errors += errors
            minute.rejected += rejected
        hits = kept.filter(good)
        for name in self._columns:
            self._count(name, hits)
        self._see(hits, now_ms)

    def forget(self, now_ms: int) -> None:
        """Drop everything older than the half hour before this time."""
        oldest, slice_ = _oldest(now_ms), _oldest_slice(now_ms)
        for number in [each for each in self._minutes if each < oldest]:
            del self._minutes[number]
        for number in [each for each in self._slices if each < slice_]:
            del self._slices[number]

    @property
    def is_partial(self) -> bool:
        """Whether a minute had too many different values, so that some counts are too low."""
        return any(minute.is_partial for minute in self._minutes.values())

    def totals(self, column: str) -> Counter[str]:
        """Return how often each value occurred in the half hour."""
        found: Counter[str] = Counter()
        for minute in self._minutes.values():
            found.update(minute.values[column])
        return found

    def top(self, column: str, without: str | None = None) -> list[Leader]:
        """Return the most frequent values. `without`: a value that is left out."""
        totals = self.totals(column)
        totals.pop(without or "", None)
        leading = sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))[:LEADERS]
        return [Leader(label=label, count=count) for label, count in leading]

    def of_minutes(self, column: str) -> pl.DataFrame:
        """Return how often each value occurred in each minute, as `minute`, `value`, `count`."""
        rows = [
            (number * MINUTE_MS, value, count)
            for number, minute in sorted(self._minutes.items())
            for value, count in minute.values[column].items()
        ]
        schema = {"minute": pl.Datetime("ms", "UTC"), "value": pl.String(), "count": pl.Int64()}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def online(self, now_ms: int) -> int:
        """Return the number of different visitors in the last five minutes, in steps of ten
        seconds.
        """
        first = _oldest_slice(now_ms)
        slices = [each for number, each in self._slices.items() if number >= first]
        if not slices:
            return 0
        below = min(each.below for each in slices)
        known = np.unique(np.concatenate([_below(each.hashes, below) for each in slices]))
        return round(len(known) * _ALL / below)

    def show(self, now_ms: int) -> Now:
        """Return the half hour up to this time, without lists."""
        self.forget(now_ms)
        nothing = _Minute(())
        numbers = range(_oldest(now_ms), now_ms // MINUTE_MS + 1)
        minutes = [(number, self._minutes.get(number, nothing)) for number in numbers]
        return Now(
            at=now_ms,
            behind_ms=0,
            online=self.online(now_ms),
            hits=sum(minute.hits for _, minute in minutes),
            errors=sum(minute.errors for _, minute in minutes),
            rejected=sum(minute.rejected for _, minute in minutes),
            older=sum(minute.older for _, minute in minutes),
            minutes=[
                Moment(at=number * MINUTE_MS, hits=minute.hits, errors=minute.errors)
                for number, minute in minutes
            ],
            lists=[],
            problem="",
            note="",
        )

    def _minute(self, number: int) -> _Minute:
        found = self._minutes.get(number)
        if found is None:
            found = self._minutes[number] = _Minute(self._columns)
        return found

    def _count(self, name: str, hits: pl.DataFrame) -> None:
        most = 2 * MOST_VALUES
        value = pl.col(name).str.slice(0, _MOST_LETTERS).alias("value")
        counted = hits.select("minute", value).drop_nulls().group_by("minute", "value").len()
        # Python need not see values that would be dropped at once.
        leading = counted.sort("len", "value", descending=[True, False]).group_by("minute")
        for number, text, count in leading.head(most).iter_rows():
            self._minute(number).values[name][text] += count
        for number, different in counted.group_by("minute").len().iter_rows():
            minute = self._minute(number)
            values = minute.values[name]
            minute.is_partial |= different > most
            if len(values) > most:
                minute.values[name] = Counter(dict(values.most_common(MOST_VALUES)))
                minute.is_partial = True

    def _see(self, hits: pl.DataFrame, now_ms: int) -> None:
        number = (pl.col("time_ms") // SLICE_MS).alias("slice")
        seen = hits.select(number, pl.col("visitor")).drop_nulls()
        recent = seen.filter(pl.col("slice") >= _oldest_slice(now_ms))
        hashes = recent.select("slice", pl.col("visitor").hash().alias("hash")).unique()
        for (number_of, *_), rows in hashes.group_by("slice"):
            slice_ = int(str(number_of))
            before = self._slices.get(slice_, _Slice(np.array([], dtype=np.uint64), _ALL))
            known = _below(np.union1d(before.hashes, rows["hash"].to_numpy()), before.below)
            below = before.below
            if len(known) > MOST_VISITORS:
                below, known = int(known[MOST_VISITORS]), known[:MOST_VISITORS]
            self._slices[slice_] = _Slice(known, below)


def _below(hashes: np.ndarray, below: int) -> np.ndarray:
    return hashes if below == _ALL else hashes[: np.searchsorted(hashes, np.uint64(below))]


def _oldest(now_ms: int) -> int:
    """Return the number of the first of the last thirty minutes."""
    return now_ms // MINUTE_MS - MINUTES + 1


def _oldest_slice(now_ms: int) -> int:
    return (now_ms - ONLINE_MS) // SLICE_MS + 1
