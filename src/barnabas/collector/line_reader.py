"""Reads the lines of a file from a position on; the file may grow meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from barnabas.collector.line_cutter import Line, LineCutter

_READ_BYTES = 1_048_576


class LineReader(LineCutter):
    """Reads an open file from a position on."""

    __slots__ = ("_file",)

    def __init__(self, file: BinaryIO, position: int = 0, number: int = 1) -> None:
        super().__init__(position, number)
        self._file = file
        self._go_to(position)

    def portions(self) -> Iterator[list[Line]]:
        """Whole lines up to the present end of the file, about a megabyte at a time."""
        while read := self._file.read(_READ_BYTES):
            if lines := self.cut(read):
                yield lines

    def settled(self) -> list[Line]:
        """Whole records that waited for more lines: none."""
        return []

    def _go_to(self, position: int) -> None:
        """Go there; past the line feed of a last line that was taken before it had one."""
        self._file.seek(max(0, position - 1))
        if position and self._file.read(1) != b"\n" and self._file.read(1) == b"\n":
            self.position += 1
        self._file.seek(self.position)
