"""Reads the input files of `produce` in turn, block by block, as values or records."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple

from barnabas.cli.records.input import Input
from barnabas.cli.records.lines import (
    LONGEST_LINE_BYTES,
    BadLine,
    KeyedLines,
    LineSplitter,
)
from barnabas.client.producer.batch import ProducerRecord

Parser = Callable[[bytes, int], ProducerRecord]
"""Converts a line and its 1-based number to a record. Raises BadLine."""

KeySplitter = Callable[[Sequence[bytes], int], KeyedLines]
"""Parses lines, given the number of the first one."""


class Block(NamedTuple):
    """Holds records from one file, in order. They are plain values, values with keys, or parsed
    records.
    """

    name: str
    number: int  # of the first line, or 0 if the whole file is one record
    size_bytes: int  # the number of bytes read for this block
    values: list[bytes]
    records: list[ProducerRecord]
    problem: BadLine | None = None  # in the line after these records; ends the input
    keys: list[bytes] | None = None  # of `values`


class LineFeed:
    """Converts each line to a record. A line is parsed, split into key and value, or taken as a
    plain value.
    """

    def __init__(
        self,
        paths: Sequence[str | None],
        delimiter: bytes,
        parse: Parser | None = None,
        split: KeySplitter | None = None,
    ) -> None:
        self._paths = paths
        self._delimiter = delimiter
        self._parse = parse
        self._split = split

    async def blocks(self) -> AsyncIterator[Block]:
        """Yield the blocks. Raises OSError, or BadLine if a line is too long."""
        for path in self._paths:
            with Input(path) as source:
                splitter = LineSplitter(self._delimiter)
                number = 1
                while block := await source.read():
                    lines = _split(source.name, splitter, block)
                    yield self._block(source.name, number, len(block), lines)
                    number += len(lines)
                # The last line of a file may lack a newline, but it does not continue in the next
                # file.
                yield self._block(source.name, number, 0, splitter.last())

    def _block(self, name: str, number: int, size_bytes: int, lines: list[bytes]) -> Block:
        if self._split is not None:
            keys, values, problem = self._split(lines, number)
            named = None if problem is None else BadLine(f"{name}: {problem}")
            return Block(name, number, size_bytes, values, [], named, keys)
        if self._parse is None:
            return Block(name, number, size_bytes, lines, [])
        records: list[ProducerRecord] = []
        try:
            for at, line in enumerate(lines, number):
                records.append(self._parse(line, at))
        except BadLine as error:
            problem = BadLine(f"{name}: {error}")
            return Block(name, number, size_bytes, [], records, problem)
        return Block(name, number, size_bytes, [], records)


class FileFeed:
    """Reads each file as one record, without interpreting its bytes."""

    def __init__(self, paths: Sequence[str | None], record: Callable[[bytes], ProducerRecord]):
        self._paths = paths
        self._record = record

    async def blocks(self) -> AsyncIterator[Block]:
        """Yield the blocks. Raises OSError, or BadLine if a file is too large."""
        for path in self._paths:
            with Input(path) as source:
                pieces: list[bytes] = []
                size_bytes = 0
                while piece := await source.read():
                    pieces.append(piece)
                    size_bytes += len(piece)
                    # The limit is far above the limit of any broker, but an endless device or pipe
                    # must not fill the memory.
                    if size_bytes > LONGEST_LINE_BYTES:
                        raise BadLine(
                            f"{source.name}: a file of more than {LONGEST_LINE_BYTES:,} bytes "
                            "cannot be a record; without --format file, each line is a record"
                        )
                yield Block(source.name, 0, size_bytes, [], [self._record(b"".join(pieces))])


def _split(name: str, splitter: LineSplitter, block: bytes) -> list[bytes]:
    try:
        return splitter.lines(block)
    except BadLine as error:
        raise BadLine(f"{name}: {error}") from error
