"""How a test speaks to a client that runs in a process of its own: by lines on its pipes.

    message = number of rows LF, row LF, row LF ...
    row     = field, field ...         separated by one space
    field   = "-"                      null
            | "=" base64               bytes, text as UTF-8, numbers in decimal

A request's first row is a verb and its arguments; an answer's is `ok`, `refused CODE` (the broker's
protocol error) or `failed TEXT` (anything else). A client answers each request in turn, and ends
at the end of its input. `JavaClient.java` reads and writes the same.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import IO

Field = bytes | str | int | None
Row = list[bytes | None]


def write_rows(stream: IO[bytes], rows: list[list[Field]]) -> None:
    lines = [b"%d" % len(rows), *(b" ".join(map(_encoded, row)) for row in rows)]
    stream.write(b"\n".join(lines) + b"\n")
    stream.flush()


def read_rows(stream: IO[bytes]) -> list[Row]:
    """One message; [] at the end of the stream."""
    head = stream.readline()
    return [_row(stream.readline()) for _ in range(int(head or b"0"))]


def _row(line: bytes) -> Row:
    assert line.endswith(b"\n"), f"the other process ended within a message: {line!r}"
    return [None if field == b"-" else b64decode(field[1:]) for field in line.split()]


def _encoded(field: Field) -> bytes:
    if field is None:
        return b"-"
    raw = field if isinstance(field, bytes) else str(field).encode()
    return b"=" + b64encode(raw)
