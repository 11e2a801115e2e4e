"""Splits a stream of bytes, in pieces of any size, into lines with their positions.

A position counts the bytes before the line. Memory is bounded: of a line longer than the limit only
the beginning is kept. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

MAX_LINE_BYTES = 262_144  # far above any request that a web server accepts


class Line(NamedTuple):
    """One line, without its line feed."""

    position: int
    number: int  # from 1
    text: bytes
    size_bytes: int  # of the whole line, without the line feed; more than `text` has if that is cut

    @property
    def is_cut(self) -> bool:
        return self.size_bytes > len(self.text)


class LineCutter:
    """Splits bytes into lines; `position` and `number` are those of the next line returned."""

    __slots__ = ("_passed_bytes", "_rest", "number", "position")

    def __init__(self, position: int = 0, number: int = 1) -> None:
        self._rest = b""  # the beginning of an unfinished line
        self._passed_bytes = 0  # of that line, received and not kept
        self.position = position
        self.number = number

    def cut(self, more: bytes) -> list[Line]:
        """The lines that end in the next bytes."""
        first, *others = more.split(b"\n")
        self._keep(first)
        if not others:
            return []
        lines = [self._line(self._rest, self._passed_bytes)]
        self._rest, self._passed_bytes = b"", 0
        rest = others.pop()
        lines.extend(self._line(text, 0) for text in others)
        self._keep(rest)
        return lines

    def last(self) -> list[Line]:
        """The bytes after the last line feed, as a line of its own."""
        if not self._rest:
            return []
        line = self._line(self._rest, self._passed_bytes)
        self.position -= 1  # there was no line feed
        self._rest, self._passed_bytes = b"", 0
        return [line]

    @property
    def unfinished_bytes(self) -> int:
        """The number of bytes after the last line feed."""
        return len(self._rest) + self._passed_bytes

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
