"""The records of an open batch, kept as they were given and encoded at once when it is sent.

A record costs two appends while the caller waits; its bytes are made on the way out. The bytes are
those of `records.record.BatchBuilder`, which is the oracle in the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from barnabas.records.batch import NO_TIMESTAMP, BatchHeader
from barnabas.records.compression import NONE, compress
from barnabas.records.crc32c import Buffer
from barnabas.records.record import Headers
from barnabas.records.varint import append_varint

_MOST_KEPT: Final = 16_384  # varints; sizes, places and small time differences repeat


class OpenRecords:
    """Timestamps and values of all records; keys and headers only once a record has any."""

    __slots__ = ("codec", "headers", "keys", "timestamps", "values")

    def __init__(self, codec: int) -> None:
        self.codec = codec
        self.timestamps: list[int] = []
        self.values: list[bytes | None] = []
        self.keys: dict[int, bytes] = {}  # by place
        self.headers: dict[int, Headers] = {}

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
        """The header of a batch without an identity, and the records, compressed."""
        times = self.timestamps
        last, base = max(times, default=NO_TIMESTAMP), times[0] if times else NO_TIMESTAMP
        body = self._same_sized(base, last) or self._any_sized(base)
        if self.codec != NONE:
            body = compress(self.codec, body)
        return new_header(self.codec, len(times), base, last), body

    def _same_sized(self, base_ms: int, last_ms: int) -> bytes | None:
        """The records, if they are values of one size and one time, as in a stream of many."""
        values = self.values
        if self.keys or self.headers or last_ms != base_ms or None in values:
            return None
        if not 0 < len(values) <= _MOST_KEPT:
            return None
        sizes = set(map(len, values))  # type: ignore[arg-type]  # None is excluded above
        if len(sizes) > 1 or min(self.timestamps) != base_ms:
            return None
        parts: list[bytes] = [b""] * (2 * len(values))
        # A power of two: there are few of those, so the same ones are found again.
        heads = _heads(sizes.pop(), 1 << (len(values) - 1).bit_length())
        parts[::2] = heads[: len(values)]
        parts[1::2] = values  # type: ignore[assignment]
        parts.append(b"\0")
        return b"".join(parts)

    def _any_sized(self, base_ms: int) -> bytes:
        texts, keys, headers = _VARINTS, self.keys, self.headers
        parts: list[bytes] = []
        for place, (value, time_ms) in enumerate(zip(self.values, self.timestamps, strict=True)):
            key, tail = keys.get(place) if keys else None, b"\0"
            if headers and place in headers:
                tail = _headers(headers[place])
            time, offset = texts[time_ms - base_ms], texts[place]
            key_size = texts[-1 if key is None else len(key)]
            value_size = texts[-1 if value is None else len(value)]
            key, value = key or b"", value or b""
            size = 1 + len(time) + len(offset) + len(key_size) + len(key) + len(value_size)
            size += len(value) + len(tail)
            parts += (texts[size], b"\0", time, offset, key_size, key, value_size, value, tail)
        return b"".join(parts)


class SealedRecords:
    """Records that are encoded already, with a header that has no identity."""

    __slots__ = ("body", "header")

    def __init__(self, header: BatchHeader, body: Buffer) -> None:
        self.header = header
        self.body = body

    @property
    def count(self) -> int:
        return self.header.record_count

    def build(self) -> tuple[BatchHeader, Buffer]:
        return self.header, self.body


class _Varints(dict[int, bytes]):
    """Numbers as varints, the small ones made once."""

    def __missing__(self, number: int) -> bytes:
        made = bytearray()
        append_varint(made, number)
        if -1 <= number < _MOST_KEPT:
            self[number] = bytes(made)
        return bytes(made)


_VARINTS: Final[Mapping[int, bytes]] = _Varints()


@lru_cache(maxsize=32)
def _heads(size: int, count: int) -> list[bytes]:
    """What precedes each of `count` values of this size and no key.

    The end of the record before, its header count of 0, begins each but the first.
    """
    texts, value_size = _VARINTS, _VARINTS[size]
    heads = []
    for place in range(count):
        offset = texts[place]
        length = texts[4 + len(offset) + len(value_size) + size]
        heads.append(b"\0" + length + b"\0\0" + offset + b"\1" + value_size)
    heads[0] = heads[0][1:]
    return heads


def _headers(headers: Headers) -> bytes:
    parts = [_VARINTS[len(headers)]]
    for name, content in headers:
        encoded = name.encode()
        parts += (_VARINTS[len(encoded)], encoded)
        parts += (_VARINTS[-1 if content is None else len(content)], content or b"")
    return b"".join(parts)


def new_header(codec: int, record_count: int, base_ms: int, last_ms: int) -> BatchHeader:
    """The header of a batch that no broker has seen."""
    return BatchHeader(
        base_offset=0,
        batch_length=0,
        partition_leader_epoch=-1,
        magic=2,
        crc=0,
        attributes=codec,
        last_offset_delta=max(0, record_count - 1),
        base_timestamp=base_ms,
        max_timestamp=last_ms,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=record_count,
    )
