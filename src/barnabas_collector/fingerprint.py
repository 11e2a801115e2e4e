"""Hashes the beginning of a file, which grows with the file up to `BEGINNING_BYTES`. Pure.

A path does not identify a file, and neither does an inode alone: file systems give the inode of a
removed file to the next new file.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

BEGINNING_BYTES = 4096
_TIME = re.compile(rb"[0-2]\d:[0-5]\d:[0-6]\d|\b1\d{9}")  # of a day, or since 1970


class Fingerprint(NamedTuple):
    """A hash of the first `size_bytes` of a file. Every file begins with 0 bytes."""

    size_bytes: int = 0
    digest: str = ""

    @classmethod
    def of(cls, beginning: bytes) -> Fingerprint:
        kept = beginning[:BEGINNING_BYTES]
        return cls(len(kept), digest(kept))

    def begins(self, beginning: bytes) -> bool:
        """Return whether a file with this beginning may be this file, grown since."""
        if len(beginning) < self.size_bytes:
            return False
        return not self.size_bytes or digest(beginning[: self.size_bytes]) == self.digest

    def is_of(self, beginning: bytes) -> bool:
        """Return whether a file with this beginning may be this file, not grown since."""
        return self == Fingerprint.of(beginning)

    def is_distinctive(self, beginning: bytes) -> bool:
        """Return whether the part seen of this beginning contains more than files have in common.

        Blank lines and header lines (`#Fields: ...`) are at the top of every file of a log.
        """
        lines = beginning[: self.size_bytes].split(b"\n")
        return any(line.strip() and not line.startswith(b"#") for line in lines)

    def is_timed(self, beginning: bytes) -> bool:
        """Return whether the part seen of this beginning contains a time, so that it occurs only
        once."""
        return _TIME.search(beginning, 0, self.size_bytes) is not None


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
