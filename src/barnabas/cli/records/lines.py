"""Parses the lines that `produce` reads into records. Pure.

    headers<TAB>key:value          with --headers-separator '\\t' and --key-separator :

Bytes are left unchanged, except that the line end (LF or CRLF) or the delimiter is removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from barnabas.client.producer.batch import ProducerRecord
from barnabas.errors import BarnabasError

Header = tuple[str, bytes | None]

LONGEST_LINE_BYTES = 128 * 1024 * 1024  # far larger than any record accepted by a broker


class BadLine(BarnabasError):
    """Raised if a line lacks the configured separators. The message includes the line's number."""


class KeyedLines(NamedTuple):
    """Holds the keys and values of lines. `problem` is about the line that follows these lines."""

    keys: list[bytes]
    values: list[bytes]
    problem: BadLine | None


class LineFormat(NamedTuple):
    topic: str
    partition: int | None = None
    key_separator: bytes | None = None
    headers_separator: bytes | None = None
    headers: tuple[Header, ...] = ()  # for every record, before the line's own headers
    null_marker: bytes | None = None  # a key or a value that is exactly this is null

    @property
    def is_plain(self) -> bool:
        """Return whether every line is a value only."""
        return (
            self.key_separator is None
            and self.headers_separator is None
            and self.null_marker is None
            and not self.headers
        )

    @property
    def is_keyed(self) -> bool:
        """Return whether every line is a key and a value only."""
        return self.key_separator is not None and self._replace(key_separator=None).is_plain

    def split(self, lines: Sequence[bytes], number: int) -> KeyedLines:
        """Split lines, starting at `number`, into keys and values. Stop at the first line without a
        separator.
        """
        assert self.key_separator is not None
        separator = self.key_separator
        parts = [line.partition(separator) for line in lines]
        problem = None
        for place, (line, (_, found, _)) in enumerate(zip(lines, parts, strict=True)):
            if not found:
                problem = self._without_key(line, number + place)
                del parts[place:]
                break
        keys, values = [key for key, _, _ in parts], [value for _, _, value in parts]
        return KeyedLines(keys, values, problem)

    def _without_key(self, line: bytes, number: int) -> BadLine:
        assert self.key_separator is not None
        return BadLine(
            f"line {number} has no key separator {_shown(self.key_separator)}: {_shown(line[:60])}"
        )

    def record(self, line: bytes, number: int) -> ProducerRecord:
        """Build the record for a line. `number` is the line's number, starting at 1. Raises
        BadLine.
        """
        headers = self.headers
        key: bytes | None = None
        if self.headers_separator is not None:
            own, found, line = line.partition(self.headers_separator)
            if not found:
                raise BadLine(f"line {number} has no headers separator {self.headers_separator!r}")
            headers += tuple(_headers(own, number))
        if self.key_separator is not None:
            key, found, value = line.partition(self.key_separator)
            if not found:
                raise self._without_key(line, number)
        else:
            value = line
        if self.null_marker is None:
            return ProducerRecord(self.topic, value, key, self.partition, None, headers)
        return ProducerRecord(
            self.topic, self._null(value), self._null(key), self.partition, None, headers
        )

    def _null(self, data: bytes | None) -> bytes | None:
        return None if data == self.null_marker else data


def parse_header(text: str) -> Header:
    """Parse `name=value`, as in --header. Raises BadLine."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BadLine(f"--header {text}: not NAME=VALUE")
    return name, value.encode("utf-8", "surrogateescape")


class LineSplitter:
    """Splits blocks of any size into whole lines. The last line may lack a line end. If the
    delimiter is a line feed, a carriage return before it is part of the line end.
    """

    def __init__(self, delimiter: bytes = b"\n") -> None:
        self._delimiter = delimiter
        self._begun: list[bytes] = []  # the pieces of an incomplete line
        self._begun_bytes = 0

    def lines(self, block: bytes) -> list[bytes]:
        """Return the lines that end in this block. Raises BadLine if a line is too long."""
        delimiter = self._delimiter
        # With a one-byte delimiter, only a line that spans two blocks is copied.
        if len(delimiter) > 1:  # may span two blocks
            block = self._take_begun() + block
        lines = block.split(delimiter)
        rest = lines.pop()
        if lines:
            lines[0] = self._take_begun() + lines[0]
            # Search each block for CRLF once. The CR may be the last byte of the previous block.
            if delimiter == b"\n" and (b"\r\n" in block or lines[0].endswith(b"\r")):
                lines = [line.removesuffix(b"\r") for line in lines]
        self._begun.append(rest)
        self._begun_bytes += len(rest)
        if self._begun_bytes > LONGEST_LINE_BYTES:
            raise BadLine(
                f"a line has more than {LONGEST_LINE_BYTES:,} bytes: is --delimiter right? "
                "--format file sends a whole file as one record"
            )
        return lines

    def last(self) -> list[bytes]:
        """Return what follows the last delimiter, if anything."""
        rest = self._take_begun()
        return [rest] if rest else []

    def _take_begun(self) -> bytes:
        line = b"".join(self._begun)
        self._begun = []
        self._begun_bytes = 0
        return line


def _headers(text: bytes, number: int) -> Iterator[Header]:
    """Parse `name:value,name:value`. An empty text has no headers."""
    for pair in text.split(b",") if text else ():
        name, colon, value = pair.partition(b":")
        if not colon or not name:
            raise BadLine(f"line {number} has a header that is not NAME:VALUE: {_shown(pair)}")
        yield name.decode("utf-8", "replace"), value


def _shown(data: bytes) -> str:
    return repr(data.decode("utf-8", "backslashreplace"))
