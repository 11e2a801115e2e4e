"""Encodes lines as whole record batches. A producer encodes record by record, which costs twice as
much; a collector's records differ only in their lines and positions.

Format: docs of Apache Kafka, "Record Batch" and "Record"; headers by `headers.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from barnabas.records.batch import new_header, seal
from barnabas.records.compression import NONE, compress
from barnabas.records.record import Headers, nullable
from barnabas.records.varint import VARINTS
from barnabas_collector.file_progress import FileProgress
from barnabas_collector.headers import CUT, FILE, FILE_ID, LINE, POSITION
from barnabas_collector.line_cutter import Line

MAX_BATCH_BYTES: Final = 900_000
"""Bytes of records before compression: by default a broker accepts 1,048,588 bytes per batch."""


class LineEncoder:
    """Encodes the lines of one file. `more`: headers that all its records have."""

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
        self._fixed = fixed + _header_name(POSITION)
        self._headers = VARINTS[self._count] + self._fixed
        self._line = _header_name(LINE)

    def batches(self, lines: Iterable[Line], now_ms: int) -> Iterator[bytes]:
        """Yield whole batches, without offsets, producer or sequence numbers."""
        varints, key, headers, line_name = VARINTS, self._key, self._headers, self._line
        parts: list[bytes] = []
        count = size_bytes = 0
        for line in lines:
            text = line.text
            place, number = b"%d" % line.position, b"%d" % line.number
            length = len(text)
            if line.more or line.is_cut:
                shown, rest = self._with_more(line)
            else:
                shown, rest = headers, b""
            record = b"".join(
                (
                    b"\0\0",  # attributes, and the timestamp's difference from the first record's
                    varints[count],
                    key,
                    varints[length],
                    text,
                    shown,
                    varints[len(place)],
                    place,
                    line_name,
                    varints[len(number)],
                    number,
                    rest,
                )
            )
            length = len(record)
            parts.append(varints[length])
            parts.append(record)
            count += 1
            size_bytes += length + 5
            if size_bytes >= MAX_BATCH_BYTES:
                yield encoded_batch(parts, count, self._codec, now_ms)
                parts, count, size_bytes = [], 0, 0
        if count:
            yield encoded_batch(parts, count, self._codec, now_ms)

    def _with_more(self, line: Line) -> tuple[bytes, bytes]:
        """Return what comes before the position and after the line number, for a line that was
        cut or has headers of its own."""
        more = line.more
        if line.is_cut:
            more = (*more, (CUT, b"%d" % line.size_bytes))
        after = b"".join(_header_name(name) + nullable(value) for name, value in more)
        return VARINTS[self._count + len(more)] + self._fixed, after


def encoded_batch(parts: Iterable[bytes], count: int, codec: int, now_ms: int) -> bytes:
    """Return a whole batch of `count` encoded records, all with this timestamp."""
    body: bytes | bytearray = b"".join(parts)
    header = new_header(codec, count, now_ms, now_ms)
    return seal(header, body if codec == NONE else compress(codec, body))


def _header_name(name: str) -> bytes:
    return nullable(name.encode())
