"""Stores the byte strings of many records, converted from a user's columns, in one numpy buffer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Octets = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]


class ByteColumn(NamedTuple):
    """Represents a column of byte strings stored one after another. A null has length 0."""

    data: Octets
    lengths: Integers
    starts: Integers
    nulls: Flags | None
    """The flags that mark nulls, or None if the column has no nulls."""

    @classmethod
    def of(cls, values: Any, argument: str) -> ByteColumn:
        """Convert Arrow arrays, pandas or polars Series, numpy arrays or a sequence to a column.

        Text is encoded as UTF-8. Raises TypeError if a value is neither bytes nor text nor null.
        """
        if hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"):
            return _of_arrow(values, argument)
        if isinstance(values, str | bytes | bytearray | memoryview):
            raise TypeError(f"{argument}: must be a column, not {type(values).__name__}")
        if hasattr(values, "to_numpy"):
            values = values.to_numpy(dtype=object, na_value=None)
        if isinstance(values, np.ndarray):
            if values.ndim != 1 or values.dtype.kind not in "OSU":
                raise TypeError(
                    f"{argument}: must be one column of bytes or text, not {values.ndim} "
                    f"dimensions of {values.dtype}"
                )
            values = values.tolist()
        try:
            values = list(values)
        except TypeError:
            raise TypeError(f"{argument}: must be a column, not {type(values).__name__}") from None
        return _of_list(values, argument)

    def __len__(self) -> int:
        return len(self.lengths)

    def part(self, first: int, end: int) -> ByteColumn:
        """Return the rows from `first` up to, but not including, `end`."""
        if first == 0 and end == len(self.lengths):
            return self
        lengths = self.lengths[first:end]
        start = int(self.starts[first]) if first < len(self.starts) else len(self.data)
        data = self.data[start : start + int(lengths.sum())]
        nulls = None if self.nulls is None else self.nulls[first:end]
        return ByteColumn(data, lengths, self.starts[first:end] - start, nulls)

    def take(self, rows: Integers) -> ByteColumn:
        """Return the rows with these indices in the given order."""
        lengths = self.lengths[rows]
        starts = _starts(lengths)
        nulls = None if self.nulls is None else self.nulls[rows]
        size = int(lengths[0]) if len(lengths) else 0
        if len(lengths) and int(self.lengths.min()) == size == int(self.lengths.max()):
            data = self.data.reshape(-1, size)[rows].reshape(-1) if size else self.data[:0]
        else:
            places = np.repeat(self.starts[rows] - starts, lengths)
            places += np.arange(len(places))
            data = self.data[places]
        return ByteColumn(data, lengths, starts, nulls)


def _starts(lengths: Integers) -> Integers:
    return np.cumsum(lengths) - lengths


def _column(data: Any, lengths: Integers, nulls: Flags | None) -> ByteColumn:
    return ByteColumn(np.frombuffer(data, np.uint8), lengths, _starts(lengths), nulls)


def _of_arrow(values: Any, argument: str) -> ByteColumn:
    try:
        import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed
    except ImportError:  # values may be, for example, a polars Series
        return ByteColumn.of(values.to_list(), argument)
    array = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array(values)
    if not len(array):
        return _column(b"", np.zeros(0, np.int64), None)
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if not (
        any(part in str(kind) for part in ("binary", "string", "utf8")) or pa.types.is_null(kind)
    ):
        raise TypeError(f"{argument}: must be a column of bytes or text, not of {kind}")
    if pa.types.is_fixed_size_binary(kind):
        array = array.cast(pa.binary())
    array = array.cast(pa.large_binary()).combine_chunks()
    nulls = None
    if array.null_count:
        nulls = np.asarray(array.is_null())
        array = array.fill_null(b"")
    ends = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
    data = array.buffers()[2]
    octets = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    lengths = np.diff(ends)
    return ByteColumn(octets[ends[0] : ends[-1]], lengths, ends[:-1] - ends[0], nulls)


def _of_list(values: list[Any], argument: str) -> ByteColumn:
    nulls = None
    if None in values:
        nulls = np.fromiter((value is None for value in values), np.bool_, len(values))
        values = [b"" if value is None else value for value in values]
    try:
        data = b"".join(values)
    except TypeError:
        values = [_octets(value, row, argument) for row, value in enumerate(values)]
        data = b"".join(values)
    return _column(data, np.fromiter(map(len, values), np.int64, len(values)), nulls)


def _octets(value: Any, row: int, argument: str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"{argument}: row {row} is {type(value).__name__}, not bytes, text or None")
