"""Follows the `#Fields:` directives of a file in W3C's extended format (IIS, CloudFront).

A directive names the columns of the lines after it, until the next directive. Only files that begin
with one of W3C's directives contain any, so no other file is searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, repeat
from operator import itemgetter
from typing import BinaryIO, Final

from barnabas.records.record import Headers
from barnabas_collector.headers import FIELDS
from barnabas_collector.line_cutter import Line, LineBlock
from barnabas_collector.line_reader import LineReader

_BEGIN: Final = b"#Fields:"
_DIRECTIVE: Final = re.compile(
    rb"#(?:Version|Fields|Software|Date|Start-Date|End-Date|Remark|GMT-Offset):"
)
_MOST_BYTES: Final = 8_192
"""The maximum size of a directive, which is included in every record."""


class W3cColumns:
    """Tracks the columns of each line, which are the text of a directive after its name.

    `in_force` contains the columns at the current position, or is None before the first directive.
    """

    __slots__ = ("in_force",)

    def __init__(self, in_force: bytes | None = None) -> None:
        self.in_force = in_force

    def of(self, texts: Sequence[bytes]) -> Sequence[bytes | None]:
        """Return the columns of each of the next lines. A directive is a line itself, and its
        columns are those that it names.
        """
        found: list[bytes | None] = []
        for at, text in enumerate(texts):
            if text.startswith(_BEGIN):
                found += repeat(self.in_force, at - len(found))
                columns = text.removeprefix(_BEGIN).strip()
                # A truncated list would be wrong, whereas an empty list never matches a line.
                self.in_force = columns if len(columns) <= _MOST_BYTES else b""
        found += repeat(self.in_force, len(texts) - len(found))
        return found

    def with_headers(self, lines: Sequence[Line]) -> tuple[Sequence[Line], Headers]:
        """Return the next lines, and the header that they share, if any. If their columns differ,
        each line gets its own header."""
        found = self.of(texts_of(lines))
        kinds = [columns for columns, _ in groupby(found)]
        if len(kinds) > 1:
            return [
                line if columns is None else line._replace(more=(*line.more, (FIELDS, columns)))
                for line, columns in zip(lines, found, strict=True)
            ], ()
        return lines, tuple((FIELDS, columns) for columns in kinds if columns is not None)


def columns_at(text: BinaryIO, position: int, beginning: bytes) -> W3cColumns | None:
    """Return the columns at a position of a file, or None if the file has no directives.

    The file is read up to that position, because a directive may be anywhere. Errors that occur
    during reading are raised.
    """
    if not _DIRECTIVE.match(beginning):
        return None
    columns = W3cColumns()
    if position:
        reader = LineReader(text)
        for lines in reader.portions():
            columns.of([each for each, at in _placed(lines) if at < position])
            if reader.position >= position:
                break
    return columns


def _placed(lines: Sequence[Line]) -> Iterator[tuple[bytes, int]]:
    if isinstance(lines, LineBlock):
        return zip(lines.texts, lines.positions, strict=False)
    return map(itemgetter(2, 0), lines)


def columns_in(
    portions: Iterator[Sequence[Line]],
) -> Iterator[tuple[Sequence[Line], Sequence[bytes | None]]]:
    """Yield the lines of a whole file, and the columns of each line."""
    columns: W3cColumns | None = None
    is_first = True
    for lines in portions:
        texts = texts_of(lines)
        if is_first and texts:
            columns = W3cColumns() if _DIRECTIVE.match(texts[0]) else None
            is_first = False
        yield lines, [None] * len(texts) if columns is None else columns.of(texts)


def texts_of(lines: Sequence[Line]) -> Sequence[bytes]:
    return lines.texts if isinstance(lines, LineBlock) else [line.text for line in lines]
