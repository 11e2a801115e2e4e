"""Splits a stream of bytes, in pieces of any size, into lines with their positions.

A line's position is the number of bytes before it. Memory is bounded because lines longer than the
limit are truncated. Holes in the file, which are runs of NULs (`file_holes.py`), are not part of
any line: a hole before a line is skipped, and a hole within a line ends the line. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, count, repeat
from operator import add
from typing import Final, NamedTuple, overload

from barnabas.records.record import Headers
from barnabas_collector.file_holes import AT_START_BYTES, START, WITHIN_BYTES

MAX_LINE_BYTES = 262_144  # far longer than any request that a web server accepts
# Finds runs quickly. `_may_be_hole` decides which of them count.
_NULS: Final = re.compile(rb"\0+")
_AT_START: Final = b"\n" + START
_WITHIN: Final = b"\0" * WITHIN_BYTES


class Line(NamedTuple):
    """Represents one line, without its line feed."""

    position: int
    number: int  # starting at 1
    text: bytes
    size_bytes: int  # of the whole line without its line feed; larger if `text` was cut
    more: Headers = ()  # headers of this line only

    @property
    def is_cut(self) -> bool:
        return self.size_bytes > len(self.text)

    def with_text(self, text: bytes) -> Line:
        """Return the line with a different text, which is truncated if it is too long."""
        lost_bytes = self.size_bytes - len(self.text)
        return self._replace(text=text[:MAX_LINE_BYTES], size_bytes=len(text) + lost_bytes)


class LineBlock(Sequence[Line]):
    """Holds consecutive whole lines as columns. A `Line` is created only on demand, because
    creating one for each line would double the cost of collecting it.
    """

    __slots__ = ("number", "positions", "sizes", "texts")

    def __init__(self, position: int, number: int, texts: list[bytes], sizes: list[int]) -> None:
        self.number = number  # the first line's number
        self.texts = texts
        self.sizes = sizes
        # The position of each line, and the position after the last line.
        self.positions = list(accumulate(map(add, sizes, repeat(1)), initial=position))

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[Line]:
        return map(Line, self.positions, count(self.number), self.texts, self.sizes)

    @overload
    def __getitem__(self, at: int) -> Line: ...

    @overload
    def __getitem__(self, at: slice) -> list[Line]: ...

    def __getitem__(self, at: int | slice) -> Line | list[Line]:
        return list(self)[at]


def size_and_cuts(lines: Sequence[Line]) -> tuple[int, int]:
    """Return the total size of the lines, and the number of truncated lines."""
    if isinstance(lines, LineBlock):
        return sum(lines.sizes), 0
    return sum(line.size_bytes for line in lines), sum(line.is_cut for line in lines)


class LineCutter:
    """Splits bytes into lines. `position` and `number` refer to the next line to be returned."""

    __slots__ = ("_nuls", "_passed_bytes", "_rest", "number", "position")

    def __init__(self, position: int = 0, number: int = 1) -> None:
        self._rest = b""  # the beginning of the unfinished line
        self._passed_bytes = 0  # the bytes of that line that were received but not kept
        self._nuls = 0  # NULs at the end of the received bytes, which may be a hole
        self.position = position
        self.number = number

    def cut(self, more: bytes) -> list[Line]:
        """Return the lines whose ends are in the next bytes."""
        if self._nuls or _may_have_hole(more):
            return self._cut_with_nuls(more)
        return self._cut_text(more)

    def block(self, more: bytes) -> Sequence[Line]:
        """Return the lines whose ends are in the next bytes, as `cut` does, but as a block if
        possible.
        """
        if self._passed_bytes or self._nuls or _may_have_hole(more):
            return self.cut(more)
        texts = more.split(b"\n")
        rest = texts.pop()
        if not texts:
            self._keep(rest)
            return ()
        texts[0] = self._rest + texts[0]
        sizes = list(map(len, texts))
        if max(sizes) > MAX_LINE_BYTES:
            return self.cut(more)
        block = LineBlock(self.position, self.number, texts, sizes)
        self.position = block.positions[-1]
        self.number += len(texts)
        self._rest = b""
        self._keep(rest)
        return block

    def _cut_text(self, more: bytes) -> list[Line]:
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

    def _cut_with_nuls(self, more: bytes) -> list[Line]:
        lines: list[Line] = []
        at = 0
        for nuls in _NULS.finditer(more):
            if not _may_be_hole(nuls, len(more)):
                continue
            if nuls.start() > at:
                lines += self._after_nuls()
                lines += self._cut_text(more[at : nuls.start()])
            self._nuls += nuls.end() - nuls.start()
            at = nuls.end()
        if at < len(more):
            lines += self._after_nuls()
            lines += self._cut_text(more[at:])
        return lines

    def pass_hole(self, size_bytes: int) -> None:
        """Count NULs that were skipped without being read."""
        self._nuls += size_bytes

    def _after_nuls(self) -> list[Line]:
        """Return the line that ends before the NULs if they form a hole. Otherwise, add the NULs to
        the line."""
        nuls, self._nuls = self._nuls, 0
        is_start = not self._rest and not self._passed_bytes
        if nuls < (AT_START_BYTES if is_start else WITHIN_BYTES):
            self._keep(b"\0" * nuls)
            return []
        lines = [] if is_start else self._last_line()
        self.position += nuls
        return lines

    def last(self) -> list[Line]:
        """Return the bytes after the last line feed as a line."""
        lines = self._after_nuls()
        return lines + self._last_line() if self._rest else lines

    def _last_line(self) -> list[Line]:
        line = self._line(self._rest, self._passed_bytes)
        self.position -= 1  # the line has no line feed
        self._rest, self._passed_bytes = b"", 0
        return [line]

    @property
    def unfinished_bytes(self) -> int:
        """The number of bytes after the last line feed."""
        return len(self._rest) + self._passed_bytes + self._nuls

    @property
    def ends_in_hole(self) -> bool:
        """Return whether the bytes received so far end in a hole, which may still be filled."""
        return self._nuls >= AT_START_BYTES

    def _keep(self, more: bytes) -> None:
        # The rest of an overlong line is counted but not kept.
        room = MAX_LINE_BYTES - len(self._rest)
        self._rest += more[:room]
        self._passed_bytes += max(0, len(more) - room)

    def _line(self, text: bytes, passed_bytes: int) -> Line:
        size_bytes = len(text) + passed_bytes
        line = Line(self.position, self.number, text[:MAX_LINE_BYTES], size_bytes)
        self.position += size_bytes + 1
        self.number += 1
        return line


def _may_have_hole(more: bytes) -> bool:
    """Return whether a piece may contain a hole or a part of a hole.

    The NULs of a damaged or binary line are not a hole, so a piece with such a line is processed as
    fast as text.
    """
    # A search for a single byte is fastest, and almost no piece needs another test.
    if b"\0" not in more or (START not in more and not more.endswith(b"\0")):
        return False
    return more[:1] == b"\0" or more[-1:] == b"\0" or _AT_START in more or _WITHIN in more


def _may_be_hole(nuls: re.Match[bytes], size_bytes: int) -> bool:
    """Return whether a run of NULs in a piece of this size may be a hole.

    A run at an edge of the piece may continue in the next piece. A run within the piece must be
    long enough to be a hole at the start of a line.
    """
    begin, end = nuls.span()
    return begin == 0 or end == size_bytes or end - begin >= AT_START_BYTES
