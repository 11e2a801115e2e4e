"""Reads the lines of a file from a given position. The file may still be growing."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from barnabas_collector.file_holes import WITHIN_BYTES, next_data
from barnabas_collector.line_cutter import Line, LineCutter

_READ_BYTES = 1_048_576


class LineReader(LineCutter):
    """Reads an open file from a given position."""

    __slots__ = ("_file",)

    def __init__(self, file: BinaryIO, position: int = 0, number: int = 1) -> None:
        super().__init__(position, number)
        self._file = file
        self._go_to(position)

    def portions(self) -> Iterator[Sequence[Line]]:
        """Yield whole lines up to the current end of the file, about a megabyte at a time."""
        while read := self._file.read(_READ_BYTES):
            if lines := self.block(read):
                yield lines
            # The text of a compressed file contains no holes to skip.
            if self._nuls >= WITHIN_BYTES and isinstance(self._file, io.FileIO):
                self._skip_hole(self._file)

    def _skip_hole(self, file: io.FileIO) -> None:
        at = file.tell()
        data_at = next_data(file.fileno(), at)
        # Read the last byte of a hole at the end of the file, in case it has become data.
        beyond = min(data_at, max(at, os.fstat(file.fileno()).st_size - 1))
        self.pass_hole(beyond - at)
        file.seek(beyond)

    def take_waiting(self) -> list[Line]:
        """Return no records, because a whole line never waits for more lines."""
        return []

    def _go_to(self, position: int) -> None:
        """Go to the position. If a line feed was added to the last line after the line was sent,
        skip it.
        """
        self._file.seek(max(0, position - 1))
        # The last line was sent without its line feed, which the writer has since added and which
        # would look like an empty line.
        if position and self._file.read(1) != b"\n" and self._file.read(1) == b"\n":
            self.position += 1
        self._file.seek(self.position)
