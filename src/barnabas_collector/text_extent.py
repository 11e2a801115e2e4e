"""Hashes the sent part of a file. Pure.

The beginning alone does not identify a file, because all files of a log may start with the same
banner, of any size. A checksum of everything up to a position and a hash of the last bytes before
it distinguish two files that differ anywhere before the position. The checksum is extended as the
position advances, so nothing is read twice. NULs are skipped, so holes in a sparse file cost
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from barnabas.records.crc32c import crc32c
from barnabas_collector.fingerprint import digest

TAIL_BYTES: Final = 4096
INCOMPLETE: Final = -1
DAMAGED: Final = -2
"""The `size_bytes` of a compressed file whose end cannot be read."""
_READ_BYTES: Final = 1 << 20


class Bytes(Protocol):
    """Gives access to the bytes of a text, in any order."""

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Return this many bytes, or fewer at the end of the text."""
        ...

    def next_data(self, position: int) -> int:
        """Return a position at or after `position` such that there is certainly no data
        in between.
        """
        ...


class Extent(NamedTuple):
    """Describes the first `size_bytes` of a text."""

    size_bytes: int = 0
    checksum: int | None = 0  # None if unknown; then only the tail is compared
    tail: str = ""

    def is_end_in(self, text: Bytes) -> bool:
        """Return whether the text contains this extent's last bytes just before the same
        position."""
        return tail_of(text, self.size_bytes) == self.tail

    def grown(self, text: Bytes, size_bytes: int) -> Extent:
        """Return this extent, extended by the text's bytes up to a later position."""
        # An unknown checksum remains unknown, because computing it would require the whole text.
        at, checksum = self.size_bytes, self.checksum
        while at < size_bytes and checksum is not None:
            read = text.read_at(at, min(_READ_BYTES, size_bytes - at))
            if not read:
                break  # the text has been truncated
            at += len(read)
            known, checksum = checksum, checksum_with(checksum, read)
            if checksum == known:  # a hole, perhaps a long one
                at = min(size_bytes, text.next_data(at))
        return Extent(size_bytes, checksum, tail_of(text, size_bytes))


def tail_of(text: Bytes, size_bytes: int) -> str:
    """Return the hash of the last bytes before a position, or "" for position 0."""
    kept = min(size_bytes, TAIL_BYTES)
    return digest(text.read_at(size_bytes - kept, kept)) if kept else ""


class Text(Protocol):
    """Gives access to the text of a found file, so that it can be compared with known files."""

    def ends(self, extent: Extent) -> bool:
        """Return whether this text contains the extent's last bytes just before the same
        position."""
        ...

    def holds(self, extent: Extent) -> bool:
        """Return whether this text begins with the whole extent."""
        ...

    def whole(self) -> Extent:
        """Return the extent of this text up to its current end, with only its tail hashed."""
        ...


def checksum_with(checksum: int, more: bytes) -> int:
    """Return the checksum extended by these bytes, without NULs."""
    return crc32c(more.replace(b"\0", b""), checksum)


def extent_of(chunks: Callable[[int], bytes], size_bytes: int | None = None) -> Extent:
    """Return the extent of a text read from its start, up to a position or its end."""
    at, checksum, tail = 0, 0, b""
    while size_bytes is None or at < size_bytes:
        left = _READ_BYTES if size_bytes is None else min(_READ_BYTES, size_bytes - at)
        read = chunks(left)
        if not read:
            break
        at += len(read)
        checksum = checksum_with(checksum, read)
        tail = (tail + read)[-TAIL_BYTES:] if len(read) < TAIL_BYTES else read[-TAIL_BYTES:]
    return Extent(at, checksum, digest(tail) if at else "")
