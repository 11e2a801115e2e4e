"""Holds the hits of a pipeline as columns of small numbers, from which all figures are computed.

A hit is an event, or a line of an access log. The hits of a session are adjacent, in order of time,
and so are the sessions of a visitor. Texts are stored once, in `Values`, and each column refers to
them by their numbers. A property of a session, such as its source, is stored once for each session.

A hit without a visitor has a session of its own, which is counted neither as a session nor as one
of a visitor. Such sessions come last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_pipeline.behaviour.sessions import SILENCE_S
from barnabas_pipeline.instants import HOUR_US
from barnabas_pipeline.pages.filters import MISSING
from barnabas_pipeline.pages.merged_order import merged_order

Array = npt.NDArray[Any]
Change = Callable[[list[str | None]], Sequence[str | None]]
"""Changes distinct values, for example by hiding addresses in them."""

_MOST_HOURS: Final = 2_000_000
"""A line with a wrong year, such as 9999, must not make each answer slow. This is 228 years."""
_SILENCE_US: Final = SILENCE_S * 1_000_000


class Values:
    """The values of a dimension, each with a number. A missing value has the number 0."""

    def __init__(self, missing: str = MISSING, change: Change | None = None) -> None:
        self.names = [missing]
        self.numbers = {missing: 0}
        self._change = change

    def encode(self, column: Any) -> Array:
        """Return the numbers of the values in an Arrow column of texts."""
        found = column.dictionary_encode("encode")
        distinct: list[str | None] = found.dictionary.to_pylist()
        own = distinct if self._change is None else self._change(distinct)
        numbers = np.array([self.number(each) for each in own] or [0], dtype=np.uint32)
        codes: Array = numbers[found.indices.to_numpy(zero_copy_only=False)]
        return codes

    def number(self, value: str | None) -> int:
        """Return the number of a value, which is added if it is new."""
        if value is None:
            return 0
        number = self.numbers.get(value)
        if number is None:
            number = self.numbers[value] = len(self.names)
            self.names.append(value)
        return number

    def copy(self) -> Values:
        """Return the same values, to which others can be added."""
        copy = Values(change=self._change)
        copy.names, copy.numbers = self.names.copy(), self.numbers.copy()
        return copy

    def __len__(self) -> int:
        return len(self.names)


class Coded(NamedTuple):
    """A dimension: the number of the value of each hit or, if `of_sessions`, of each session."""

    label: str
    codes: Array
    values: Values
    of_sessions: bool = False


class Sessions(NamedTuple):
    """The sessions, with one number for each."""

    begins: Array
    """The number of the first hit of each session and, at the end, the number of hits."""
    visitors: Array
    """The number of the visitor of each session."""
    pages: Array
    seconds: Array
    """The whole seconds from the first hit to the last, as on the page in a file."""
    real: int
    """The number of sessions, without those of hits without a visitor."""


class Hits(NamedTuple):
    """The hits, ordered by visitor and time."""

    time_us: Array
    hour: Array
    """The hour of each hit, counted from `first_hour`."""
    first_hour: int
    session: Array
    """The number of the session of each hit."""
    row: Array
    """The number of the row of each hit in the table."""
    is_view: Array
    is_error: Array
    dimensions: Mapping[str, Coded]
    sessions: Sessions
    measures: Mapping[str, Array]
    """Numbers of each hit, such as its bytes."""
    notes: Mapping[str, Notes]
    """Contains what only some hits have."""
    note_values: Mapping[str, Values] = {}
    """The texts to which notes refer."""

    def __len__(self) -> int:
        return len(self.time_us)


class Notes(NamedTuple):
    """Numbers that only some hits have, such as the value of an event."""

    at: Array
    """The numbers of the hits, in increasing order."""
    columns: Mapping[str, Array]


class Order(NamedTuple):
    """How rows of a table become hits, and sessions."""

    rows: Array
    """The row of each hit."""
    time_us: Array
    session: Array
    sessions: Sessions

    def places(self) -> Array:
        """Return the hit of each row."""
        places = np.empty(len(self.rows), dtype=np.uint32)
        places[self.rows] = np.arange(len(self.rows), dtype=np.uint32)
        return places


NO_VISITOR: Final = np.iinfo(np.uint64).max
"""Stands for the visitor of a hit without one; larger than the hash of any visitor."""


def order_of(
    visitors: Array, time_us: Array, place: Sequence[Array], is_view: Array, ordered: int = 0
) -> Order:
    """Return the order of these rows.

    `visitors`: hashes. `place`: the partitions and offsets, which order hits of the same time.
    `ordered`: the number of rows at the begin that are already in order.
    """
    rows = merged_order((visitors, time_us, *place), ordered)
    visitors, time_us, is_view = visitors[rows], time_us[rows], is_view[rows]
    count = len(rows)
    is_own = visitors == NO_VISITOR
    is_other = np.ones(count, dtype=bool)
    is_other[1:] = (visitors[1:] != visitors[:-1]) | is_own[1:]
    is_new = is_other.copy()
    is_new[1:] |= np.diff(time_us) >= _SILENCE_US
    begins = np.append(np.flatnonzero(is_new), count)
    lengths = np.diff(begins)
    session = np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths)
    first, last = begins[:-1], begins[1:] - 1
    sessions = Sessions(
        begins,
        (np.cumsum(is_other) - 1).astype(np.uint32)[first],
        small(_sums(is_view, begins)),
        (time_us[last] // 1_000_000 - time_us[first] // 1_000_000).astype(np.uint32),
        int(np.count_nonzero(~is_own[first])),
    )
    return Order(rows, time_us, session, sessions)


def hours_of(time_us: Array) -> tuple[Array, int]:
    """Return the hour of each hit, counted from the first one, and the first one."""
    hours = time_us // HOUR_US
    first = int(hours.min()) if len(hours) else 0
    hours -= first
    return small(np.minimum(hours, _MOST_HOURS)), first


def first_of(session: Array, places: Array, sessions: int) -> Array:
    """Return the first of these hits in each session, or -1.

    `places`: numbers of hits, in increasing order.
    """
    found = np.full(sessions, -1, dtype=np.int64)
    found[session[places[::-1]]] = places[::-1]  # the first is written last
    return found


def last_of(session: Array, places: Array, sessions: int) -> Array:
    """Return the last of these hits in each session, or -1."""
    found = np.full(sessions, -1, dtype=np.int64)
    found[session[places]] = places
    return found


def entry_and_exit(is_view: Array, order: Order) -> tuple[Array, Array]:
    """Return the first and the last page view of each session, or -1 if it has none."""
    views, count = np.flatnonzero(is_view), len(order.sessions.pages)
    return first_of(order.session, views, count), last_of(order.session, views, count)


def pick(codes: Array, places: Array) -> Array:
    """Return the values at these places, and 0 for -1."""
    if not len(codes):
        return np.zeros(len(places), dtype=codes.dtype)
    return np.where(places >= 0, codes[places], codes.dtype.type(0))


def largest(numbers: Array, most: int) -> Array:
    """Return the places of the largest numbers, `most` of them and those that equal the last."""
    if len(numbers) <= most:
        return np.arange(len(numbers))
    least = np.partition(numbers, len(numbers) - most)[len(numbers) - most]
    return np.flatnonzero(numbers >= least)


def small(numbers: Array) -> Array:
    """Return the numbers, which are not negative, in the smallest type that holds them."""
    largest = int(numbers.max()) if len(numbers) else 0
    kinds = (np.uint8, np.uint16, np.uint32)
    kind: Any = next((each for each in kinds if largest <= np.iinfo(each).max), np.int64)
    return numbers.astype(kind, copy=False)


def _sums(flags: Array, begins: Array) -> Array:
    if len(begins) < 2:
        return np.zeros(0, dtype=np.int64)
    return np.add.reduceat(flags.astype(np.int64), begins[:-1])


def texts(column: Any) -> pa.Array:
    """Return a column as one array of texts."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
