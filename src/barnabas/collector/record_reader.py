"""Records of several lines: a stack trace belongs to the line before it.

A rule says with which lines records begin. The last record of a file waits, since more of its
lines may come, until another one begins or nothing was written for a while. What waits is not kept
in memory from one look to the next: it is read again from where it begins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol

from barnabas.collector.line_reader import MAX_LINE_BYTES, Line, LineReader
from barnabas.errors import ConfigError

IsStart = Callable[[bytes], object]
"""Whether a record begins with this line."""

INDENTED = (
    rb"(?!\s|at |Caused by:|\.\.\. |Traceback |[})\]]|$"
    rb"|(?:[a-z_]\w*\.)*[A-Z]\w*(?:Exception|Error|Throwable)(?:$|:|\s))"
)
"""All lines begin one but those that are indented, blank or written by a stack trace, which also
writes the name of the exception."""


class Reader(Protocol):
    """What `RotatedLog` reads a file by. `position`, `number`: what a next reader begins with."""

    @property
    def position(self) -> int: ...

    @property
    def number(self) -> int: ...

    def portions(self) -> Iterator[list[Line]]: ...

    def settled(self) -> list[Line]:
        """Whole lines that waited for more, which will not come."""
        ...

    def last(self) -> list[Line]:
        """All that is left, the file being complete."""
        ...

    @property
    def unfinished_bytes(self) -> int: ...


class RecordReader:
    """Lines of a file joined to records; each has the place of its first line."""

    def __init__(self, file: BinaryIO, position: int, number: int, is_start: IsStart) -> None:
        self._reader = LineReader(file, position, number)
        self._is_start = is_start
        self._waiting: list[Line] = []
        self._waiting_bytes = 0

    @property
    def position(self) -> int:
        return self._waiting[0].position if self._waiting else self._reader.position

    @property
    def number(self) -> int:
        return self._waiting[0].number if self._waiting else self._reader.number

    def portions(self) -> Iterator[list[Line]]:
        for lines in self._reader.portions():
            if records := self._joined(lines):
                yield records

    def settled(self) -> list[Line]:
        """The record that waits; an unfinished line goes on to wait."""
        return self._taken()

    def last(self) -> list[Line]:
        records = self._joined(self._reader.last())
        return records + self._taken()

    @property
    def unfinished_bytes(self) -> int:
        return self._reader.unfinished_bytes + self._waiting_bytes

    def _joined(self, lines: list[Line]) -> list[Line]:
        records: list[Line] = []
        for line in lines:
            size_bytes = line.size_bytes + 1
            is_too_long = self._waiting_bytes + size_bytes > MAX_LINE_BYTES
            if self._waiting and (is_too_long or self._is_start(line.text)):
                records += self._taken()
            self._waiting.append(line)
            self._waiting_bytes += size_bytes
        return records

    def _taken(self) -> list[Line]:
        lines, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if len(lines) < 2:
            return lines
        first, last = lines[0], lines[-1]
        text = b"\n".join(line.text for line in lines)
        size_bytes = last.position + last.size_bytes - first.position
        return [Line(first.position, first.number, text, size_bytes)]


def record_start(pattern: str | bytes) -> IsStart:
    """The rule of a regular expression that fits the beginnings of first lines. Raises
    `ConfigError`."""
    try:
        return re.compile(pattern.encode() if isinstance(pattern, str) else pattern).match
    except re.error as error:
        raise ConfigError(f"{pattern!r} is no regular expression: {error}") from None
