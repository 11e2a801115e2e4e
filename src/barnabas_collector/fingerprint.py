"""Identifies a file by a hash of its beginning (at most `BEGINNING_BYTES`), and recognises binary
files. Pure.

Neither a path nor an inode alone identifies a file, because file systems reuse the inode of a
removed file for the next new file.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final, NamedTuple

from barnabas_collector.file_holes import START

BEGINNING_BYTES = 4096
_TIME = re.compile(rb"[0-2]\d:[0-5]\d:[0-6]\d|\b1\d{9}")  # a time of day, or seconds since 1970
_MAGIC: Final = (
    b"\x7fELF", b"!<arch>\n", b"\xca\xfe\xba\xbe",
    b"PK\x03\x04", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07", b"\x1f\x9d",
    b"\x1f\xa0", b"\x04\x22\x4d\x18",
    b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"%PDF-",
    b"SQLite format 3\0", b"PAR1", b"Obj\x01", b"LPKSHHRH",
)  # fmt: skip
"""The first bytes of executables, archives, images, databases and journald files."""
_TAR: Final = (257, b"ustar")
_WIDE: Final = (b"\xff\xfe", b"\xfe\xff")  # the byte order marks of UTF-16 and UTF-32
_CONTROLS: Final = bytes({*range(32), 127} - set(b"\t\n\v\f\r\b\x1b"))
_MOST_CONTROLS: Final = 0.05
"""The maximum share of control bytes in the text of a log. Random bytes contain twice this share,
and files with fixed-size records (`wtmp`) contain ten times this share. The limit is not 0, because
a stray NUL must not prevent a log from being sent.
"""
_HOLE: Final = re.compile(rb"(?:(?<=\n)|\A)\0{%d,}" % len(START))


class Fingerprint(NamedTuple):
    """A hash of the first `size_bytes` of a file. An empty beginning matches every file."""

    size_bytes: int = 0
    digest: str = ""

    @classmethod
    def of(cls, beginning: bytes) -> Fingerprint:
        kept = beginning[:BEGINNING_BYTES]
        return cls(len(kept), digest(kept))

    def begins(self, beginning: bytes) -> bool:
        """Return whether a file with this beginning may be this file, possibly after it
        has grown.
        """
        if len(beginning) < self.size_bytes:
            return False
        return not self.size_bytes or digest(beginning[: self.size_bytes]) == self.digest

    def is_of(self, beginning: bytes) -> bool:
        """Return whether a file with this beginning may be this file, assuming that it has not
        grown."""
        return self == Fingerprint.of(beginning)

    def is_distinctive(self, beginning: bytes) -> bool:
        """Return whether the known part of the beginning contains more than files usually have in
        common.

        All files of a log may start with the same blank lines and header lines (`#Fields: ...`).
        """
        lines = beginning[: self.size_bytes].split(b"\n")
        return any(line.strip() and not line.startswith(b"#") for line in lines)

    def is_timed(self, beginning: bytes) -> bool:
        """Return whether the known part of the beginning contains a time, which makes it unique."""
        return _TIME.search(beginning, 0, self.size_bytes) is not None


def is_binary(beginning: bytes) -> bool:
    """Return whether a file with this beginning is binary rather than a log."""
    at, mark = _TAR
    if beginning.startswith(_MAGIC) or beginning[at:].startswith(mark):
        return True
    # In UTF-16 text, half of the bytes may be NULs.
    if beginning.startswith(_WIDE):
        return False
    text = _HOLE.sub(b"", beginning)
    controls = len(text) - len(text.translate(None, _CONTROLS))
    return controls > _MOST_CONTROLS * len(text)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
