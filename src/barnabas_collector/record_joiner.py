"""Joins lines into records. The last record is held back, because more lines may belong to it.
Pure."""

from __future__ import annotations

from collections.abc import Callable

from barnabas_collector.line_cutter import MAX_LINE_BYTES, Line

IsStart = Callable[[bytes, bytes], object]
"""Decides whether a line begins a record, given the first line of the previous record."""


class RecordJoiner:
    """Joins lines into records. Each record takes the position of its first line."""

    def __init__(self, is_start: IsStart) -> None:
        self._is_start = is_start
        self._waiting: list[Line] = []
        self.waiting_bytes = 0

    @property
    def first(self) -> Line | None:
        """The first line of the record that is waiting for more lines."""
        return self._waiting[0] if self._waiting else None

    def join(self, lines: list[Line]) -> list[Line]:
        """Add lines, and return the complete records. A record is complete when the next one begins
        or when it is too long.
        """
        records: list[Line] = []
        for line in lines:
            size_bytes = line.size_bytes + 1
            is_too_long = self.waiting_bytes + size_bytes > MAX_LINE_BYTES
            if self._waiting and (is_too_long or self._is_start(line.text, self._waiting[0].text)):
                records += self.take()
            self._waiting.append(line)
            self.waiting_bytes += size_bytes
        return records

    def take(self) -> list[Line]:
        """Remove and return the waiting record, even if more lines may belong to it."""
        lines, size_bytes = self._waiting, self.waiting_bytes - 1
        self._waiting, self.waiting_bytes = [], 0
        if len(lines) < 2:
            return lines
        first = lines[0]
        text = b"\n".join(line.text for line in lines)
        return [Line(first.position, first.number, text, size_bytes)]
