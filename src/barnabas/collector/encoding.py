"""Lines as record batches, encoded in one go: a producer's way, record by record, costs twice as
much, and a collector's records differ only in their lines and positions.

Format: docs of Apache Kafka, "Record Batch" and "Record"; headers by `headers.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from barnabas.collector.file_progress import FileProgress
from barnabas.collector.headers import CUT, FILE, FILE_ID, LINE, POSITION
from barnabas.collector.line_cutter import Line
from barnabas.records.batch import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    seal,
)
from barnabas.records.compression import NONE, compress
from barnabas.records.record import Headers
from barnabas.records.varint import append_varint

MAX_BATCH_BYTES: Final = 900_000
"""Bytes of records, before compression: a broker accepts 1,048,588 a batch by default."""

VARINTS: Final = 16_384


def varint(number: int) -> bytes:
    encoded = bytearray()
    append_varint(encoded, number)
    return bytes(encoded)


SMALL: Final = tuple(varint(number) for number in range(VARINTS))
"""The varints below `VARINTS`."""


class LineEncoder:
    """Encodes the lines of one file. `more`: headers of all its records."""

    def __init__(
        self, progress: FileProgress, key: bytes | None, more: Headers = (), codec: int = NONE
    ) -> None:
        of_file = (
            (FILE, progress.path.encode("utf-8", "replace")),
            (FILE_ID, progress.file_id.encode()),
            *more,
        )
        self._codec = codec
        self._key = nullable(key)
        self._count = 2 + len(of_file)
        fixed = b"".join(_header_name(name) + nullable(value) for name, value in of_file)
        self._headers = varint(self._count) + fixed + _header_name(POSITION)
        self._headers_of_cut = varint(self._count + 1) + fixed + _header_name(POSITION)
        self._line = _header_name(LINE)

    def batches(self, lines: Iterable[Line], now_ms: int) -> Iterator[bytes]:
        """Whole batches, without offsets, a producer or sequences."""
        small, key, headers, line_name = SMALL, self._key, self._headers, self._line
        parts: list[bytes] = []
        count = size_bytes = 0
        for line in lines:
            text = line.text
            place, number = b"%d" % line.position, b"%d" % line.number
            length = len(text)
            record = b"".join(
                (
                    b"\0\0",  # attributes, and the timestamp's difference from the first one's
                    small[count] if count < VARINTS else varint(count),
                    key,
                    small[length] if length < VARINTS else varint(length),
                    text,
                    self._headers_of_cut if line.is_cut else headers,
                    small[len(place)],
                    place,
                    line_name,
                    small[len(number)],
                    number,
                    _cut_header(line) if line.is_cut else b"",
                )
            )
            length = len(record)
            parts.append(small[length] if length < VARINTS else varint(length))
            parts.append(record)
            count += 1
            size_bytes += length + 5
            if size_bytes >= MAX_BATCH_BYTES:
                yield encoded_batch(parts, count, self._codec, now_ms)
                parts, count, size_bytes = [], 0, 0
        if count:
            yield encoded_batch(parts, count, self._codec, now_ms)


def encoded_batch(parts: Iterable[bytes], count: int, codec: int, now_ms: int) -> bytes:
    """A whole batch of `count` encoded records, all with this timestamp."""
    body: bytes | bytearray = b"".join(parts)
    header = BatchHeader(
        base_offset=0,
        batch_length=0,
        partition_leader_epoch=NO_LEADER_EPOCH,
        magic=2,
        crc=0,
        attributes=codec,
        last_offset_delta=count - 1,
        base_timestamp=now_ms,
        max_timestamp=now_ms,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=count,
    )
    return seal(header, body if codec == NONE else compress(codec, body))


def encoded_headers(headers: Headers) -> bytes:
    """The headers as the end of a record."""
    return varint(len(headers)) + b"".join(
        _header_name(name) + nullable(value) for name, value in headers
    )


def nullable(data: bytes | None) -> bytes:
    """Bytes preceded by their length."""
    return varint(-1) if data is None else varint(len(data)) + data


def _header_name(name: str) -> bytes:
    return nullable(name.encode())


def _cut_header(line: Line) -> bytes:
    return _header_name(CUT) + nullable(b"%d" % line.size_bytes)
