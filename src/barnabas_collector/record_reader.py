"""Reads records of one or more lines, such as a message with its stack trace.

A rule recognises the first lines of records. The last record of a file waits for more lines until
another record begins or nothing has been written for a while. Between looks, the last record is not
kept in memory, but read again from its start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Protocol

from barnabas.errors import ConfigError
from barnabas_collector.line_cutter import Line
from barnabas_collector.line_reader import LineReader
from barnabas_collector.record_joiner import IsStart, RecordJoiner

INDENTED = (
    rb"(?!\s|at |Caused by:|\.\.\. |Traceback |[})\]]|$"
    rb"|(?:[a-z_]\w*\.)*[A-Z]\w*(?:Exception|Error|Throwable)(?:$|:|\s))"
)
"""A line begins a record unless it is indented, blank or part of a stack trace, such as the line
with the exception's name."""


class Reader(Protocol):
    """Reads a file for `RotatedLog`. The next reader starts at `position` and `number`."""

    @property
    def position(self) -> int: ...

    @property
    def number(self) -> int: ...

    def portions(self) -> Iterator[Sequence[Line]]: ...

    def take_waiting(self) -> list[Line]:
        """Remove and return the whole records that are waiting for more lines, because no more
        lines will arrive.
        """
        ...

    def last(self) -> list[Line]:
        """Return the rest of a file that is complete."""
        ...

    @property
    def unfinished_bytes(self) -> int: ...

    @property
    def ends_in_hole(self) -> bool:
        """Return whether the file ends in a hole, which may still be filled."""
        ...


class RecordReader:
    """Reads the lines of a file and joins them into records with the position of their first
    line."""

    def __init__(self, file: BinaryIO, position: int, number: int, is_start: IsStart) -> None:
        self._reader = LineReader(file, position, number)
        self._joiner = RecordJoiner(is_start)

    @property
    def position(self) -> int:
        return (self._joiner.first or self._reader).position

    @property
    def number(self) -> int:
        return (self._joiner.first or self._reader).number

    def portions(self) -> Iterator[list[Line]]:
        for lines in self._reader.portions():
            if records := self._joiner.join(list(lines)):
                yield records

    def take_waiting(self) -> list[Line]:
        """Remove and return the waiting record. An unfinished line is kept."""
        return self._joiner.take()

    def last(self) -> list[Line]:
        return self._joiner.join(self._reader.last()) + self._joiner.take()

    @property
    def unfinished_bytes(self) -> int:
        return self._reader.unfinished_bytes + self._joiner.waiting_bytes

    @property
    def ends_in_hole(self) -> bool:
        return self._reader.ends_in_hole


def record_start(pattern: str | bytes) -> IsStart:
    """Return the rule for a regular expression that matches the start of first lines.

    Raises `ConfigError`.
    """
    try:
        rule = re.compile(pattern.encode() if isinstance(pattern, str) else pattern)
    except re.error as error:
        raise ConfigError(f"{pattern!r} is not a regular expression: {error}") from None
    return lambda line, first: rule.match(line)
