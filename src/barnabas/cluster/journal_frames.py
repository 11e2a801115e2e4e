"""The frames of the embedded store's files: their bytes, and the search for those behind damage.

    frame:    u32 1 << 31 | length of the payload
              u32 CRC-32 of everything else in the frame
              u32 how many commits before this one were not on disk for sure when it was written
              payload: i64 zxid | content                                          (big-endian)

    seal:     a frame without content: every commit up to its zxid is on disk

    earlier:  u32 length of the payload | u32 CRC-32 of the payload | payload

Frames of the earlier kind are read and no longer written: they do not say what was on disk, so each
counts as written after all before it had been synced.

The count tells a crash from damage. A power cut may lose any part of what was not synced, also an
earlier frame and not a later one; but a frame that is missing although a later one proves that it
was on disk was destroyed by something else.
"""

from __future__ import annotations

import zlib
from struct import Struct
from typing import NamedTuple

_HEADER = Struct(">III")
_EARLIER_HEADER = Struct(">II")
_ZXID = Struct(">q")
_CHECKED = Struct(">II")  # of the header
_IS_COUNTED = 1 << 31
_MOST_COMMITS = 1 << 40


class Frame(NamedTuple):
    """A whole frame, and where it ends."""

    payload: bytes
    zxid: int
    unsynced: int
    end: int
    is_earlier: bool

    @property
    def is_seal(self) -> bool:
        return len(self.payload) == _ZXID.size

    @property
    def proven_zxid(self) -> int:
        """Every commit up to this one was on disk when the frame was written."""
        return self.zxid if self.is_seal else self.zxid - 1 - self.unsynced


class Frames(NamedTuple):
    """Holds the frames that can be read of a file."""

    whole: tuple[Frame, ...]
    damaged_at: int | None
    """The first position that is in no whole frame, while a whole one follows."""
    end: int
    """Behind the last whole frame; what follows is torn."""

    @property
    def begins_late(self) -> bool:
        """Commits are missing at the front: the first journal of all begins with a seal of nothing,
        and then with commit 1."""
        if self.damaged_at is not None or not self.whole:
            return False
        first = self.whole[0]
        return first.zxid > (0 if first.is_seal else 1)


def zxid_of(payload: bytes) -> int:
    """The number of a commit, or that of a tree's last commit."""
    zxid: int = _ZXID.unpack_from(payload)[0]
    return zxid


def frame(payload: bytes, unsynced: int = 0) -> bytes:
    word = _IS_COUNTED | len(payload)
    crc = zlib.crc32(payload, zlib.crc32(_CHECKED.pack(word, unsynced)))
    return _HEADER.pack(word, crc, unsynced) + payload


def seal(zxid: int) -> bytes:
    """Return a frame that distinguishes a crash from damage in the frame before it."""
    return frame(_ZXID.pack(zxid))


def read_frames(content: bytes) -> Frames:
    """Every whole frame of a file, also those behind damage."""
    whole: list[Frame] = []
    damaged_at: int | None = None
    position = end = 0
    while position < len(content):
        found = _read(content, position)
        if found is None:
            # Damage in the middle must not hide the commits behind it, which another copy may
            # continue.
            last_zxid = whole[-1].zxid if whole else 0
            found = _search(content, position + 1, last_zxid)
            if found is None:
                break
            if damaged_at is None:
                damaged_at = position
        whole.append(found)
        position = end = found.end
    return Frames(tuple(whole), damaged_at, end)


def _search(content: bytes, position: int, last_zxid: int) -> Frame | None:
    """The next whole frame of a later commit than `last_zxid`.

    Those of earlier commits are the rest of a journal that a snapshot has replaced.
    """
    # No commit is as short as a byte, so more of them cannot follow.
    most = last_zxid + len(content) if last_zxid else _MOST_COMMITS
    for at in range(position, len(content) - _EARLIER_HEADER.size - _ZXID.size + 1):
        header = _HEADER if content[at] & 0x80 else _EARLIER_HEADER
        if at + header.size + _ZXID.size > len(content):
            continue
        (zxid,) = _ZXID.unpack_from(content, at + header.size)
        # The checksum of all that follows is not computed where no frame can be.
        if last_zxid < zxid <= most:
            found = _read(content, at)
            if found is not None and found.zxid > last_zxid:
                return found
    return None


def _read(content: bytes, position: int) -> Frame | None:
    """The frame at this position, if there is a whole one."""
    left = len(content) - position
    if left < _EARLIER_HEADER.size + _ZXID.size:
        return None
    word, crc = _EARLIER_HEADER.unpack_from(content, position)
    is_counted = bool(word & _IS_COUNTED)
    header = _HEADER if is_counted else _EARLIER_HEADER
    length = word & ~_IS_COUNTED
    if not _ZXID.size <= length <= left - header.size:
        return None
    start = position + header.size
    payload = content[start : start + length]
    unsynced = 0
    # The older form has no number of unsynced commits, and its checksum covers the payload alone.
    if is_counted:
        unsynced = _HEADER.unpack_from(content, position)[2]
        expected = zlib.crc32(payload, zlib.crc32(_CHECKED.pack(word, unsynced)))
    else:
        expected = zlib.crc32(payload)
    if expected != crc:
        return None
    return Frame(payload, zxid_of(payload), unsynced, start + length, not is_counted)
