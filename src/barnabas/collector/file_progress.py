"""One file of a log, and how far it has been sent: what the registry keeps of it. Pure."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from barnabas.collector.fingerprint import BEGINNING_BYTES, Fingerprint, digest


class FileProgress(NamedTuple):
    """One file, and the place up to which it has been sent: `position` bytes, next `line`.

    Positions are those of the text, also where the file has been compressed by now.
    """

    file_id: str
    path: str  # of the log: what the file was called while the server wrote to it
    first_line: str
    device: int
    inode: int
    generation: int  # how many files with this path and this first line there were before
    position: int
    line: int
    beginning_bytes: int = 0  # of the fingerprint; 0: written before there were any
    beginning: str = ""
    is_complete: bool = False  # compressed, and sent to its end

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(self.beginning_bytes, self.beginning)

    def begins(self, beginning: bytes) -> bool:
        """Whether a file that begins so may be this one, grown since."""
        if self.beginning_bytes:
            return self.fingerprint.begins(beginning)
        return self.first_line == first_line_of(beginning)

    def is_distinctive(self, beginning: bytes) -> bool:
        """Whether what was seen of this file, which begins so, distinguishes it from others."""
        seen = self.fingerprint
        if not self.beginning_bytes:
            seen = Fingerprint(len(_first_line(beginning)), "")
        return seen.is_distinctive(beginning)

    def found_at(self, device: int, inode: int, beginning: bytes) -> FileProgress:
        """This file as it is now."""
        seen = Fingerprint.of(beginning)
        return self._replace(
            device=device, inode=inode, beginning_bytes=seen.size_bytes, beginning=seen.digest
        )


def new_file(path: str, beginning: bytes, generation: int) -> FileProgress:
    """A file of which nothing has been sent. The same arguments give the same `file_id`."""
    first_line = first_line_of(beginning)
    identity = f"{path}\0{first_line}\0{generation}"
    file_id = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return FileProgress(file_id, path, first_line, 0, 0, generation, 0, 1)


def first_line_of(beginning: bytes) -> str:
    return digest(_first_line(beginning))


def _first_line(beginning: bytes) -> bytes:
    line, feed, _ = beginning[:BEGINNING_BYTES].partition(b"\n")
    return line + feed
