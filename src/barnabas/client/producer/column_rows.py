"""Builds record batches from the rows of columns. Pure.

The rows of a partition stay in order. A few megabytes are encoded at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from barnabas.client import arguments
from barnabas.client.producer.open_records import SealedRecords
from barnabas.counted import counted
from barnabas.errors import MessageTooLarge
from barnabas.records.batch import HEADER_BYTES, new_header
from barnabas.records.byte_column import ByteColumn, Integers
from barnabas.records.column_encoder import encode
from barnabas.records.compression import NONE, compress
from barnabas.records.record import RECORD_OVERHEAD_BYTES

_SLICE_BYTES = 4_194_304
_MOST_SLICE_ROWS = 262_144


class ColumnBatch(NamedTuple):
    """A record batch without an identity, and the original numbers of its rows."""

    records: SealedRecords
    rows: Sequence[int]


class ColumnRows(NamedTuple):
    """All or some of the rows in the columns that were passed to one call."""

    values: ByteColumn
    keys: ByteColumn | None
    times: Integers
    numbers: Integers | range
    """The original numbers of the rows."""

    @classmethod
    def of(cls, values: Any, keys: Any, timestamps_ms: Any, max_request_size: int) -> Self:
        """Return the rows of these columns; `timestamps_ms` is one number for all, or one per row.

        Raises TypeError, ValueError or MessageTooLarge, which name the argument and the row.
        """
        column = ByteColumn.of(values, "values")
        count = len(column)
        key_column = None if keys is None else ByteColumn.of(keys, "keys")
        if key_column is not None and len(key_column) != count:
            raise ValueError(
                f"keys: {counted(len(key_column), 'row')}, but {counted(count, 'value')}"
            )
        times = whole_numbers(timestamps_ms, count, "timestamps_ms")
        rows = cls(column, key_column, times, range(count))
        sizes = rows.sizes()
        if count and int(sizes.max()) > max_request_size:
            row = int(sizes.argmax())
            raise MessageTooLarge(
                f"values: row {row} makes a record of {int(sizes[row])} bytes, more than "
                f"{max_request_size} (max.request.size)"
            )
        return rows

    def sizes(self) -> Integers:
        """Return the maximum size of each record in bytes."""
        sizes = self.values.lengths + RECORD_OVERHEAD_BYTES
        return sizes if self.keys is None else sizes + self.keys.lengths

    def part(self, first: int, end: int) -> Self:
        """Return the rows from `first` up to, but not including, `end`."""
        keys = None if self.keys is None else self.keys.part(first, end)
        times, numbers = self.times[first:end], self.numbers[first:end]
        return type(self)(self.values.part(first, end), keys, times, numbers)

    def take(self, rows: Integers) -> Self:
        """Return the rows with these numbers, in the given order."""
        keys = None if self.keys is None else self.keys.take(rows)
        return type(self)(self.values.take(rows), keys, self.times[rows], rows)

    def by_partition(self, chosen: Integers) -> Iterator[tuple[int, Self]]:
        """Yield the rows of each partition, in the order of the partition numbers."""
        if len(chosen) and int(chosen.min()) == int(chosen.max()):
            yield int(chosen[0]), self
            return
        # A stable sort keeps the rows of a partition in order (TP-2).
        order = np.argsort(chosen, kind="stable")
        partitions, firsts = np.unique(chosen[order], return_index=True)
        ends = [*firsts[1:].tolist(), len(order)]
        for partition, first, end in zip(partitions.tolist(), firsts.tolist(), ends, strict=False):
            yield partition, self.take(order[first:end])

    def batches(self, batch_size: int, codec: int) -> Iterator[ColumnBatch]:
        """Yield all rows in batches of at most `batch_size` bytes, or of one larger record."""
        first = 0
        for end in _cuts(self.sizes(), _SLICE_BYTES, _MOST_SLICE_ROWS):
            yield from self.part(first, end)._encode(batch_size, codec)
            first = end

    def _encode(self, batch_size: int, codec: int) -> Iterator[ColumnBatch]:
        # Encode all rows together, then cut the bytes into batches; offset and timestamp deltas
        # restart with each batch.
        ends = list(_cuts(self.sizes(), batch_size - HEADER_BYTES))
        firsts = [0, *ends[:-1]]
        counts = np.diff([0, *ends])
        places = np.arange(len(self.times)) - np.repeat(firsts, counts)
        deltas = self.times - np.repeat(self.times[firsts], counts)
        encoded = encode(self.values, self.keys, deltas, places)
        bounds = encoded.starts[[0, *ends]].tolist()
        octets = encoded.octets.data
        bases = self.times[firsts].tolist()
        lasts = np.maximum.reduceat(self.times, firsts).tolist()
        for number, (first, end) in enumerate(zip(firsts, ends, strict=True)):
            body: Any = octets[bounds[number] : bounds[number + 1]]
            if codec != NONE:
                body = compress(codec, body)
            header = new_header(codec, end - first, bases[number], lasts[number])
            yield ColumnBatch(SealedRecords(header, body), _sequence(self.numbers[first:end]))


def whole_numbers(given: Any, count: int, argument: str) -> Integers:
    """Return one number for all rows or one number per row. No number may be negative."""
    if not hasattr(given, "__len__"):
        return np.full(count, arguments.whole_number(given, argument), np.int64)
    numbers = np.asarray(given)
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and len(numbers)):
        raise TypeError(f"{argument}: must be whole numbers, not {numbers.dtype}")
    if len(numbers) != count:
        raise ValueError(
            f"{argument}: {counted(len(numbers), 'row')}, but {counted(count, 'value')}"
        )
    if count and int(numbers.min()) < 0:
        raise ValueError(
            f"{argument}: row {int(numbers.argmin())} is {numbers.min()}, which is negative"
        )
    return numbers.astype(np.int64)


def _sequence(numbers: Integers | range) -> Sequence[int]:
    return numbers if isinstance(numbers, range) else numbers.tolist()


def _cuts(sizes: Integers, limit: int, most_rows: int = 2**31) -> Iterator[int]:
    """Yield the end of each part. A part has at most `limit` bytes, or a single larger row."""
    sums = np.cumsum(sizes)
    first, before = 0, 0
    while first < len(sizes):
        end = int(np.searchsorted(sums, before + limit, "right"))
        end = min(max(end, first + 1), first + most_rows)
        yield end
        first, before = end, int(sums[end - 1])
