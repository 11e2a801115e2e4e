"""Defines the data that the registry stores for one file of a log, such as its position. Pure."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from barnabas_collector.fingerprint import BEGINNING_BYTES, Fingerprint, digest
from barnabas_collector.text_extent import Bytes, Extent

_MOST_AT_ONCE = 64 << 20
"""If an earlier version sent more than this without storing a hash, the sent part is not read
again.
"""


class FileProgress(NamedTuple):
    """Describes a file whose first `position` bytes have been sent. `line` is the number of the
    next line.

    Positions count the bytes of the text, even if the file has been compressed since.
    """

    file_id: str
    path: str  # the log's path, which the file had while the server wrote to it
    first_line: str
    device: int
    inode: int
    generation: int  # number of earlier files with this path and first line
    position: int
    line: int
    beginning_bytes: int = 0  # the fingerprint's size; 0 if the version had no fingerprints
    beginning: str = ""
    is_complete: bool = False  # it is compressed and has been sent completely
    born_ns: int = 0  # when its inode was created, or 0 if unknown
    sent_bytes: int = 0  # the extent's size, at most `position`; 0 if saved by an older version
    checksum: int | None = 0
    tail: str = ""
    gone_s: int = 0  # when a look first failed to find it, or 0 if it exists

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(self.beginning_bytes, self.beginning)

    @property
    def extent(self) -> Extent:
        """Return the size and hashes of the sent part."""
        return Extent(self.sent_bytes, self.checksum, self.tail)

    def begins(self, beginning: bytes) -> bool:
        """Return whether a file with this beginning may be this file, possibly after it
        has grown.
        """
        if self.beginning_bytes:
            return self.fingerprint.begins(beginning)
        return self.first_line == first_line_of(beginning)

    def is_distinctive(self, beginning: bytes) -> bool:
        """Return whether the known part of the beginning is enough to distinguish the file from
        others.
        """
        seen = self.fingerprint
        if not self.beginning_bytes:
            seen = Fingerprint(len(_first_line(beginning)), "")
        return seen.is_distinctive(beginning)

    def is_timed(self, beginning: bytes) -> bool:
        """Return whether the known part of the beginning contains a time, which makes it unique."""
        return self.fingerprint.is_timed(beginning)

    def found_at(self, device: int, inode: int, beginning: bytes, born_ns: int) -> FileProgress:
        """Return this file with its current path and inode."""
        known = self.with_beginning(Fingerprint.of(beginning))
        return known._replace(device=device, inode=inode, born_ns=born_ns, gone_s=0)

    def with_beginning(self, seen: Fingerprint) -> FileProgress:
        """Return this file after it has grown."""
        return self._replace(beginning_bytes=seen.size_bytes, beginning=seen.digest)

    def sent_to(self, position: int, line: int, text: Bytes | None) -> FileProgress:
        """Return this file with everything up to a position marked as sent.

        `text` is None if its bytes cannot be read again.
        """
        if text is None:
            return self._replace(position=position, line=line)
        extent = self.extent
        # Without a checksum of the whole sent part, its tail identifies the file.
        if self.position - extent.size_bytes > _MOST_AT_ONCE:
            extent = extent._replace(checksum=None)
        size_bytes, checksum, tail = extent.grown(text, position)
        return self._replace(
            position=position, line=line, sent_bytes=size_bytes, checksum=checksum, tail=tail
        )


def new_file(path: str, beginning: bytes, generation: int) -> FileProgress:
    """Return the progress of a file of which nothing has been sent. Equal arguments give the same
    `file_id`."""
    first_line = first_line_of(beginning)
    identity = f"{path}\0{first_line}\0{generation}"
    file_id = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return FileProgress(file_id, path, first_line, 0, 0, generation, 0, 1)


def first_line_of(beginning: bytes) -> str:
    return digest(_first_line(beginning))


def _first_line(beginning: bytes) -> bytes:
    line, feed, _ = beginning[:BEGINNING_BYTES].partition(b"\n")
    return line + feed
