"""Cuts a file into lines: bytes as they are, each with its place.

A position counts the bytes before the line, from the beginning of the file. Memory is bounded
whatever the file holds: of a line longer than `MAX_LINE_BYTES` only the beginning is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

MAX_LINE_BYTES = 262_144  # far above any request that a web server accepts
_READ_BYTES = 1_048_576


class Line(NamedTuple):
    """One line, without its line feed."""

    position: int
    number: int  # from 1
    text: bytes
    size_bytes: int  # in the file, without the line feed; more than `text` has if that is cut

    @property
    def is_cut(self) -> bool:
        return self.size_bytes > len(self.text)


class LineReader:
    """Reads on from a place in an open file; more may be appended to the file meanwhile.

    `position` and `number` are the place of the next line to be returned.
    """

    __slots__ = ("_file", "_passed_bytes", "_rest", "number", "position")

    def __init__(self, file: BinaryIO, position: int = 0, number: int = 1) -> None:
        self._file = file
        self._rest = b""  # the beginning of a line whose end is not read yet
        self._passed_bytes = 0  # of that line, what was read and not kept
        self.position = position
        self.number = number
        self._go_to(position)

    def portions(self) -> Iterator[list[Line]]:
        """Whole lines up to the end of the file as it is now, about a megabyte at a time."""
        while read := self._file.read(_READ_BYTES):
            if lines := self._cut(read):
                yield lines

    def settled(self) -> list[Line]:
        """Whole lines that waited for more: none."""
        return []

    def last(self) -> list[Line]:
        """What stands after the last line feed, taken for a line of its own."""
        if not self._rest:
            return []
        line = self._line(self._rest, self._passed_bytes)
        self.position -= 1  # there was no line feed
        self._rest, self._passed_bytes = b"", 0
        return [line]

    @property
    def unfinished_bytes(self) -> int:
        """What stands after the last line feed that was read."""
        return len(self._rest) + self._passed_bytes

    def _go_to(self, position: int) -> None:
        """Behind the line feed of a last line that was taken before it had one."""
        self._file.seek(max(0, position - 1))
        if position and self._file.read(1) != b"\n" and self._file.read(1) == b"\n":
            self.position += 1
        self._file.seek(self.position)

    def _cut(self, read: bytes) -> list[Line]:
        first, *others = read.split(b"\n")
        if not others:
            self._keep(first)
            return []
        self._keep(first)
        lines = [self._line(self._rest, self._passed_bytes)]
        self._rest, self._passed_bytes = b"", 0
        rest = others.pop()
        lines.extend(self._line(text, 0) for text in others)
        self._keep(rest)
        return lines

    def _keep(self, more: bytes) -> None:
        room = MAX_LINE_BYTES - len(self._rest)
        self._rest += more[:room]
        self._passed_bytes += max(0, len(more) - room)

    def _line(self, text: bytes, passed_bytes: int) -> Line:
        size_bytes = len(text) + passed_bytes
        line = Line(self.position, self.number, text[:MAX_LINE_BYTES], size_bytes)
        self.position += size_bytes + 1
        self.number += 1
        return line
