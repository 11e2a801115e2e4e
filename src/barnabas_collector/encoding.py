"""Encodes lines as whole record batches. All records of a collector are alike except for their
lines and positions, so this is twice as fast as a producer, which encodes each record separately.

The format is described under "Record Batch" and "Record" in Kafka's documentation. For the headers,
see `headers.py`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final

from barnabas.records.batch import new_header, seal
from barnabas.records.compression import NONE, compress
from barnabas.records.record import Headers, nullable
from barnabas.records.varint import VARINTS
from barnabas_collector.file_progress import FileProgress
from barnabas_collector.headers import CUT, FILE, FILE_ID, LINE, POSITION
from barnabas_collector.line_cutter import Line, LineBlock

MAX_BATCH_BYTES: Final = 900_000
"""The maximum size of a batch's records before compression. By default, a broker accepts batches of
up to 1,048,588 bytes."""


_MOST_NUMBERS_BYTES: Final = 60
"""The maximum total size of the lengths, position and line number in a record."""
_COLUMNS: Final = 8
_UP_TO_THREE_DIGITS: Final = [b"%d" % number for number in range(1_000)]
_THREE_DIGITS: Final = [b"%03d" % number for number in range(1_000)]


class LineEncoder:
    """Encodes the lines of one file. `more` contains headers that all of its records share."""

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
        self._keys_and_lengths = _KeysAndLengths(self._key)
        self._heads = _HeadsBySize(self._keys_and_lengths)

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
                    b"\0\0",  # attributes, and the timestamp relative to the first record's
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
            # The number of records before a line, counted from `start`.
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
        """Return the encoded records of some lines as a list of pieces.

        The pieces are assembled column by column, for runs of records that differ only in text,
        length, position and the last digits of the line number. This avoids calling a Python
        function for each record.
        """
        positions, sizes = block.positions[start:stop], block.sizes[start:stop]
        count = stop - start
        # Formatting a whole list is ten times faster than formatting each number.
        places = str(positions)[1:-1].encode().split(b", ")
        parts = [b""] * (_COLUMNS * count)
        parts[1::_COLUMNS] = map(VARINTS.__getitem__, range(count))
        parts[2::_COLUMNS] = map(self._keys_and_lengths.__getitem__, sizes)
        parts[3::_COLUMNS] = block.texts[start:stop]
        parts[5::_COLUMNS] = places
        at = 0
        while at < count:
            first = block.number + start + at
            prefix, last_digits = _number_parts(first)
            place, offset = len(places[at]), len(VARINTS[at])
            end = min(
                bisect_left(positions, 10**place, at),
                1 << (7 * offset - 1),  # varints are signed
                at + len(last_digits),
                count,
            )
            number = len(prefix) + len(last_digits[0])
            before = self._headers + VARINTS[place]
            between = self._line + VARINTS[number] + prefix
            heads = self._heads[
                2 + offset + len(before) + place + len(between) + len(last_digits[0])
            ]
            from_, to = _COLUMNS * at, _COLUMNS * end
            parts[from_:to:_COLUMNS] = map(heads.__getitem__, sizes[at:end])
            parts[from_ + 4 : to : _COLUMNS] = [before] * (end - at)
            parts[from_ + 6 : to : _COLUMNS] = [between] * (end - at)
            parts[from_ + 7 : to : _COLUMNS] = last_digits[: end - at]
            at = end
        return parts

    def _with_more(self, line: Line) -> tuple[bytes, bytes]:
        """Return the encoded bytes before the position and after the line number, for a line that
        was truncated or has headers of its own."""
        more = line.more
        if line.is_cut:
            more = (*more, (CUT, b"%d" % line.size_bytes))
        after = b"".join(_header_name(name) + nullable(value) for name, value in more)
        return VARINTS[self._count + len(more)] + self._fixed, after


class _KeysAndLengths(dict[int, bytes]):
    """Maps the length of a text to the encoded key followed by the encoded length."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __missing__(self, size_bytes: int) -> bytes:
        found = self[size_bytes] = self._key + VARINTS[size_bytes]
        return found


class _Heads(dict[int, bytes]):
    """Maps the length of a text to the start of a record in which everything else takes
    `fixed_bytes`.
    """

    def __init__(self, keys_and_lengths: _KeysAndLengths, fixed_bytes: int) -> None:
        self._keys_and_lengths = keys_and_lengths
        self._fixed_bytes = fixed_bytes

    def __missing__(self, size_bytes: int) -> bytes:
        rest_bytes = len(self._keys_and_lengths[size_bytes]) + size_bytes
        # Attributes, and the timestamp relative to the first record's.
        found = self[size_bytes] = VARINTS[self._fixed_bytes + rest_bytes] + b"\0\0"
        return found


class _HeadsBySize(dict[int, _Heads]):
    """Maps the size of everything else in a record to the record starts for this size."""

    def __init__(self, keys_and_lengths: _KeysAndLengths) -> None:
        self._keys_and_lengths = keys_and_lengths

    def __missing__(self, fixed_bytes: int) -> _Heads:
        found = self[fixed_bytes] = _Heads(self._keys_and_lengths, fixed_bytes)
        return found


def _number_parts(first: int) -> tuple[bytes, list[bytes]]:
    """Return the leading digits that consecutive line numbers share, and the last digits of each
    number. The run ends where the leading digits change."""
    if first >= len(_THREE_DIGITS):
        thousands, rest = divmod(first, len(_THREE_DIGITS))
        return b"%d" % thousands, _THREE_DIGITS[rest:]
    return b"", _UP_TO_THREE_DIGITS[first : 10 ** len(_UP_TO_THREE_DIGITS[first])]


def encoded_batch(parts: Iterable[bytes], count: int, codec: int, now_ms: int) -> bytes:
    """Return a whole batch of `count` encoded records that all have this timestamp."""
    body: bytes | bytearray = b"".join(parts)
    header = new_header(codec, count, now_ms, now_ms)
    return seal(header, body if codec == NONE else compress(codec, body))


def _header_name(name: str) -> bytes:
    return nullable(name.encode())
