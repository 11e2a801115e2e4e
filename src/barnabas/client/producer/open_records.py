"""Holds the records of an open batch unencoded, and encodes them all when the batch is sent.

For the caller, adding a record costs only two appends. The tests compare the encoded bytes with
those produced by `records.record.BatchBuilder`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import Final

from barnabas.records.batch import NO_TIMESTAMP, BatchHeader, new_header
from barnabas.records.compression import NONE, compress
from barnabas.records.crc32c import Buffer
from barnabas.records.record import Headers, encoded_headers
from barnabas.records.varint import VARINTS

_MOST_RECORDS: Final = 16_384  # offset deltas are cached up to this number
_MOST_SIZES: Final = 4_096
_FEWEST: Final = 8  # with fewer records per timestamp, this does not pay off


class OpenRecords:
    """The timestamps and values of all records, with their keys and headers if there are any."""

    __slots__ = ("codec", "headers", "keys", "timestamps", "values")

    def __init__(self, codec: int) -> None:
        self.codec = codec
        self.timestamps: list[int] = []
        self.values: list[bytes | None] = []
        self.keys: dict[int, bytes] = {}  # keys by record index
        self.headers: dict[int, Headers] = {}

    @classmethod
    def of_values(cls, values: Sequence[bytes], timestamp_ms: int, codec: int) -> OpenRecords:
        """Return records that have no keys and headers, and that all have the same timestamp."""
        records = cls(codec)
        records.values = list(values)
        records.timestamps = [timestamp_ms] * len(values)
        return records

    @property
    def count(self) -> int:
        return len(self.values)

    def append(
        self, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Headers
    ) -> None:
        if key is not None:
            self.keys[len(self.values)] = key
        if headers:
            self.headers[len(self.values)] = headers
        self.timestamps.append(timestamp_ms)
        self.values.append(value)

    def build(self) -> tuple[BatchHeader, bytes]:
        """Return the header of a batch that has no identity, and the compressed records."""
        times = self.timestamps
        last, base = max(times, default=NO_TIMESTAMP), times[0] if times else NO_TIMESTAMP
        body = self._values_alone(base) or self._any(base)
        if self.codec != NONE:
            body = compress(self.codec, body)
        return new_header(self.codec, len(times), base, last), body

    def _values_alone(self, base_ms: int) -> bytes | None:
        """Return the encoded records if all of them have only values, as most do; otherwise None.

        The bytes around the offset delta depend only on the time and on the size of the value. The
        bytes of each record are taken to begin with the last byte of the record before it, which is
        its header count of 0.
        """
        values, times, place = self.values, self.timestamps, 0
        if self.keys or self.headers or not 0 < len(values) <= _MOST_RECORDS or None in values:
            return None
        if len(set(times)) * _FEWEST > len(times) + _FEWEST:
            return None  # each distinct timestamp costs as much as several records
        # Rounding to a power of two makes cached values likely to be reused.
        offsets = _offsets(1 << (len(values) - 1).bit_length())
        parts: list[bytes] = []
        for time_ms, same in groupby(times):
            end = place + len(list(same))
            while place < end:
                offset_size = len(offsets[place])
                stop = min(end, 1 << (7 * offset_size - 1))  # where an offset takes one more byte
                some = values[place:stop]
                sizes = list(map(len, some))  # type: ignore[arg-type]  # None is excluded above
                heads = _heads(VARINTS[time_ms - base_ms], offset_size)
                pieces: list[bytes] = [b""] * (4 * len(some))
                pieces[::4] = map(heads.__getitem__, sizes)
                pieces[1::4] = offsets[place:stop]
                pieces[2::4] = map(_VALUE_SIZES.__getitem__, sizes)
                pieces[3::4] = some  # type: ignore[assignment]
                parts += pieces
                place = stop
        # Each head begins with the header count of the previous record. The first record has no
        # predecessor, and the count of the last is still missing.
        parts[0] = parts[0][1:]
        parts.append(b"\0")
        return b"".join(parts)

    def _any(self, base_ms: int) -> bytes:
        texts, keys, headers = VARINTS, self.keys, self.headers
        parts: list[bytes] = []
        for place, (value, time_ms) in enumerate(zip(self.values, self.timestamps, strict=True)):
            key, tail = keys.get(place) if keys else None, b"\0"
            if headers and place in headers:
                tail = encoded_headers(headers[place])
            time, offset = texts[time_ms - base_ms], texts[place]
            key_size = texts[-1 if key is None else len(key)]
            value_size = texts[-1 if value is None else len(value)]
            key, value = key or b"", value or b""
            size = 1 + len(time) + len(offset) + len(key_size) + len(key) + len(value_size)
            size += len(value) + len(tail)
            parts += (texts[size], b"\0", time, offset, key_size, key, value_size, value, tail)
        return b"".join(parts)


class SealedRecords:
    """Encoded records, with the header of a batch that has no identity."""

    __slots__ = ("body", "header")

    def __init__(self, header: BatchHeader, body: Buffer) -> None:
        self.header = header
        self.body = body

    @property
    def count(self) -> int:
        return self.header.record_count

    def build(self) -> tuple[BatchHeader, Buffer]:
        return self.header, self.body


class _ValueSizes(dict[int, bytes]):
    """Maps the size of a value to the bytes between the offset delta and the value: the code for a
    missing key, and the size.
    """

    def __missing__(self, size_bytes: int) -> bytes:
        if len(self) >= _MOST_SIZES:
            self.clear()
        made = self[size_bytes] = b"\1" + VARINTS[size_bytes]
        return made


class _Heads(dict[int, bytes]):
    """Maps the size of a value to the bytes between the previous record and the offset delta."""

    def __init__(self, time: bytes, offset_size: int) -> None:
        self._time = time
        self._fixed_bytes = 1 + len(time) + offset_size

    def __missing__(self, size_bytes: int) -> bytes:
        if len(self) >= _MOST_SIZES:
            self.clear()
        record_bytes = self._fixed_bytes + len(_VALUE_SIZES[size_bytes]) + size_bytes + 1
        made = self[size_bytes] = b"\0" + VARINTS[record_bytes] + b"\0" + self._time
        return made


_VALUE_SIZES: Final = _ValueSizes()


@lru_cache(maxsize=32)
def _heads(time: bytes, offset_size: int) -> _Heads:
    return _Heads(time, offset_size)


@lru_cache(maxsize=32)
def _offsets(count: int) -> list[bytes]:
    return [VARINTS[place] for place in range(count)]
