"""Encodes lines as whole record batches. A producer encodes record by record, which costs twice as
much; this is faster because a collector's records differ only in their lines and positions.

Format: docs of Apache Kafka, "Record Batch" and "Record"; headers by `headers.py`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import Final

from barnabas.records.batch import new_header, seal
from barnabas.records.compression import NONE, compress
from barnabas.records.record import Headers, nullable
from barnabas.records.varint import VARINTS
from barnabas_collector.file_progress import FileProgress
from barnabas_collector.headers import CUT, FILE, FILE_ID, LINE, POSITION
from barnabas_collector.line_cutter import Line, LineBlock

MAX_BATCH_BYTES: Final = 900_000
"""Bytes of records before compression: by default a broker accepts 1,048,588 bytes per batch."""


_MOST_NUMBERS_BYTES: Final = 60
"""The maximum size of a record's lengths, place and number."""


class LineEncoder:
    """Encodes the lines of one file. `more`: headers shared by all its records."""

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
        if isinstance(lines, LineBlock):
            yield from self._batches_of_block(lines, now_ms)
            return
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

    def _batches_of_block(self, block: LineBlock, now_ms: int) -> Iterator[bytes]:
        fixed_bytes = len(self._key) + len(self._headers) + len(self._line) + _MOST_NUMBERS_BYTES
        positions, start = block.positions, 0
        while start < len(block):
            # The records before a line, if `start` is the first of them.
            full_at = bisect_left(
                range(start + 1, len(block)),
                MAX_BATCH_BYTES,
                key=lambda at: positions[at] - positions[start] + (at - start) * fixed_bytes,
            )
            stop = start + 1 + full_at
            parts = self._block_parts(block, start, stop)
            yield encoded_batch(parts, stop - start, self._codec, now_ms)
            start = stop

    def _block_parts(self, block: LineBlock, start: int, stop: int) -> list[bytes]:
        """Return the encoded records of some lines, in pieces.

        Runs of records that differ only in their numbers, texts and text lengths are assembled
        without a Python call for each record.
        """
        positions, sizes = block.positions[start:stop], block.sizes[start:stop]
        texts = block.texts[start:stop]
        # Formatting a whole list is ten times faster than formatting each number.
        places = str(positions)[1:-1].encode().split(b", ")
        numbers = range(block.number + start, block.number + stop)
        shown = str([*numbers])[1:-1].encode().split(b", ")
        parts: list[bytes] = []
        at = 0
        while at < len(texts):
            place, number, offset = len(places[at]), len(shown[at]), len(VARINTS[at])
            end = min(
                bisect_left(positions, 10**place, at),
                bisect_left(numbers, 10**number, at),
                1 << (7 * offset - 1),  # a varint's numbers may be negative
                len(texts),
            )
            before = self._headers + VARINTS[place]
            between = self._line + VARINTS[number]
            fixed_bytes = 2 + offset + len(before) + place + len(between) + number
            heads = _Heads(self._key, fixed_bytes)
            columns = zip(
                map(heads.__getitem__, sizes[at:end]),
                map(VARINTS.__getitem__, range(at, end)),
                map(heads.keys_and_lengths.__getitem__, sizes[at:end]),
                texts[at:end],
                repeat(before),
                places[at:end],
                repeat(between),
                shown[at:end],
            )
            parts += chain.from_iterable(columns)
            at = end
        return parts

    def _with_more(self, line: Line) -> tuple[bytes, bytes]:
        """Return the parts before the position and after the line number, for a line that was cut
        or has its own headers."""
        more = line.more
        if line.is_cut:
            more = (*more, (CUT, b"%d" % line.size_bytes))
        after = b"".join(_header_name(name) + nullable(value) for name, value in more)
        return VARINTS[self._count + len(more)] + self._fixed, after


class _KeysAndLengths(dict[int, bytes]):
    """Maps the length of a text to the encoded key and length."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __missing__(self, size_bytes: int) -> bytes:
        found = self[size_bytes] = self._key + VARINTS[size_bytes]
        return found


class _Heads(dict[int, bytes]):
    """Maps the length of a text to the beginning of a record whose other parts have
    `fixed_bytes`."""

    def __init__(self, key: bytes, fixed_bytes: int) -> None:
        self.keys_and_lengths = _KeysAndLengths(key)
        self._fixed_bytes = fixed_bytes

    def __missing__(self, size_bytes: int) -> bytes:
        rest_bytes = len(self.keys_and_lengths[size_bytes]) + size_bytes
        # Attributes, and the timestamp's difference from the first record's.
        found = self[size_bytes] = VARINTS[self._fixed_bytes + rest_bytes] + b"\0\0"
        return found


def encoded_batch(parts: Iterable[bytes], count: int, codec: int, now_ms: int) -> bytes:
    """Return a whole batch of `count` encoded records, all with this timestamp."""
    body: bytes | bytearray = b"".join(parts)
    header = new_header(codec, count, now_ms, now_ms)
    return seal(header, body if codec == NONE else compress(codec, body))


def _header_name(name: str) -> bytes:
    return nullable(name.encode())
